"""Values that can't be written out: nested too deep, or with parts that are shared without end.

Spec: 02 §30, 04 §11.1, §11.5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from harnpy.faults import TooLarge

Value = Any

#: As in JSON.
DEEPEST = 128
TOO_DEEP = "recursion limit exceeded"


def list_items(value: Any) -> list[Any] | None:
    """Return the items of a list, None for anything else."""
    return value if isinstance(value, list) else None


def refuse_deep(value: Any, items: Callable[[Any], list[Any] | None] = list_items) -> None:
    """Raise ValueError for containers in more than `DEEPEST` levels; ``items``: those of a list or set."""

    level = [value]
    for _ in range(DEEPEST):
        inner = {id(item): item for outer in level for item in _items_of(outer, items)}
        level = [item for item in inner.values() if isinstance(item, dict) or items(item) is not None]
        if not level:
            return
    raise ValueError(TOO_DEEP)


def _items_of(container: Any, items: Callable[[Any], list[Any] | None]) -> Iterable[Any]:
    return container.values() if isinstance(container, dict) else items(container) or ()


# Values whose parts are shared so often that writing them out would never end: `x = [x, x]`, sixty times.
#
# Spec: 02 §30.


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
