"""Applying fixes: no two at one place, none that breaks a program or loses a comment. Spec: 03 §15."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.check.findings import Finding
from harnpy.check.lint.fixing import fix_all
from harnpy.syntax.diagnostic import Edit, Fix
from tests.counts import COUNT

Look = Callable[[str], Sequence[Finding]]


def offering(*edits: tuple[str, str], safe: bool = True) -> Look:
    """What finds each text of ``edits`` in a program, and would replace it."""

    def look(source: str) -> list[Finding]:
        return [
            _finding(Edit(at, at + len(old), new), safe=safe)
            for old, new in edits
            if (at := source.find(old)) >= 0
        ]

    return look


def _finding(*edits: Edit, safe: bool = True) -> Finding:
    return Finding("code", "warning", "message", edits[0].start, edits[0].end, fix=Fix(edits, safe))


def test_several_in_one_text() -> None:
    assert fix_all("f(1) + g(2)", offering(("1", "30"), ("g", "hh"))) == ("f(30) + hh(2)", 2)


def test_of_two_that_overlap_the_later_goes_first() -> None:
    assert fix_all("let a = b", offering(("a = b", "x = c"), ("b", "d"))) == ("let a = d", 1)


def test_insertions_at_one_place_come_one_after_the_other() -> None:
    def look(source: str) -> list[Finding]:
        return [_finding(Edit(2, 2, text)) for text in ("1", "2") if text not in source]

    assert fix_all("f()", look) == ("f(21)", 2)


def test_one_that_breaks_the_program_is_left_out_and_the_others_are_not() -> None:
    assert fix_all("f(1) + g(2)", offering(("(1", "(("), ("2", "3"))) == ("f(1) + g(3)", 1)


def test_one_that_loses_a_comment_is_left_out() -> None:
    source = "f(\n  1, // why\n  2,\n)"
    assert fix_all(source, offering((source, "f(1, 2)"))) == (source, 0)
    assert fix_all("// why\nf()", offering(("// why", "/** why */"))) == ("/** why */\nf()", 1)


def test_a_program_gets_no_fault_of_structure() -> None:
    source = "for x in [1] { break }"
    assert fix_all(source, offering((source, "break"))) == (source, 0)


def test_unsafe_ones_are_asked_for() -> None:
    look = offering(("1", "2"), safe=False)
    assert fix_all("f(1)", look) == ("f(1)", 0)
    assert fix_all("f(1)", look, unsafe=True) == ("f(2)", 1)


def test_fixes_that_never_end_are_ended() -> None:
    fixed, count = fix_all("f(1)", offering(("(1", "(11")))
    assert fixed == f"f({'1' * (count + 1)})"


_EDITS = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 4), st.sampled_from(["", "x", "yy"])), max_size=6
)


@given(st.lists(_EDITS.filter(bool), max_size=5))
@settings(max_examples=COUNT.examples(12), deadline=None)
def test_the_edits_of_one_round_are_applied_to_the_text_that_was_looked_at(
    fixes: list[list[tuple[int, int, str]]],
) -> None:
    """Whatever is offered: each fix is applied as a whole or not at all, and never on top of another."""
    text = '"' + "abcdefghijklmnopqrstuvwxyz" + '"'
    offered = [_finding(*(Edit(1 + at, 1 + at + size, new) for at, size, new in fix)) for fix in fixes]
    once = iter([[one for one in offered if one.fix and _sound(one.fix)], []])
    fixed, count = fix_all(text, lambda source: next(once))
    kept = {letter for letter in text if letter in fixed}
    assert len(fixed) >= 2
    assert count <= len(offered)
    assert "".join(letter for letter in text if letter in kept) == "".join(c for c in fixed if c in kept)


def _sound(fix: Fix) -> bool:
    """Whether a rule could have offered it: its edits are apart, in order, and change nothing twice."""
    ends = [(edit.start, edit.end) for edit in fix.edits]
    apart = all(a[1] <= b[0] and a[0] < b[0] for a, b in pairwise(ends))
    return apart and not any(letter in "xy" for edit in fix.edits for letter in edit.text)
