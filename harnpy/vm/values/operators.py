"""What operators, subscripts, properties and assignments do to any values. Spec: 02 §2–4, §8, §13, §14, §30.

Generated code handles the common kinds in line and comes here when its guards fail, so everything is
exact and complete here: the wrapping, every kind and every message.
"""

from __future__ import annotations

import math
from sys import getrefcount

from harnpy.faults import TooLarge
from harnpy.vm.errors import PlainFault, RuntimeFault, TypeFault
from harnpy.vm.values import EnumValue, Pair, Range, Set, Struct, display, type_name
from harnpy.vm.values.equality import compare, contains_value, equal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from harnpy.vm.values import Value

    Path = tuple[tuple[str, Any], ...]

# How large a result may be: what is known to be larger is refused before it is made. Spec: 02 §30.


MOST_ITEMS = 1 << 24
MOST_CHARACTERS = 1 << 28


class Sizes:
    """The most ``items`` of a list, set or dict and ``characters`` of a string that one step may make.

    Bytes count as characters.
    """

    __slots__ = ("characters", "items")

    def __init__(self) -> None:
        self.items = MOST_ITEMS
        self.characters = MOST_CHARACTERS

    def check_items(self, count: int) -> None:
        """Raise TooLarge when a collection of ``count`` items is too large."""
        if count > self.items:
            raise TooLarge(f"{count} items", self.items)

    def check_text(self, length: int) -> None:
        """Raise TooLarge when a string of ``length`` characters is too long."""
        if length > self.characters:
            raise TooLarge(f"{length} characters", self.characters)

    def check_bytes(self, length: int) -> None:
        """Raise TooLarge when ``length`` bytes are too many."""
        if length > self.characters:
            raise TooLarge(f"{length} bytes", self.characters)


_SIGN_BIT = 1 << 63
_WORD = 1 << 64
#: Larger exponents are left to floats.
_MAX_INT_EXPONENT = 4294967295

eq = equal


# Arithmetic: 02 §2, §4.1


def wrap(x: Value) -> Value:
    """An int reduced to signed 64 bits; a float as it is."""
    if type(x) is int:
        return ((x + _SIGN_BIT) & (_WORD - 1)) - _SIGN_BIT
    return x


def add(a: Value, b: Value) -> Value:
    if _are_numbers(a, b):
        return wrap(a + b)
    kind = type(a)
    if kind is type(b):
        if kind is str or kind is list:
            return a + b
        if kind is dict:
            return {**a, **b}
    raise TypeFault(f"Cannot add {type_name(a)} and {type_name(b)}")


def sub(a: Value, b: Value) -> Value:
    if _are_numbers(a, b):
        return wrap(a - b)
    raise TypeFault(f"Cannot subtract {type_name(b)} from {type_name(a)}")


def mul(a: Value, b: Value) -> Value:
    if _are_numbers(a, b):
        return wrap(a * b)
    if type(a) is str and type(b) is int:
        return repeated(a, b)
    if type(a) is int and type(b) is str:
        return repeated(b, a)
    raise TypeFault(f"Cannot multiply {type_name(a)} and {type_name(b)}")


def repeated(text: str, times: int) -> str:
    """``text`` several times over. Raises TooLarge when it would be too long."""
    Sizes().check_text(len(text) * times)
    return text * times


def div(a: Value, b: Value) -> Value:
    """Ints truncate toward zero; floats follow IEEE, so that a zero divisor gives inf or NaN."""
    if not _are_numbers(a, b):
        raise RuntimeFault(f"Cannot divide {type_name(a)} by {type_name(b)}")
    if type(a) is int and type(b) is int:
        if b == 0:
            raise PlainFault("Division by zero")
        quotient = abs(a) // abs(b)
        return wrap(quotient if (a < 0) == (b < 0) else -quotient)
    if b == 0:
        return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1, b)
    return a / b


def mod(a: Value, b: Value) -> Value:
    """The remainder with the sign of the dividend; a zero divisor is an error even among floats."""
    if not _are_numbers(a, b):
        raise RuntimeFault(f"Cannot modulo {type_name(a)} by {type_name(b)}")
    if b == 0:
        raise PlainFault("Division by zero")
    if type(a) is int and type(b) is int:
        remainder = abs(a) % abs(b)
        return remainder if a >= 0 else -remainder
    return math.nan if math.isinf(a) else math.fmod(a, b)


