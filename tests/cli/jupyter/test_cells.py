"""What a cell of a notebook shows of values. Spec: 12 §5.2."""

from __future__ import annotations

from base64 import b64decode

import pytest

from harnpy import Vm
from harnpy.cli.jupyter.cells import shown_richly


@pytest.fixture(scope="module")
def html_of() -> object:
    """Return a function: the HTML that shows the value of a program's last expression, or None."""

    def html_of(source: str) -> str | None:
        return shown_richly(Vm().repl().run(source), "_1").get("text/html")

    return html_of


def test_alike_dicts_are_a_table_in_the_order_of_their_keys(html_of) -> None:
    shown = html_of('[{name: "<Ann>", age: 31}, {name: "Ben", age: nil}]')
    assert [shown.index(word) for word in ("name", "age", "&lt;Ann&gt;", "31", "Ben")] == sorted(
        shown.index(word) for word in ("name", "age", "&lt;Ann&gt;", "31", "Ben")
    )
    assert "2 rows" in shown
    assert "nil" not in shown


@pytest.mark.parametrize(
    "source", ["3", '"text"', "[1, 2]", "[{a: 1}, {b: 2}]", '{_type: "transcript"}', "{run: 3}"]
)
def test_other_values_are_text_alone(html_of, source: str) -> None:
    assert html_of(source) is None


def test_long_tables_say_how_much_is_left_out(html_of) -> None:
    shown = html_of("(1 to 250).to_list().map({ n -> {n: n} })")
    assert "… 50 more" in shown
    assert ">200<" in shown
    assert ">201<" not in shown


def test_a_transcript_is_its_messages_also_in_an_agents_result(html_of) -> None:
    source = """
        let s = agent_session_open("talk")
        agent_session_inject(s, {role: "user", content: "Good morning"})
    """
    assert "Good morning" in html_of(source + "agent_session_snapshot(s)")
    assert "Transcript talk" in html_of(
        source + 'agent_loop("And now?", nil, {session_id: s, provider: "mock"})'
    )


def test_a_graph_is_a_picture(html_of) -> None:
    shown = html_of('workflow_graph({name: "review", act: {kind: "stage", mode: "llm"}})')
    picture = b64decode(shown.partition("base64,")[2].partition('"')[0]).decode()
    assert picture.startswith("<svg")
    assert ">act<" in picture


def test_text_beside_a_picture_is_short_and_says_where_all_of_it_is() -> None:
    value = Vm().repl().run('workflow_graph({name: "review", act: {kind: "stage", mode: "llm"}})')
    lines = shown_richly(value, "_7")["text/plain"].split("\n")
    assert len(lines) == 13
    assert lines[-1].endswith("more lines (:raw _7 shows all)")


def test_long_texts_are_cut() -> None:
    lines = shown_richly("\n".join(map(str, range(300))), "_2")["text/plain"].split("\n")
    assert lines[199:] == ["199", "… 100 more lines (:raw _2 shows all)"]
