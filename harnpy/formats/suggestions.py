"""Suggestions: the nearest name for every "did you mean", and the words about a method that isn't there.

The same before the run and during it. Spec: 02 §9.3, 03 §9, 04 §3.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

#: How far a name may be off in a static check.
STATIC_LIMIT = 2


def nearest(name: str, candidates: Iterable[str], *, limit: int) -> str | None:
    """Return the candidate at the smallest Levenshtein distance, 1 to ``limit``; the first of several.

    One that is two or more off, or one off a single letter, must begin alike, have the same letters, or
    contain the name or be within it: `nane` isn't near `range`.
    """
    best, best_distance, free = None, limit + 1, min(2, len(name))
    for candidate in candidates:
        if abs(len(candidate) - len(name)) >= best_distance or candidate == name:
            continue
        found = distance(name, candidate, best_distance)
        if found < best_distance and (found < free or _is_alike(name, candidate)):
            best, best_distance = candidate, found
    return best


def _is_alike(name: str, candidate: str) -> bool:
    if name[:1].lower() == candidate[:1].lower() or sorted(name) == sorted(candidate):
        return True
    return name in candidate or candidate in name


def nearest_at_run_time(name: str, candidates: Iterable[str]) -> str | None:
    """Return it by the run-time rules: the limit grows with the name; ties go by length, then alphabet."""
    limit, size = runtime_limit(name), len(name)
    close = (
        candidate
        for candidate in candidates
        if abs(len(candidate) - size) <= limit and not candidate.startswith("__")
    )
    order = sorted(close, key=lambda candidate: (abs(len(candidate) - size), candidate))
    return nearest(name, order, limit=limit)


def hint(name: str, known: Iterable[str]) -> str:
    """Return how an error about an unknown name ends: with the nearest ``known`` one, or all of them."""
    names = list(known)
    near = nearest(name, names, limit=3)
    return f"did you mean `{near}`?" if near else f"known are {', '.join(names)}"


def runtime_limit(name: str) -> int:
    """Return how far a name may be off at run time, by its length in bytes."""
    size = len(name.encode("utf-8", "surrogatepass"))
    return 1 if size <= 2 else 2 if size <= 5 else 3


def distance(left: str, right: str, enough: int | None = None) -> int:
    """Return the Levenshtein distance: insertions, deletions and replacements of one character.

    With ``enough``, a distance of that or more may be told as any that is no less.
    """
    previous = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        current = [i]
        for j, b in enumerate(right, 1):
            current.append(min(previous[j] + 1, current[-1] + 1, previous[j - 1] + (a != b)))
        previous = current
        if enough is not None and min(current) >= enough:
            return enough
    return previous[-1]


def unknown_method(
    kind: str, name: str, hint: str, *, has_methods: bool, struct: str = "", is_field: bool = False
) -> str:
    """Return what is wrong with a call of ``name`` on a value of ``kind``; ``hint`` ends it.

    ``has_methods``: the kind has some. Of a struct, ``struct`` is the name; ``is_field``: it has a field
    called so.
    """
    if struct:
        end = f" (`{name}` is a field; bind it to a name before calling it)" if is_field else hint
        return f"unknown method `{name}` on struct {struct}{end}"
    if not has_methods:
        return f"cannot call method `{name}` on {kind}{hint}"
    rest = ", and no entry of that name" if kind == "dict" else ""
    return f"unknown method `{name}` on {kind}{rest}{hint}"
