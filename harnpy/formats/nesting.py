"""Values that can't be written out: nested too deep, or with parts that are shared without end.

Spec: 02 §30, 04 §11.1, §11.5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any

from harnpy.faults import BATCH, TooLarge, look, paced

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
#: As many as any number of parts above.
_ENDLESS = 1 << 63
_EMPTY = frozenset((list, dict, tuple))
PLAIN = frozenset((int, str, float, bool, type(None)))


def refuse_endless(value: Value) -> None:
    """Raise TooLarge when a value with parts, written out, is out of all proportion to what it is made of."""
    if not _has_parts(value) or _is_tree(value):
        return
    # How many parts each part has when it is written out, and the part, whose id nothing else can then have;
    # while it is being counted it has no end, as what contains itself has none.
    counted: dict[int, tuple[int, Value]] = {}
    there, parts, owner, rest = 0, 0, value, iter(paced(_parts(value)))
    above: list[tuple[int, Value, Iterator[Any]]] = []
    while True:
        for part in rest:
            there += 1
            parts += 1
            if type(part) in PLAIN or not _has_parts(part):
                continue
            known = counted.get(id(part))
            if known is not None:
                parts += known[0]
                continue
            inside = _parts(part)
            look(len(inside))
            if PLAIN.issuperset(map(type, inside)):  # as most are that hold no others
                counted[id(part)] = len(inside), part
                there += len(inside)
                parts += len(inside)
                continue
            above.append((parts, owner, rest))
            counted[id(part)] = _ENDLESS, part
            parts, owner, rest = 0, part, iter(paced(inside))
            break
        else:
            if not above:
                break
            inner = min(parts, _ENDLESS)
            counted[id(owner)] = inner, owner
            parts, owner, rest = above.pop()
            parts += inner
    if parts > _MOST_PARTS and parts > _MOST_REPEATED * there:
        raise TooLarge(f"{min(parts, _ENDLESS)} parts, of which most are shared", _MOST_PARTS)


def _is_tree(value: Value) -> bool:
    """Return whether no part of a value with parts is there twice: written out, it is as long as it is."""
    level, seen = [value], {id(value)}
    while level:
        parts = chain.from_iterable(map(_inside, level))
        level = []
        while batch := [*islice(parts, BATCH)]:
            look(len(batch))
            inner = [part for part in batch if type(part) not in PLAIN and _is_filled(part)]
            ids = set(map(id, inner))
            if len(ids) < len(inner) or not seen.isdisjoint(ids):
                return False
            seen |= ids
            level += inner
    return True


def _inside(part: Value) -> Iterable[Any]:
    return part.values() if type(part) is dict else _parts(part)


def _is_filled(value: Value) -> bool:
    """Return whether something other than plain data has parts."""
    kind = type(value)
    return bool(value) if kind in _EMPTY else hasattr(kind, "parts")


def _has_parts(value: Value) -> bool:
    kind = type(value)
    return kind not in PLAIN and (kind is list or kind is dict or kind is tuple or hasattr(kind, "parts"))


def _parts(value: Value) -> Any:
    if isinstance(value, dict):
        return list(value.values())
    return value if type(value) in (list, tuple) else value.parts()
