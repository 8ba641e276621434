"""JSON text of a value. Spec: 04 §11.1 "stringify".

Python's plain values are known here. Any other may have `as_json() -> value`, what stands for it in JSON;
without it, that is null. Recursion goes through Python functions only, so depth costs no C stack.
"""

from __future__ import annotations

from base64 import b64encode

from harnpy.text.display import display, joined
from harnpy.text.json.reader import parse_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

#: Items that are written without a pause.
_MANY = 1000
_PLAIN = frozenset((dict, list, str, int, float, bool, type(None)))
_ESCAPES = {
    **{code: f"\\u{code:04x}" for code in (*range(0x20), *range(0x7F, 0xA0))},
    ord('"'): '\\"',
    ord("\\"): "\\\\",
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): "\\t",
}


def float_text(x: float) -> str:
    """Plain decimal digits without a forced fraction; `NaN`, `inf` and `-inf` as bare words."""
    return display(x).removesuffix(".0")


def to_json(
    value: Any, floats: Callable[[float], str] = float_text, paced: Callable[[Any], Iterable[Any]] = iter
) -> str:
    """Compact JSON, keys in ascending order; what is no data becomes `null`.

    ``paced`` returns the items of a long sequence, and may stop in the middle.
    """
    return _compact(value, floats, paced)


def pretty_json(value: Any, floats: Callable[[float], str] = float_text) -> str:
    """The same over several lines, two spaces to a level."""
    return _pretty(value, floats, "\n")


def _compact(value: Any, floats: Callable[[float], str], paced: Callable[[Any], Iterable[Any]] = iter) -> str:
    kind = type(value)
    if kind is str:  # most values, and what they have, are texts and numbers
        return quote(value)
    if kind is int:
        return str(value)
    value = _form(value)
    if isinstance(value, dict):
        keys = sorted(value)
        pieces = [
            f"{quote(key)}:{_compact(value[key], floats, paced)}"
            for key in (keys if len(keys) < _MANY else paced(keys))
        ]
        return "{" + joined(value, ",", pieces) + "}"
    if isinstance(value, list | tuple):
        items = value if len(value) < _MANY else paced(value)
        return "[" + joined(value, ",", [_compact(item, floats, paced) for item in items]) + "]"
    return _scalar(value, floats)


def _pretty(value: Any, floats: Callable[[float], str], margin: str) -> str:
    value, inner = _form(value), margin + "  "
    if isinstance(value, dict) and value:
        pieces = [f"{quote(key)}: {_pretty(value[key], floats, inner)}" for key in sorted(value)]
        return "{" + inner + joined(value, f",{inner}", pieces) + margin + "}"
    if isinstance(value, list | tuple) and value:
        pieces = [_pretty(item, floats, inner) for item in value]
        return "[" + inner + joined(value, f",{inner}", pieces) + margin + "]"
    return _compact(value, floats)


def stored_json(value: Any) -> str:
    """Pretty JSON that reads back as the same data: floats stay floats, numbers that are none become null."""
    return pretty_json(value, lambda x: display(x) if x - x == 0 else "null")


def as_data(value: Any) -> Any:
    """The value that is read back from its JSON: what JSON has no word for is nil."""
    return parse_json(to_json(value, lambda x: "null" if x - x != 0 else float_text(x)))


def quote(text: str) -> str:
    """A JSON string; control characters escaped, other characters kept."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{text.translate(_ESCAPES)}"'


def _form(value: Any) -> Any:
    """What stands for the value in JSON."""
    kind = type(value)
    if kind in _PLAIN or isinstance(value, dict | list | tuple):
        return value
    if kind is bytes:
        return {"$bytes_b64": b64encode(value).decode()}
    form = getattr(value, "as_json", None)
    return None if form is None else form()


def _scalar(value: Any, floats: Callable[[float], str]) -> str:
    kind = type(value)
    if kind is str:
        return quote(value)
    if kind is float:
        return floats(value)
    return "null" if value is None else display(value)
