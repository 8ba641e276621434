"""Values as people read them: strings quoted inside collections, folded to the width, alike dicts as a table.

`println` and interpolation show a value's display (02 §5), in which `["1"]` and `[1]` are the same; the REPL
shows what it is. Spec: 09 §5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harnpy.formats.nesting import refuse_endless
from harnpy.formats.visible import cells
from harnpy.syntax.print_literals import quoted
from harnpy.vm.values import EnumValue, Pair, Set, Struct, display

if TYPE_CHECKING:
    from harnpy.vm.values import Value

    #: What stands before and behind the parts of a value, and the parts, each behind its key.
    Parts = tuple[str, Sequence[tuple[str, Value]], str]

#: The most columns of a table, and characters of one of its cells.
_COLUMNS, _CELL = 8, 40
_INDENT = "  "


def shown(value: Value, width: int | None = None, blocks: bool = False) -> list[str]:
    """Return the lines that show a value, each within ``width`` columns as far as its texts allow; one
    line where ``width`` is None. With ``blocks``, long texts of several lines in it are shown as such. Raise
    TooLarge for a value whose parts are shared without end."""
    if type(value) is str:
        return value.split("\n")
    refuse_endless(value)
    return ["".join(_pieces(value))] if width is None else list(_folded("", value, width, blocks))


def _pieces(value: Value) -> Iterator[str]:
    """Yield the text that shows a value on one line, piece by piece."""
    left: list[tuple[bool, Value]] = [(False, value)]
    while left:
        is_text, item = left.pop()
        parts = None if is_text else _parts(item)
        if parts is None:
            yield item if is_text else quoted(item) if type(item) is str else display(item)
            continue
        begin, items, end = parts
        yield begin
        left.append((True, end))
        for number in range(len(items) - 1, -1, -1):
            key, inner = items[number]
            left += [(False, inner), (True, f", {key}" if number else key)]


def _line(key: str, value: Value, width: int) -> str | None:
    """Return the line that shows a value behind its key; None if that has more than ``width`` columns."""
    line = key
    for piece in _pieces(value):
        line += piece
        if len(line) > width:
            return None
    return line if cells(line) <= width else None


def _parts(value: Value) -> Parts | None:
    """Return what a value is put together of; None for one that has no parts."""
    match value:
        case Struct():
            return f"{value.type} {{", _fields(value), "}"
        case dict():
            return "{", _fields(value), "}"
        case list():
            return "[", _items(value), "]"
        case Set():
            return "set(", _items(value.items), ")"
        case Pair():
            return "(", _items((value.first, value.second)), ")"
        case EnumValue() if value.fields:
            return f"{value.enum}.{value.variant}(", _items(value.fields), ")"
    return None


def _fields(fields: Mapping[str, Value]) -> list[tuple[str, Value]]:
    return [(f"{key}: ", fields[key]) for key in sorted(fields)]


def _items(items: Sequence[Value]) -> list[tuple[str, Value]]:
    return [("", item) for item in items]


def _folded(key: str, value: Value, width: int, blocks: bool) -> Iterator[str]:
    line = _line(key, value, width)
    if line is None and blocks and type(value) is str and "\n" in value:
        yield key + '"""'
        yield from (_INDENT + line for line in value.split("\n"))
        yield '"""'
        return
    parts = None if line is not None else _parts(value)
    if parts is None or not parts[1]:
        yield line or key + "".join(_pieces(value))
        return
    rows = _table(value, width) if type(value) is list and not key else None
    if rows is not None:
        yield from rows
        return
    begin, items, end = parts
    yield key + begin
    for number, (inner_key, item) in enumerate(items):
        comma = "," if number + 1 < len(items) else ""
        lines = [*_folded(inner_key, item, max(width - len(_INDENT) - len(comma), 20), blocks)]
        lines[-1] += comma
        yield from (_INDENT + line for line in lines)
    yield end


def alike(items: list[Any]) -> bool:
    """Return whether items are two or more dicts with the same few keys: the rows of a table."""
    first = items[0] if len(items) > 1 else None
    if type(first) is not dict or not 0 < len(first) <= _COLUMNS:
        return False
    return all(type(item) is dict and item.keys() == first.keys() for item in items)


def _table(items: list[Any], width: int) -> list[str] | None:
    """Return alike dicts of plain values as a table; None where they are none, or too wide."""
    if not alike(items):
        return None
    names = sorted(items[0])
    rows = [[_cell(item[name]) for name in names] for item in items]
    texts: list[list[str]] = [names]
    for row in rows:
        found = [cell for cell in row if cell is not None]
        if len(found) < len(names):
            return None
        texts.append(found)
    widths = [max(cells(row[at]) for row in texts) for at in range(len(names))]
    if sum(widths) + 2 * len(widths) > width:
        return None
    numbers = [all(type(item[name]) in (int, float) for item in items) for name in names]
    return [_row(row, widths, numbers) for row in texts]


def _row(texts: list[str], widths: list[int], numbers: list[bool]) -> str:
    parts = []
    for text, wide, right in zip(texts, widths, numbers, strict=True):
        blanks = " " * (wide - cells(text))
        parts.append(blanks + text if right else text + blanks)
    return "  ".join(parts).rstrip()


def _cell(value: Value) -> str | None:
    """Return a value as a cell, where a text needs no quotes; None for one that doesn't fit."""
    if _parts(value) is not None:
        return None
    text = display(value)
    return text if cells(text) <= _CELL and "\n" not in text else None
