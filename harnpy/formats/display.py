"""The one text form of a value, and the name of its type. Spec: 02 §1, §5.

Plain Python values are known here; the classes of the language's other values bring `type_name` and
`display()` themselves (see `harnpy.vm.values`, which re-exports both). Any other object is shown as
Python does. Nested containers recurse through Python functions only, never through `repr`: that costs no C
stack, whatever the depth. On the start-up path: imports nothing heavy.
"""

from __future__ import annotations

from harnpy.faults import paced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Value = Any

#: Integral floats from here on lose their ".0". Spec: 02 §5.
_PLAIN_INTEGRAL_LIMIT = 1e15
_SHOWN_BYTES = 32
#: From how many characters on a text is looked at: it may be of a value whose parts are shared without end.
#: Shorter ones hardly have the parts that `refuse_endless` refuses.
_LONG = 1 << 19


def display(value: Value) -> str:
    """Return the text of ``value``: what `println`, interpolation, `join` and dict keys use.

    Raises TooLarge for a value whose parts are shared without end.
    """
    kind = type(value)
    if kind is str:
        return value  # type: ignore[no-any-return]
    if kind is int:
        return str(value)
    show = _SHOW.get(kind)
    if show:
        return show(value)
    own = getattr(value, "display", None)
    return own() if own else str(value)


def type_name(value: Value) -> str:
    """Return the name that `type_of` gives the type of ``value``."""
    known = TYPE_NAMES.get(type(value)) or getattr(value, "type_name", None)
    if isinstance(known, str):
        return known
    return "closure" if callable(value) else type(value).__name__


def display_fields(fields: dict[str, Value]) -> str:
    """Return ``{key: value, …}`` in ascending key order, as dicts and structs show it."""
    pieces = [f"{key}: {display(fields[key])}" for key in paced(sorted(fields))]
    return "{" + joined(fields, ", ", pieces) + "}"


def display_items(items: list[Value] | tuple[Value, ...]) -> str:
    """Return the items separated by ``, ``."""
    return joined(items, ", ", [display(item) for item in paced(items)])


def joined(owner: Value, separator: str, pieces: list[str]) -> str:
    """Return the texts of the parts of ``owner`` in one. Raises TooLarge where they are shared without end.

    Only a long text can be that of such a value, and only where several parts make it long.
    """
    text = separator.join(pieces)
    if len(text) > _LONG and 10 * max(map(len, pieces)) < 9 * len(text):
        from harnpy.formats.nesting import refuse_endless

        refuse_endless(owner)
    return text


def _float(x: float) -> str:
    """Shortest digits that read back the same, never with an exponent."""
    if x - x != 0:  # not finite; `math` would cost every start its import
        return "NaN" if x != x else str(x)
    text = repr(x)
    if "e" in text:
        return _without_exponent(text)
    return text if abs(x) < _PLAIN_INTEGRAL_LIMIT else text.removesuffix(".0")


def _without_exponent(text: str) -> str:
    """``1.5e-07`` to ``0.00000015``. Only huge (integral) and tiny numbers have an exponent."""
    mantissa, _, exponent = text.partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits, point = whole + fraction, len(whole) + int(exponent)
    return sign + (digits.ljust(point, "0") if point > 0 else "0." + "0" * -point + digits)


def _bytes(data: bytes) -> str:
    more = f"...+{len(data) - _SHOWN_BYTES}" if len(data) > _SHOWN_BYTES else ""
    return f'b"{data[:_SHOWN_BYTES].hex()}{more}"'


def _list(items: list[Value]) -> str:
    return "[" + display_items(items) + "]"


def _bool(flag: bool) -> str:
    return "true" if flag else "false"


def _nil(_: None) -> str:
    return "nil"


_SHOW: dict[type, Callable[[Any], str]] = {
    float: _float,
    bool: _bool,
    type(None): _nil,
    list: _list,
    dict: display_fields,
    bytes: _bytes,
}

TYPE_NAMES: dict[type, str] = {
    int: "int",
    float: "float",
    str: "string",
    bytes: "bytes",
    bool: "bool",
    type(None): "nil",
    list: "list",
    dict: "dict",
}


def float_with_point(x: float) -> str:
    """Return a finite float in the shortest digits, always with a point: ``1.0e+20``, not ``1e+20``."""
    text = repr(x)
    if "." in text:
        return text
    digits, e, exponent = text.partition("e")
    return f"{digits}.0{e}{exponent}"
