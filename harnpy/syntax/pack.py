"""Trees as nested tuples, which marshal can write, and back.

A node is ``(number of its class, start, end, field, …)``. No other tuple in a tree begins with an int.
"""

from __future__ import annotations

from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_CLASSES = [
    value
    for value in vars(ast).values()
    if isinstance(value, type) and issubclass(value, ast.Node) and value is not ast.Node
]
_NUMBERS = {cls: number for number, cls in enumerate(_CLASSES)}


def pack(value: Any) -> Any:
    """``value``, a node or a field of one, as plain data. Raises RecursionError on very deep trees."""
    number = _NUMBERS.get(type(value))
    if number is not None:
        fields = [pack(getattr(value, name)) for name in value.__slots__]
        return (number, value.start, value.end, *fields)
    return tuple([pack(item) for item in value]) if type(value) is tuple else value


def unpack(value: Any) -> Any:
    """The inverse of `pack`."""
    if type(value) is not tuple:
        return value
    items = [unpack(item) for item in value]
    return _CLASSES[items[0]](*items[1:]) if items and type(items[0]) is int else tuple(items)