def power(a: Value, b: Value) -> Value:
    """Spec: 02 §2.3. Ints wrap; a negative or enormous exponent, or a float, makes it a float."""
    if not _are_numbers(a, b):
        raise TypeFault(f"Cannot exponentiate {type_name(a)} by {type_name(b)}")
    if type(a) is int and type(b) is int and 0 <= b <= _MAX_INT_EXPONENT:
        return wrap(pow(a, b, _WORD))
    return _float_power(float(a), float(b))


def neg(a: Value) -> Value:
    if type(a) is int or type(a) is float:
        return wrap(-a)
    raise RuntimeFault(f"Cannot negate value of type {type_name(a)}")


def _are_numbers(a: Value, b: Value) -> bool:
    return (type(a) is int or type(a) is float) and (type(b) is int or type(b) is float)


def _float_power(a: float, b: float) -> float:
    """C's `pow`, of which `math.pow` turns the infinite and undefined results into errors."""
    try:
        return math.pow(a, b)
    except ValueError:
        if a != 0:
            return math.nan
    except OverflowError:
        pass
    odd = math.fmod(b, 2) != 0
    return math.copysign(math.inf, a) if odd else math.inf


# Comparison and membership: 02 §3


def ne(a: Value, b: Value) -> bool:
    return not equal(a, b)


def lt(a: Value, b: Value) -> bool:
    return compare(a, b) < 0


def gt(a: Value, b: Value) -> bool:
    return compare(a, b) > 0


def le(a: Value, b: Value) -> bool:
    return compare(a, b) <= 0


def ge(a: Value, b: Value) -> bool:
    return compare(a, b) >= 0


def in_(x: Value, container: Value) -> bool:
    """``x in container``; false, not an error, where nothing can be contained."""
    kind = type(container)
    if kind is list:
        return contains_value(container, x)
    if kind is dict or kind is str:
        return display(x) in container
    if kind is Set:
        return contains_value(container.items, x)
    return kind is Range and x in container


# Reading: 02 §14


def index(o: Value, i: Value) -> Value:
    """``o[i]``. Spec: 02 §14.2."""
    kind = type(o)
    if kind is dict:
        return o.get(display(i))
    if type(i) is int:
        if kind is list or kind is str:
            return o[i] if -len(o) <= i < len(o) else None
        if kind is Range:
            return _range_item(o, i)
    raise TypeFault(f"cannot index into {type_name(o)} with {type_name(i)}")


def _range_item(r: Range, i: int) -> int:
    item = r.at(i)
    if item is None:
        raise RuntimeFault(f"range index out of range: index {i} for range of length {r.size}")
    return item


def slice_(o: Value, a: Value, b: Value) -> Value:
    """``o[a:b]``; nil is an omitted bound. Spec: 02 §14.3."""
    if type(o) is not list and type(o) is not str:
        raise TypeFault(f"cannot slice {type_name(o)}")
    for which, bound in (("start", a), ("end", b)):
        if bound is not None and type(bound) is not int:
            raise TypeFault(f"slice {which} must be an integer, got {type_name(bound)}")
    return o[a:b]


def get_prop(o: Value, name: str) -> Value:
    """``o.name``. Spec: 02 §14.1, 04 §3."""
    kind = type(o)
    if kind is dict or kind is Struct:
        return o.get(name)
    read = _PROPERTIES.get(kind)
    if read is None:
        raise TypeFault(f"cannot access property `{name}` on {type_name(o)}")
    return read(o, name)


def get_prop_optional(o: Value, name: str) -> Value:
    """``o?.name``: nil where the plain form has nothing to read from. Spec: 02 §14.5."""
    kind = type(o)
    if kind is dict or kind is Struct:
        return o.get(name)
    if kind is Pair and name not in ("first", "second"):
        return None
    read = _PROPERTIES.get(kind)
    return read(o, name) if read else None


