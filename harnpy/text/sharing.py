"""Values whose parts are shared so often that writing them out would never end: `x = [x, x]`, sixty times.

Spec: 02 §30.
"""

from __future__ import annotations

from harnpy.faults import TooLarge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Value = Any

#: A value with more parts, each counted as often as it would be written …
_MOST_PARTS = 1 << 18
#: … is refused when they are so many times those that are really there.
_MOST_REPEATED = 16
_PLAIN = frozenset((int, str, float, bool, type(None)))


def refuse_endless(value: Value) -> None:
    """Raise TooLarge when a value with parts, written out, is out of all proportion to what it is made of."""
    counted: dict[int, int] = {}
    parts = _count(_parts(value), counted)
    if parts > _MOST_PARTS and parts > _MOST_REPEATED * counted[0]:
        raise TooLarge(f"{parts} parts, of which most are shared", _MOST_PARTS)


def _count(items: Any, counted: dict[int, int]) -> int:
    """The number of parts; ``counted`` has that of every part seen, and under 0 how many there really are."""
    total = len(items)
    counted[0] = counted.get(0, 0) + total
    for item in items:
        if _has_parts(item):
            known = counted.get(id(item))
            if known is None:
                known = counted[id(item)] = _count(_parts(item), counted)
            total += known
    return total


def _has_parts(value: Value) -> bool:
    kind = type(value)
    return kind not in _PLAIN and (kind is list or kind is dict or hasattr(kind, "parts"))


def _parts(value: Value) -> Any:
    if isinstance(value, dict):
        return value.values()
    return value if type(value) in (list, tuple) else value.parts()
