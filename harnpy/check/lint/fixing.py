"""Applying the fixes of findings to a text, until there is nothing left to fix. Spec: 03 §15.

No fix can break a program: what has been edited parses, and has every comment that it had.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Sequence

from harnpy.check.findings import Finding
from harnpy.syntax.comments import comments_of
from harnpy.syntax.diagnostic import Edit, Fix, SyntaxFault
from harnpy.syntax.parser import parse
from harnpy.syntax.structure import check_structure

#: A fix may make room for another; no chain of them is longer.
_ROUNDS = 20


def fix_all(
    source: str, look: Callable[[str], Sequence[Finding]], *, unsafe: bool = False
) -> tuple[str, int]:
    """The text with all fixes that ``look`` finds for it, and how many were applied.

    Those that may change what the program does only where ``unsafe`` ones are wanted.
    """
    applied = 0
    for _ in range(_ROUNDS):
        fixes = [one.fix for one in look(source) if one.fix is not None and (unsafe or one.fix.safe)]
        chosen = _apart(fixes)
        changed = apply(source, chosen)
        if not _holds(source, changed):
            # Seldom: one of them is to blame.
            changed, chosen = _applicable(source, chosen)
        if changed == source:
            break
        applied += len(chosen)
        source = changed
    return source, applied


def apply(source: str, fixes: Sequence[Fix]) -> str:
    """``source`` with the edits of the fixes, none of which may overlap, from the last to the first."""
    edits = sorted((edit for fix in fixes for edit in fix.edits), key=lambda edit: edit.start)
    parts, at = [], 0
    for edit in edits:
        parts += [source[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, source[at:]])


def _apart(fixes: Sequence[Fix]) -> list[Fix]:
    """The fixes without those that overlap with one that begins later: later ones go first (03 §15)."""
    chosen: list[Fix] = []
    taken: list[tuple[int, int]] = []
    for fix in sorted(fixes, key=lambda fix: fix.edits[-1].start, reverse=True):
        if all(_is_free(edit, taken) for edit in fix.edits):
            chosen.append(fix)
            for edit in fix.edits:
                insort(taken, (edit.start, edit.end))
    return chosen


def _is_free(edit: Edit, taken: Sequence[tuple[int, int]]) -> bool:
    """Return True if no place in ``taken``, which is sorted, overlaps; two insertions at one offset do."""
    at = bisect_left(taken, (edit.start, edit.start))
    before, after = taken[at - 1 : at], taken[at : at + 1]
    return all(end <= edit.start for _, end in before) and all(
        start >= edit.end and start > edit.start for start, _ in after
    )


def _holds(before: str, after: str) -> bool:
    """Return True if an edited text is still a program, with all of its comments."""
    try:
        program = parse(after)
    except SyntaxFault:
        return False
    if check_structure(program, after) and not check_structure(parse(before), before):
        return False
    return not _comments(before) - _comments(after)


def _comments(source: str) -> Counter[str]:
    """The words of the comments, however those are marked."""
    words = (word for at in comments_of(source) for word in source[at.start : at.end].split())
    return Counter(bare for word in words if (bare := word.strip("/*-")))


def _applicable(source: str, fixes: Sequence[Fix]) -> tuple[str, list[Fix]]:
    """The text with those of the fixes that can be applied, in the order from the last to the first.

    Whole groups are tried first, so that a few bad fixes among many cost few readings of the text.
    """
    chosen: list[Fix] = []
    changed = source
    groups = [fixes]
    while groups:
        group = groups.pop()
        tried = apply(source, [*chosen, *group])
        if _holds(source, tried):
            changed = tried
            chosen += group
        elif len(group) > 1:
            middle = len(group) // 2
            groups += [group[middle:], group[:middle]]
    return changed, chosen
