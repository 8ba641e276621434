"""Unified diff texts (08 §8.6): they lead from one text to the other, and none is shorter."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harnpy.workflow.records.differences import matching_lines, split_lines, unified_diff
from tests.support import ends

LINES = st.lists(st.sampled_from(["a", "b", "c", "é", ""]), max_size=9)
TEXTS = LINES.map("\n".join) | st.text(st.sampled_from("ab\n\r\f"), max_size=12)


def marked(before: str, after: str) -> list[str]:
    head, body = (
        unified_diff("p", before, after).split("\n", 2)[:2],
        unified_diff("p", before, after).split("\n", 2)[2],
    )
    assert head == ["--- a/p", "+++ b/p"]
    return split_lines(body)


def longest_common(old: list[str], new: list[str]) -> int:
    """By the textbook's table."""
    row = [0] * (len(new) + 1)
    for line in old:
        above = row
        row = [0]
        for j, other in enumerate(new):
            row.append(above[j] + 1 if line == other else max(row[j], above[j + 1]))
    return row[-1]


@given(TEXTS, TEXTS)
def test_the_kept_and_deleted_lines_are_the_former_text(before: str, after: str) -> None:
    assert [line[1:] for line in marked(before, after) if line[0] in " -"] == split_lines(before)


@given(TEXTS, TEXTS)
def test_the_kept_and_inserted_lines_are_the_new_text(before: str, after: str) -> None:
    assert [line[1:] for line in marked(before, after) if line[0] in " +"] == split_lines(after)


@given(LINES, LINES)
def test_no_script_keeps_more_lines(old: list[str], new: list[str]) -> None:
    assert len(matching_lines(old, new)) == longest_common(old, new)


@given(TEXTS, TEXTS)
def test_deletions_precede_insertions(before: str, after: str) -> None:
    marks = "".join(line[0] for line in marked(before, after))
    assert "+-" not in marks


def test_a_text_replaced_as_a_whole_takes_no_time() -> None:
    """All scripts are equally short, so there is nothing to look for."""
    before, after = "\n".join(map(str, range(20_000))), "\n".join(map(str, range(20_000, 40_000)))
    with ends(20):
        assert len(marked(before, after)) == 40_000
