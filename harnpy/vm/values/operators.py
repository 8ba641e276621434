"""What operators, subscripts, properties and assignments do to any values. Spec: 02 §2–4, §8, §13, §14.

Generated code handles the common kinds in line and comes here when its guards fail, so everything is
exact and complete here: the wrapping, every kind and every message.
"""

from __future__ import annotations

import math

from harnpy.vm.errors import PlainFault, RuntimeFault, TypeFault
from harnpy.vm.values.equality import compare, contains_value, equal
from harnpy.vm.values.objects import EnumValue, Pair, Range, Set, Struct, display, type_name
from harnpy.vm.values.sizes import Sizes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    Value = Any

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
    """What ``for`` runs over: nothing at all for a string, nil or anything else without items."""
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


#: Iterable to Python, not to Harn.
_NEVER_ITERATED = frozenset({str, bytes, Struct})
