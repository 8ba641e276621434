"""JSON text of a value. Spec: 04 §11.1 "stringify".

Recursion goes through Python functions only, so depth costs no C stack.
"""

from __future__ import annotations

from base64 import b64encode

from harnpy.vm.values.objects import Range, Set, Struct, display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.vm.values.objects import Value

_ESCAPES = {
    **{code: f"\\u{code:04x}" for code in (*range(0x20), *range(0x7F, 0xA0))},
    ord('"'): '\\"',
    ord("\\"): "\\\\",
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): "\\t",
}


def write_float(x: float) -> str:
    """Plain decimal digits without a forced fraction; `NaN`, `inf` and `-inf` as bare words."""
    return display(x).removesuffix(".0")


def write(value: Value, float_text: Callable[[float], str] = write_float) -> str:
    """Compact JSON, keys in ascending order; what is no data becomes `null`."""
    entries = _entries(value)
    if entries is not None:
        pieces = [f"{quote(key)}:{write(item, float_text)}" for key, item in entries]
        return "{" + ",".join(pieces) + "}"
    items = _items(value)
    if items is not None:
        return "[" + ",".join([write(item, float_text) for item in items]) + "]"
    return _scalar(value, float_text)


def write_pretty(value: Value, float_text: Callable[[float], str] = write_float, margin: str = "\n") -> str:
    """The same over several lines, two spaces to a level."""
    inner = margin + "  "
    entries = _entries(value)
    if entries:
        pieces = [f"{quote(key)}: {write_pretty(item, float_text, inner)}" for key, item in entries]
        return "{" + inner + f",{inner}".join(pieces) + margin + "}"
    items = _items(value)
    if items:
        pieces = [write_pretty(item, float_text, inner) for item in items]
        return "[" + inner + f",{inner}".join(pieces) + margin + "]"
    return write(value, float_text)


def write_stored(value: Value) -> str:
    """Pretty JSON that reads back as the same data: floats stay floats, numbers that are none become null."""
    return write_pretty(value, lambda x: display(x) if x - x == 0 else "null")


def quote(text: str) -> str:
    """A JSON string; control characters escaped, other characters kept."""
    return f'"{text.translate(_ESCAPES)}"'


def _entries(value: Value) -> list[tuple[str, Value]] | None:
    """The entries of what becomes an object."""
    if type(value) is dict or type(value) is Struct:
        return [(key, value[key]) for key in sorted(value)]
    return [("$bytes_b64", b64encode(value).decode())] if type(value) is bytes else None


def _items(value: Value) -> list[Value] | None:
    """The items of what becomes an array."""
    if type(value) is list:
        return value
    return value.items if type(value) is Set else None


def _scalar(value: Value, float_text: Callable[[float], str]) -> str:
    kind = type(value)
    if kind is str:
        return quote(value)
    if kind is float:
        return float_text(value)
    if kind is int or kind is bool:
        return display(value)
    return quote(display(value)) if kind is Range else "null"
