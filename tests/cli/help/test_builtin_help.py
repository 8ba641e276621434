"""`harnpy builtins NAME` and `:doc NAME`: the specification's words. Spec: 09 §4.5."""

from __future__ import annotations

from harnpy.builtins import catalog
from harnpy.cli import builtin_help
from harnpy.cli.builtin_help import Citation, citations, excerpts
from tests.support import Command


def about(name: str) -> list[tuple[str, str]]:
    """Source and text of each excerpt on a builtin."""
    doc = builtin_help.describe_builtin(builtin_help.find_builtin(name)[0])
    return [(excerpt.source, excerpt.text) for excerpt in doc.excerpts]


def test_the_row_that_defines_a_builtin() -> None:
    ((source, text),) = about("title_case")
    assert source == "docs/spec/04-builtins.md §4.2"
    header, _, row = text.splitlines()
    assert header == "| signature | behaviour |"
    assert row.startswith("| `title_case(s)` |")


def test_a_row_may_abbreviate_the_name() -> None:
    (_, text) = about("workflow.pause")[0]
    assert "| `pause(t)` / `resume(t)` |" in text
    (_, text) = about("agent_session_detach")[0]
    assert "`agent_session_detach(" in text


def test_a_short_section_that_the_builtin_cites_is_shown_whole() -> None:
    ((source, text),) = about("agent_session_fork")
    assert source == "docs/spec/08-sessions-transcripts-workflows.md §1.4"
    assert text.startswith("`agent_session_fork(src, dst)`:")
    assert "Both branches evolve independently afterwards." in text


def test_a_section_that_does_not_name_it_shows_its_beginning() -> None:
    found = excerpts([], [Citation("02", "3.1")], "no_such_name")
    assert [excerpt.heading for excerpt in found] == ["3.1 `==` / `!=` (structural)"]
    assert found[0].text


def test_a_long_section_that_it_cites_itself_shows_its_beginning_beside_others() -> None:
    found = excerpts([Citation("04", "4.2"), Citation("02", "3.1")], [], "title_case")
    assert [excerpt.heading[:3] for excerpt in found] == ["4.2", "3.1"]


def test_a_builtin_of_a_bundled_module_is_found_by_the_name_that_programs_use() -> None:
    ((source, text),) = about("__memory_store")
    assert source == "docs/spec/06-modules.md §20"
    assert "`memory_store(" in text
    assert "`memory_recall(" not in text


def test_marks_are_left_out_of_headings() -> None:
    (found,) = excerpts([], [Citation("04", "5")], "push")
    assert found.heading == "5 Lists"


def test_every_builtin_has_an_excerpt() -> None:
    silent = [
        declaration.name
        for declaration in catalog.all_declarations()
        if not builtin_help.describe_builtin(declaration).excerpts
    ]
    assert silent == []


def test_the_citation_itself_is_replaced_by_the_source(harnpy: Command) -> None:
    out = harnpy("builtins", "agent_session_fork").stdout
    assert not list(citations(out.partition("\n\n  1.4 Fork and lineage rules\n")[0]))
    assert out.endswith("  file: docs/spec/08-sessions-transcripts-workflows.md §1.4\n")


def test_the_repl_shows_the_same(harnpy: Command) -> None:
    assert harnpy("repl", stdin=":doc split\n").stdout == harnpy("builtins", "split").stdout
