"""Line diffs: a shortest script of deletions and insertions. Spec: 08 §8.6.

Myers' greedy algorithm ("An O(ND) Difference Algorithm and Its Variations", 1986), on the lines that both
texts have: any other line is deleted or inserted in every script.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Lines = Sequence[str]

_PATH = "artifact"


def unified(path: str | None, before: str, after: str) -> str:
    """Return all lines of both texts, marked with a space, `-` or `+`. `-` comes first where lines are
    replaced."""
    old, new = lines_of(before), lines_of(after)
    name = path or _PATH
    return "".join([f"--- a/{name}\n", f"+++ b/{name}\n", *(f"{line}\n" for line in _marked(old, new))])


def lines_of(text: str) -> list[str]:
    """Split into lines without their ends; a line end at the very end starts no other line."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def _marked(old: Lines, new: Lines) -> Iterator[str]:
    x = y = 0
    for next_x, next_y in [*matches(old, new), (len(old), len(new))]:
        yield from ("-" + line for line in old[x:next_x])
        yield from ("+" + line for line in new[y:next_y])
        if next_x < len(old):
            yield " " + old[next_x]
        x, y = next_x + 1, next_y + 1


def matches(old: Lines, new: Lines) -> list[tuple[int, int]]:
    """Return the positions of equal lines that a shortest script keeps, in order."""
    shared = set(old) & set(new)
    xs = [x for x, line in enumerate(old) if line in shared]
    ys = [y for y, line in enumerate(new) if line in shared]
    kept = _kept([old[x] for x in xs], [new[y] for y in ys])
    return [(xs[x], ys[y]) for x, y in kept]


def _kept(old: Lines, new: Lines) -> list[tuple[int, int]]:
    """Walk back from the end along the furthest points, one step for each deletion or insertion."""
    kept = []
    rounds = _rounds(old, new)
    x, y = len(old), len(new)
    for d in range(len(rounds) - 1, -1, -1):
        diagonal = (x - y + d) // 2
        start, inserted = _step(rounds[d - 1] if d else [], diagonal, d)
        while x > start:
            x, y = x - 1, y - 1
            kept.append((x, y))
        x, y = (x, y - 1) if inserted else (x - 1, y)
    return kept[::-1]


def _rounds(old: Lines, new: Lines) -> list[list[int]]:
    """Return how far one gets in `old` with 0, 1, 2 … deletions and insertions, until both texts are done.

    In round d, item i is about the diagonal ``x - y = 2 * i - d``.
    """
    goal = len(old) - len(new)
    rounds: list[list[int]] = []
    while True:
        d = len(rounds)
        furthest = []
        for i in range(d + 1):
            x, _ = _step(rounds[-1] if d else [], i, d)
            y = x - 2 * i + d
            while x < len(old) and y < len(new) and old[x] == new[y]:
                x, y = x + 1, y + 1
            furthest.append(x)
        rounds.append(furthest)
        if abs(goal) <= d and (goal + d) % 2 == 0 and furthest[(goal + d) // 2] >= len(old):
            return rounds


def _step(former: list[int], i: int, d: int) -> tuple[int, bool]:
    """Return where round d enters a diagonal, and whether by an insertion (else by a deletion)."""
    if d == 0:
        return 0, False
    inserts = i == 0 or (i < d and former[i - 1] < former[i])
    return (former[i], True) if inserts else (former[i - 1] + 1, False)