def get_path(o: Value, names: tuple[str, ...]) -> Value:
    """``o.a.b.c``."""
    for name in names:
        o = get_prop(o, name)
    return o


def _sequence_property(o: list[Value] | str, name: str) -> Value:
    if name == "count":
        return len(o)
    if name == "empty":
        return not o
    if type(o) is list and o and name in ("first", "last"):
        return o[0 if name == "first" else -1]
    return None


def _enum_property(o: EnumValue, name: str) -> Value:
    if name == "variant":
        return o.variant
    return list(o.fields) if name == "fields" else None


def _pair_property(o: Pair, name: str) -> Value:
    if name == "first":
        return o.first
    if name == "second":
        return o.second
    raise TypeFault(f"cannot access property `{name}` on pair (expected `first` or `second`)")


_PROPERTIES: dict[type, Any] = {
    list: _sequence_property,
    str: _sequence_property,
    EnumValue: _enum_property,
    Pair: _pair_property,
}


#: What those functions know, by kind, for checks and completion. Any other property is nil, or an error.
PROPERTIES: dict[str, tuple[str, ...]] = {
    "list": ("count", "empty", "first", "last"),
    "string": ("count", "empty"),
    "enum": ("variant", "fields"),
    "pair": ("first", "second"),
}


# Writing, always into a copy: 02 §8


def set_prop(o: Value, name: str, v: Value) -> Value:
    """``o`` with ``name`` set."""
    if type(o) is dict:
        return {**o, name: v}
    if type(o) is Struct:
        return Struct(o.type, {**o, name: v})
    raise TypeFault(f"cannot set property `{name}` on {type_name(o)}")


def set_index(o: Value, i: Value, v: Value) -> Value:
    """``o`` with ``[i]`` set; ``o`` itself where subscript assignment means nothing."""
    if type(o) is dict:
        return {**o, display(i): v}
    if type(o) is not list or type(i) is not int:
        return o
    if not -len(o) <= i < len(o):
        raise RuntimeFault(f"Index {i} out of bounds for list of length {len(o)}")
    changed = o.copy()
    changed[i] = v
    return changed


# Ranges, spreading and taking apart: 02 §4.4, §11.2, §13, §16


def range_to(a: Value, b: Value, exclusive: bool) -> Range:
    """``a to b [exclusive]``; a bound that isn't an int counts as 0."""
    return Range(a if type(a) is int else 0, b if type(b) is int else 0, exclusive)


def destructure_list(v: Value) -> list[Value]:
    """``v`` itself, which must be a list: for ``[a, b]`` patterns and ``...v`` in lists and calls."""
    if type(v) is list:
        return v
    raise TypeFault(f"cannot destructure {type_name(v)} with [...] pattern — expected list")


def destructure_dict(v: Value) -> dict[str, Value]:
    """``v`` itself, which must be a dict: for ``{a, b}`` patterns and ``...v`` in dicts."""
    if type(v) is dict:
        return v
    raise TypeFault(f"cannot destructure {type_name(v)} with {{...}} pattern — expected dict")


spread_list = destructure_list
spread_dict = destructure_dict


def iterate_for(v: Value) -> Iterable[Value]:
    """Return what ``for`` runs over: nothing at all for a string, nil or anything else without items."""
    kind = type(v)
    if kind is list:
        return v  # type: ignore[no-any-return]
    if kind is Range:
        return range(v.first, v.stop)
    if kind is dict:
        return [{"key": key, "value": v[key]} for key in sorted(v)]
    if kind is Set:
        return v.items  # type: ignore[no-any-return]
    if kind in _NEVER_ITERATED:
        return ()
    return v if hasattr(kind, "__iter__") else ()


def whole_items(v: Value) -> Sequence[Value] | None:
    """The items of a list or range; None for what isn't there as a whole."""
    return v if type(v) is list else range(v.first, v.stop) if type(v) is Range else None


#: Iterable to Python, not to Harn.
_NEVER_ITERATED = frozenset({str, bytes, Struct})


