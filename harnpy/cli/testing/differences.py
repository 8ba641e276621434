"""How the values of a failed `assert_eq` differ, as lines, with marks below the parts. Spec: 09 §3.2."""

from __future__ import annotations

from harnpy.cli.console import harmless
from harnpy.formats.visible import cells

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.vm.values import Value

#: Columns of a line that shows a value, and of one of which a part is shown; lines of a difference.
_WIDTH, _LONG, _MOST_LINES = 80, 160, 100
#: Characters before the first one that differs where a part is shown.
_BEFORE = 40
#: The first line of a folded difference.
HEAD = "- expected"


def difference(actual: Value, expected: Value) -> list[str]:
    """Return the lines; none for values that are too deep or too large to be shown."""
    from harnpy.cli.value_views import shown

    try:
        left, right = shown(expected, _WIDTH, blocks=True), shown(actual, _WIDTH, blocks=True)
        if len(left) == len(right) == 1:
            left, right = shown([expected]), shown([actual])  # texts in quotes
            return list(_pair("expected: ", left[0][1:-1], "actual:   ", right[0][1:-1]))
        # Both are folded, or nothing stands beside what it is compared with.
        if len(left) == 1:
            left = shown(expected, cells(left[0]) - 1, blocks=True)
        if len(right) == 1:
            right = shown(actual, cells(right[0]) - 1, blocks=True)
    except (RecursionError, MemoryError):
        return []  # the error's own text says as much as can be said
    lines = [HEAD, "+ actual", *_folded(left, right)]
    return lines[:_MOST_LINES] + (["  …"] if len(lines) > _MOST_LINES else [])


def _folded(left: list[str], right: list[str]) -> Iterator[str]:
    from difflib import unified_diff

    gone: list[str] = []
    come: list[str] = []
    for line in [*list(unified_diff(left, right, n=2, lineterm=""))[2:], "@@"]:
        if line[0] in "-+":
            (gone if line[0] == "-" else come).append(line[1:])
            continue
        yield from _changed(gone, come)
        gone, come = [], []
        if not line.startswith("@@"):
            yield f"  {harmless(line[1:])}".rstrip()
        elif line != "@@" and not line.startswith(("@@ -1 ", "@@ -1,")):
            yield "  …"


def _changed(gone: list[str], come: list[str]) -> Iterator[str]:
    """Yield lines that took the place of others: one by one where there are as many."""
    if len(gone) == len(come):
        for old, new in zip(gone, come, strict=True):
            yield from _pair("- ", old, "+ ", new)
        return
    yield from (f"- {harmless(line)}".rstrip() for line in gone)
    yield from (f"+ {harmless(line)}".rstrip() for line in come)


def _pair(before_old: str, old: str, before_new: str, new: str) -> Iterator[str]:
    """Yield two lines, and marks below what they don't have in common, if they have anything."""
    old, new = harmless(old), harmless(new)
    same = _common(old, new)
    same_end = _common(old[same:][::-1], new[same:][::-1])
    if max(cells(old), cells(new)) > _LONG:
        start = max(same - _BEFORE, 0)
        old, new, same = _part(old, start), _part(new, start), same - start + (start > 0)
        same_end = min(same_end, _common(old[same:][::-1], new[same:][::-1]))
    yield f"{before_old}{old}".rstrip()
    yield f"{before_new}{new}".rstrip()
    if (old[:same].strip() or same_end) and (same < len(new) or same < len(old)):
        marks = max(cells(new[same : len(new) - same_end]), 1)
        yield " " * (len(before_new) + cells(new[:same])) + "^" * marks


def _part(text: str, start: int) -> str:
    end = start + _LONG - 2
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"


def _common(left: str, right: str) -> int:
    """Return how many characters two texts begin with are the same."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(left), len(right)))
