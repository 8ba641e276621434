"""The filters of templates: what follows a `|`. Spec: 04 §23.6. Raises `TemplateFault`."""

from __future__ import annotations

from harnpy.text.case import WHITESPACE, titled
from harnpy.text.templates.errors import TemplateFault
from harnpy.text.templates.operations import count, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from harnpy.text.templates.operations import Operations

_MARKDOWN = str.maketrans({character: "\\" + character for character in "\\`*_{}[]()#+-.!|<>"})


def apply(operations: Operations, name: str, value: Any, arguments: list[Any]) -> Any:
    """Return ``value | name: arguments…``."""
    if name in _OF_TEXT:
        least = most = 0
    elif name in _FILTERS:
        function, least, most = _FILTERS[name]
    else:
        raise TemplateFault(f"unknown filter `{name}`")
    if not least <= len(arguments) <= most:
        raise TemplateFault(f"filter `{name}` got wrong number of arguments")
    if name in _OF_TEXT:
        return _OF_TEXT[name](shown(operations, value))
    return function(operations, value, *arguments)


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:].lower()


def _length(operations: Operations, value: Any) -> int:
    if value is None:
        return 0
    if type(value) in (str, dict):
        return len(value)
    items = operations.items(value)
    if items is None:
        raise TemplateFault(f"`length` not defined for {operations.type_name(value)}")
    return count(items)


def _at(operations: Operations, value: Any, i: int) -> Any:
    items = value if type(value) is str else operations.items(value)
    return items[i] if type(items) in (list, str) and items else None


def _first(operations: Operations, value: Any) -> Any:
    return _at(operations, value, 0)


def _last(operations: Operations, value: Any) -> Any:
    return _at(operations, value, -1)


def _reverse(operations: Operations, value: Any) -> Any:
    return value[::-1] if type(value) in (list, str) else value


def _join(operations: Operations, value: Any, separator: Any) -> str:
    if type(value) is str:
        return value
    items = operations.items(value)
    if not isinstance(items, list):
        raise TemplateFault(f"`join` requires a list (got {operations.type_name(value)})")
    return shown(operations, separator).join([operations.text(item) for item in items])


def _default(operations: Operations, value: Any, spare: Any) -> Any:
    return value if operations.truthy(value) else spare


def _json(operations: Operations, value: Any, pretty: Any = False) -> str:
    return operations.json(value, operations.truthy(pretty))


def _indent(operations: Operations, value: Any, width: Any, first: Any = False) -> str:
    if type(width) is not int:
        raise TemplateFault("`indent` requires an integer width")
    margin, first_too = " " * width, operations.truthy(first)
    lines = shown(operations, value).split("\n")
    return "\n".join([margin + line if line and (i or first_too) else line for i, line in enumerate(lines)])


def _replace(operations: Operations, value: Any, old: Any, new: Any) -> str:
    return shown(operations, value).replace(shown(operations, old), shown(operations, new))


#: Filters without arguments that look at nothing but the text of a value.
_OF_TEXT: dict[str, Callable[[str], Any]] = {
    "upper": str.upper,
    "lower": str.lower,
    "trim": lambda text: text.strip(WHITESPACE),
    "capitalize": _capitalize,
    "title": titled,
    "lines": lambda text: text.split("\n"),
    "escape_md": lambda text: text.translate(_MARKDOWN),
}
#: Each with the least and the most arguments it takes.
_FILTERS: dict[str, tuple[Callable[..., Any], int, int]] = {
    "length": (_length, 0, 0),
    "first": (_first, 0, 0),
    "last": (_last, 0, 0),
    "reverse": (_reverse, 0, 0),
    "join": (_join, 1, 1),
    "default": (_default, 1, 1),
    "json": (_json, 0, 1),
    "indent": (_indent, 1, 2),
    "replace": (_replace, 2, 2),
}
