"""``==``, the three-way order and the structural key. Spec: 02 §3, 04 §0.6.

`harnpy.vm.values` re-exports all of it. Plain Python values are compared here; any other value class
defines `parts()`, `equals()` and `compares()` (see `harnpy.vm.values`). Python's
own `==` on containers is avoided: it confuses bools with ints and eats C stack on deep nesting.
"""

from __future__ import annotations

from harnpy.faults import BATCH, TooLarge, look, paced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence
    from typing import Any

    from harnpy.vm.values import Value

    #: Pairs of parts by their ids.
    Known = dict[tuple[int, int], tuple[Value, Value]]

#: Kinds on which Python's `==` is Harn's, given that both sides have the kind.
_SCALARS = frozenset({str, int, float, bool, bytes, type(None)})

#: Parts of a value that is looked for among others; what is shared counts each time.
MOST_TOKENS = 1 << 20

#: From here on an int may have no exact float, so that Python's mixed comparison and Harn's (which
#: converts the int first) part ways.
_EXACT_FLOAT_LIMIT = 2**53


def equal(a: Value, b: Value, known: Known | None = None) -> bool:
    """Harn's ``==``: structural, int and float numerically; never raises. Spec: 02 §3.1.

    ``known`` are the parts that were found equal on the way here: shared ones are compared once.
    """
    kind = type(a)
    if kind is not type(b):
        return _is_number(a) and _is_number(b) and float(a) == float(b)
    if kind in _SCALARS:
        return a == b  # type: ignore[no-any-return]
    if kind is list:
        return _equal_items(a, b, known)
    if kind is dict:
        return _equal_entries(a, b, known)
    equals = getattr(a, "equals", None)
    if equals is not None:
        return equals(b)  # type: ignore[no-any-return]
    parts = getattr(a, "parts", None)
    if parts is None:
        return False
    if getattr(a, "unordered", False):
        return _equal_members(parts(), b.parts())
    return _equal_items(parts(), b.parts(), known)


def compare(a: Value, b: Value) -> int:
    """-1, 0 or 1 as ``a`` sorts before, with or after ``b``; what has no order is 0. Spec: 02 §3.2."""
    kind = type(a)
    if kind is type(b):
        if kind is int or kind is float or kind is str:
            return (a > b) - (a < b)  # type: ignore[no-any-return]
        compares = getattr(a, "compares", None)
        return compares(b) if compares else 0
    if _is_number(a) and _is_number(b):
        a, b = float(a), float(b)
        return (a > b) - (a < b)  # type: ignore[no-any-return]
    return 0


def contains_value(items: Iterable[Value], x: Value) -> bool:
    """Return True if some item is ``==`` to ``x``."""
    kind = type(x)
    # Where Python's `in` agrees with Harn's `==`: not for 0 and 1, which are False and True to Python,
    # nor beyond 2^53, where Harn compares ints with floats as floats.
    if kind is str or (kind is int and (1 < x < _EXACT_FLOAT_LIMIT or -_EXACT_FLOAT_LIMIT < x < 0)):
        return x in items
    for item in items:  # noqa: SIM110 - `any` of a generator would recurse through C
        if equal(item, x):
            return True
    return False


def _is_exact(x: Value) -> bool:
    """Return True if Python's `==` and `hash` serve for comparing ``x`` with anything but a bool."""
    return type(x) is str or (_is_number(x) and -_EXACT_FLOAT_LIMIT < x < _EXACT_FLOAT_LIMIT)


class Members:
    """Distinct values by `==`, in order of arrival; strings and usual numbers are found by hash."""

    __slots__ = ("_exact", "_others", "items")

    def __init__(self, items: Iterable[Value] = ()) -> None:
        self.items: list[Value] = []
        self._exact: set[str | int | float] = set()
        self._others: list[Value] = []
        for item in items:
            self.add(item)

    def add(self, item: Value) -> None:
        """Append ``item`` unless an equal one is there."""
        if self.has(item):
            return
        self.items.append(item)
        if _is_exact(item):
            self._exact.add(item)
        else:
            self._others.append(item)

    def has(self, x: Value) -> bool:
        if _is_exact(x):
            return x in self._exact
        return contains_value(paced(self._others), x)


def structural_key(value: Value) -> Hashable:
    """A hashable that two values share when they are equal *and* of the same types. Spec: 02 §3.4.

    A string, an int and nil are their own keys. Anything else is a flat tuple, each value written as
    its Python type, its size and then its parts, so that no two structures share a spelling and
    hashing never recurses. Values that are never equal (closures, channels) stand for themselves.
    """
    if type(value) is str or type(value) is int or value is None:
        return value
    return tuple(_tokens(value))


def _tokens(value: Value) -> list[Any]:
    tokens: list[Any] = []
    waiting = [value]
    left = BATCH
    while waiting:
        left -= 1
        if not left:
            left = BATCH
            look()
        item = waiting.pop()
        kind = type(item)
        if kind is str or kind is int or item is None:
            tokens.append(item)
        elif kind in _SCALARS:
            # Adding 0.0 makes one zero of two; NaN by name, for it has no equal.
            tokens += [kind, "NaN" if item != item else item + 0.0 if kind is float else item]
        else:
            parts = _parts(item)
            if parts is None:
                tokens.append(item)
                continue
            tokens += [kind, len(parts)]
            if len(tokens) > MOST_TOKENS:
                raise TooLarge(f"{len(tokens)} parts to compare", MOST_TOKENS)
            if getattr(kind, "unordered", False):
                for part in sorted([_tokens(part) for part in parts], key=repr):
                    tokens += part
            else:
                waiting += reversed(parts)
    return tokens


def _parts(value: Value) -> Sequence[Value] | None:
    kind = type(value)
    if kind is list:
        return value  # type: ignore[no-any-return]
    if kind is dict:
        return [part for key in sorted(value) for part in (key, value[key])]
    parts = getattr(value, "parts", None)
    return parts() if parts else None


def _is_number(x: Value) -> bool:
    return type(x) is int or type(x) is float


def _equal_items(a: Sequence[Value], b: Sequence[Value], known: Known | None) -> bool:
    if len(a) != len(b):
        return False
    for x, y in zip(paced(a), b, strict=True):
        kind = type(x)
        if kind is type(y) and kind in _SCALARS:
            if x != y:
                return False
        else:
            known = {} if known is None else known
            if not _equal_parts(x, y, known):
                return False
    return True


def _equal_parts(x: Value, y: Value, known: Known) -> bool:
    pair = id(x), id(y)
    if pair in known:
        return True
    if not equal(x, y, known):
        return False
    # With the parts themselves, whose ids nothing else can then have.
    known[pair] = x, y
    return True


def _equal_members(a: Sequence[Value], b: Sequence[Value]) -> bool:
    """As many, and each has an equal one on the other side; 1 and 1.0 in one set count once."""
    if len(a) != len(b):
        return False
    mine, theirs = Members(paced(a)), Members(paced(b))
    if len(mine.items) != len(theirs.items):
        return False
    for item in paced(mine.items):  # noqa: SIM110 - as above
        if not theirs.has(item):
            return False
    return True


def _equal_entries(a: dict[str, Value], b: dict[str, Value], known: Known | None) -> bool:
    if len(a) != len(b):
        return False
    known = {} if known is None else known
    for key, x in paced(list(a.items())):
        if key not in b:
            return False
        y = b[key]
        kind = type(x)
        if kind is type(y) and kind in _SCALARS:
            if x != y:
                return False
        elif not _equal_parts(x, y, known):
            return False
    return True
