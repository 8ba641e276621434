"""Sessions, turns, runs and transcripts in a notebook: a short table, in which whatever was said is text."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest

from harnpy.session import InvalidArgument, Session, SessionRuntime, cell_of, export_run
from harnpy.workflow.report import cell_of_run

ATTACK = '</td></table><script>alert(1)</script><img src=x onerror="alert(2)">'


class Elements(HTMLParser):
    """The elements of a text, each closed where it was opened, and the words in them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: set[str] = set()
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.names.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


CALL = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}


def talked() -> Session:
    session = Session("talk")
    session.add_history(
        [
            {"role": "user", "content": ATTACK},
            {"role": "assistant", "content": "", "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "x" * 1000},
            {"role": "assistant", "content": "On its way."},
        ]
    )
    return session


def echo(messages: list[dict[str, Any]]) -> str:
    return ATTACK


def shown() -> dict[str, Any]:
    runtime = SessionRuntime("memory:")
    runtime.create("desk", id="one")
    result = runtime.send("one", ATTACK, agent=echo)
    run = {
        "workflow_name": ATTACK,
        "status": "completed",
        "stages": [{"node_id": ATTACK, "status": "failed", "branch": "failed", "outcome": "no"}],
    }
    return {
        "a session": talked(),
        "a turn": result,
        "a run": export_run(runtime.get("one")),
        "a transcript": cell_of({"id": ATTACK, "messages": talked().messages()}),
        "messages": cell_of(
            [{"role": ATTACK, "content": [{"type": ATTACK}, {"type": "text", "text": None}]}]
        ),
        "a workflow's run": cell_of_run(run),
    }


@pytest.mark.parametrize(
    "name", ["a session", "a turn", "a run", "a transcript", "messages", "a workflow's run"]
)
def test_a_notebook_shows_a_table_that_loads_nothing(name: str) -> None:
    html = shown()[name]._repr_html_()
    found = Elements(html)
    assert {*found.names} <= {"div", "span", "b", "small", "table", "tr", "th", "td"}
    assert found.attributes <= {"class", "style"}
    assert "alert(1)" in html
    assert "http" not in html
    assert "url(" not in html
    assert "#" not in html.replace("&#", "")  # no colour of its own: light and dark are the notebook's


def test_a_session_shows_roles_texts_and_calls() -> None:
    words = Elements(talked()._repr_html_()).words
    assert words.index("Session talk") < words.index("Role") < words.index("Text") < words.index("Tool calls")
    assert "look_up" in words
    assert "x" * 240 + " …" in words
    assert "On its way." in words


def test_of_a_long_session_the_end_is_shown() -> None:
    session = Session("long")
    session.add_history([{"content": f"question {n}"} for n in range(50)])
    words = Elements(session._repr_html_()).words
    assert "20 earlier messages" in words
    assert "question 19" not in words
    assert "question 49" in words


def test_an_empty_session_has_a_cell_too() -> None:
    assert "Session new" in Session("new")._repr_html_()


def test_what_is_no_transcript_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="a list of messages"):
        cell_of({"text": "hi"})