# Copy-on-write that copies only when another holder could see the change. Spec: 02 §8.
#
# Harn's lists and dicts are values: assigning to a part of one rebinds the variable to an updated copy.
# When the variable is the only holder the copy would be garbage at once, so the object itself is
# updated. CPython's reference count shows this: every alias (another variable, a container, a captured value,
# a running loop, an argument) is a counted reference. How many references a sole holder shows depends on
# the interpreter, so the two constants are measured here, through the code shapes that use them.


def _held() -> int:
    fresh: list[int] = []
    return getrefcount(fresh)


def _received(value: list[int]) -> int:
    return getrefcount(value)


def _passed() -> int:
    fresh: list[int] = []
    return _received(fresh)


def _element() -> int:
    outer: list[list[int]] = [[]]
    fresh = outer[0]
    return getrefcount(fresh)


def _received_element(outer: list[list[int]], value: list[int]) -> int:
    part = outer[0]
    return getrefcount(value if part is value else None)


def _passed_element() -> int:
    outer: list[list[int]] = [[]]
    fresh = outer[0]
    return _received_element(outer, fresh)


#: What `getrefcount(x)` returns when the local variable ``x`` is the only holder …
SOLE = _held()
#: … when that variable was also passed on to the function that calls it …
_SOLE_PASSED = _passed()
#: … when a container holds the object and a variable was set to it …
_SOLE_ELEMENT = _element()
#: … and when that variable was passed on to the function that asks, which has looked at the element, too.
_SOLE_PASSED_ELEMENT = _passed_element()


def store_path(root: Any, path: Path, value: Any) -> Any:
    """``root`` with the place that ``path`` leads to set to ``value``; ``x = store_path(x, …)``."""
    sole = getrefcount(root) == _SOLE_PASSED
    return _store(root, path, 0, value, sole)


def sole_holder(root: Any, path: Path, value: Any) -> Any:
    """Return what holds ``value`` at the place that ``path`` leads to; None if anything else holds it.

    Nothing else: the variable passed as ``root`` and each container on the way are the only holders of what
    is below them, and besides the place only the variable passed as ``value`` holds it. So nobody can tell
    whether the value is changed or a changed copy takes its place.
    """
    if getrefcount(root) != _SOLE_PASSED:
        return None
    holder = root
    for kind, key in path[:-1]:
        holder = _stored(holder, kind, key)
        if getrefcount(holder) != _SOLE_ELEMENT:
            return None
    part = _stored(holder, *path[-1])
    return holder if part is value and getrefcount(value) == _SOLE_PASSED_ELEMENT else None


def _stored(holder: Any, kind: str, key: Any) -> Any:
    """Return what is stored in ``holder`` under ``key``; None for what is not, or computed."""
    if kind == "index" and type(holder) is dict and type(key) is not str:
        key = display(key)
    if not _plain(holder, kind, key):
        return None
    return holder[key] if type(holder) is list else holder.get(key)


def _store(holder: Any, path: Path, at: int, value: Any, sole: bool) -> Any:
    kind, key = path[at]
    if at < len(path) - 1:
        child = _read(holder, kind, key)
        child_sole = getrefcount(child) == _SOLE_ELEMENT
        # Only what is stored in the holder under this very key may change in it: `xs.first` is a copy.
        child_sole = child_sole and sole and _plain(holder, kind, key)
        updated = _store(child, path, at + 1, value, child_sole)
        if updated is child:
            return holder
        value = updated
    if sole and _plain(holder, kind, key):
        holder[key] = value
        return holder
    return set_prop(holder, key, value) if kind == "prop" else set_index(holder, key, value)


def _plain(holder: Any, kind: str, key: Any) -> bool:
    """Return True if ``holder[key] = value`` in Python is what the assignment means."""
    if type(holder) is list:
        return kind == "index" and type(key) is int and 0 <= key < len(holder)
    if type(holder) is Struct:
        return kind == "prop"
    return type(holder) is dict and type(key) is str


def read_path(root: Any, path: Path) -> Any:
    """The value at the place that ``path`` leads to."""
    for kind, key in path:
        root = _read(root, kind, key)
    return root


def _read(holder: Any, kind: str, key: Any) -> Any:
    return get_prop(holder, key) if kind == "prop" else index(holder, key)
