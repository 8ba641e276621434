"""What stands behind a `|` in a template. Spec: 04 §23.6. Raises `TemplateFault`."""

from __future__ import annotations

from harnpy.builtins.language.text.case import titled
from harnpy.builtins.language.text.json_writer import write, write_pretty
from harnpy.builtins.language.text.templates.errors import TemplateFault
from harnpy.vm.run.methods.strings import WHITESPACE
from harnpy.vm.values.objects import Duration, Range, Set, display, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.vm.values.objects import Value

_MARKDOWN = str.maketrans({character: "\\" + character for character in "\\`*_{}[]()#+-.!|<>"})


def truthy(value: Value) -> bool:
    """Harn's truthiness, but blank strings are false, and sets, bytes and durations true."""
    if type(value) is str:
        return bool(value.strip(WHITESPACE))
    return type(value) in (Set, bytes, Duration) or bool(value)


def text_of(value: Value) -> str:
    """What a hole shows: the display form, nothing for nil."""
    return "" if value is None else display(value)


def apply(name: str, value: Value, arguments: list[Value]) -> Value:
    """``value | name: arguments…``"""
    if name not in _FILTERS:
        raise TemplateFault(f"unknown filter `{name}`")
    function, least, most = _FILTERS[name]
    if not least <= len(arguments) <= most:
        raise TemplateFault(f"filter `{name}` got wrong number of arguments")
    return function(value, *arguments)


def _upper(value: Value) -> str:
    return text_of(value).upper()


def _lower(value: Value) -> str:
    return text_of(value).lower()


def _trim(value: Value) -> str:
    return text_of(value).strip(WHITESPACE)


def _capitalize(value: Value) -> str:
    text = text_of(value)
    return text[:1].upper() + text[1:].lower()


def _title(value: Value) -> str:
    return titled(text_of(value))


def _length(value: Value) -> int:
    if value is None:
        return 0
    if type(value) in (str, list, dict):
        return len(value)
    if type(value) is Set:
        return len(value.items)
    if type(value) is Range:
        return value.size
    raise TemplateFault(f"`length` not defined for {type_name(value)}")


def _at(value: Value, i: int) -> Value:
    items = value.items if type(value) is Set else value
    return items[i] if type(items) in (list, str) and items else None


def _first(value: Value) -> Value:
    return _at(value, 0)


def _last(value: Value) -> Value:
    return _at(value, -1)


def _reverse(value: Value) -> Value:
    return value[::-1] if type(value) in (list, str) else value


def _join(value: Value, separator: Value) -> str:
    if type(value) is str:
        return value
    items = value.items if type(value) is Set else value
    if type(items) is not list:
        raise TemplateFault(f"`join` requires a list (got {type_name(value)})")
    return text_of(separator).join([display(item) for item in items])


def _default(value: Value, spare: Value) -> Value:
    return value if truthy(value) else spare


def _json(value: Value, pretty: Value = False) -> str:
    return write_pretty(value, display) if truthy(pretty) else write(value, display)


def _indent(value: Value, width: Value, first: Value = False) -> str:
    if type(width) is not int:
        raise TemplateFault("`indent` requires an integer width")
    lines = text_of(value).split("\n")
    return "\n".join(
        [" " * width + line if line and (i or truthy(first)) else line for i, line in enumerate(lines)]
    )


def _lines(value: Value) -> list[str]:
    return text_of(value).split("\n")


def _escape_md(value: Value) -> str:
    return text_of(value).translate(_MARKDOWN)


def _replace(value: Value, old: Value, new: Value) -> str:
    return text_of(value).replace(text_of(old), text_of(new))


#: Each with the least and the most arguments it takes.
_FILTERS: dict[str, tuple[Callable[..., Value], int, int]] = {
    "upper": (_upper, 0, 0),
    "lower": (_lower, 0, 0),
    "trim": (_trim, 0, 0),
    "capitalize": (_capitalize, 0, 0),
    "title": (_title, 0, 0),
    "length": (_length, 0, 0),
    "first": (_first, 0, 0),
    "last": (_last, 0, 0),
    "reverse": (_reverse, 0, 0),
    "join": (_join, 1, 1),
    "default": (_default, 1, 1),
    "json": (_json, 0, 1),
    "indent": (_indent, 1, 2),
    "lines": (_lines, 0, 0),
    "escape_md": (_escape_md, 0, 0),
    "replace": (_replace, 2, 2),
}
