"""TOML to values, by `tomllib`, and back, by our own writer. Spec: 04 §11.1, §11.5."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from harnpy.faults import LOOK, look, paced
from harnpy.formats.display import float_with_point, type_name
from harnpy.formats.nesting import DEEPEST, TOO_DEEP, refuse_deep, refuse_endless

# TOML, read in time that grows with the text's length whatever it says. Spec: 04 §11.1, §11.5.


_PART = r"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+"""
#: A dotted key that is too deep. `tomllib` takes quadratic time for it.
_DEEP_KEY = re.compile(rf"(?<![\w\\-])(?:{_PART}\.[ \t]*+){{{DEEPEST}}}{_PART}")

#: Bits of the largest integer that a message shows.
_LONGEST = 128


class _Watched(str):
    """A text that looks at the deadline while Python's reader goes through its characters."""

    __slots__ = ()

    def replace(self, *given: Any) -> str:
        return _Watched(super().replace(*given))

    def __getitem__(self, at: Any) -> str:
        look(1)
        return super().__getitem__(at)


class TomlSyntaxError(ValueError):
    """A text isn't TOML, or beyond a limit; ``str()`` says what is wrong, and where."""


def parse_toml(text: str) -> dict[str, Any]:
    """Return the table. Raises TomlSyntaxError, also for nesting and integers beyond the limits."""
    import tomllib

    if _DEEP_KEY.search(text):
        raise TomlSyntaxError(TOO_DEEP)
    try:
        table = tomllib.loads(text if LOOK.get() is None else _Watched(text))
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(text, error) from None
    except RecursionError:
        raise TomlSyntaxError(TOO_DEEP) from None
    except ValueError:  # Python refuses to read an integer of some thousand digits.
        raise TomlSyntaxError("integer out of range") from None
    try:
        refuse_deep(table)
    except ValueError as error:
        raise TomlSyntaxError(str(error)) from None
    _check_integers(table)
    return table


#: How Python before 3.14, whose errors have no attributes for it, gives a place.
_AT = re.compile(r"\(at line ([0-9]+), column ([0-9]+)\)\Z")
#: Characters of a line that a message quotes.
_QUOTED = 40


def _syntax_error(text: str, error: ValueError) -> TomlSyntaxError:
    """Return what is wrong with a text in our own words: `tomllib`'s differ between releases of Python."""
    lines = text.replace("\r\n", "\n").split("\n")
    found = _AT.search(str(error))
    number, column = map(int, found.groups()) if found else (len(lines), len(lines[-1]) + 1)
    number, column = getattr(error, "lineno", number), getattr(error, "colno", column)
    line = lines[number - 1]
    quoted = "".join(character if character.isprintable() else " " for character in paced(line)).strip()
    quoted = quoted if len(quoted) <= _QUOTED else f"{quoted[:_QUOTED]}…"
    if not quoted:
        problem = "unexpected end of text" if number == len(lines) else "unexpected end of line"
    elif _is_toml(line):
        problem = f"'{quoted}' conflicts with what is above it"
    else:
        problem = f"'{quoted}' is not valid here"
    return TomlSyntaxError(f"{problem} at line {number} column {column}")


def _is_toml(line: str) -> bool:
    import tomllib

    try:
        tomllib.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _check_integers(table: dict[str, Any]) -> None:
    left: list[Any] = [table]
    while left:
        outer = left.pop()
        for item in outer.values() if isinstance(outer, dict) else outer:
            if isinstance(item, dict | list):
                left.append(item)
            elif isinstance(item, int) and not -(2**63) <= item < 2**63:
                shown = f": {item}" if item.bit_length() <= _LONGEST else ""
                raise TomlSyntaxError(f"integer out of range{shown}")


# Values to TOML, keys in ascending order. Spec: 04 §11.5.
#
# In a table, what fits a line comes first, then the tables within it, each under its header.


_BARE = re.compile(r"[A-Za-z0-9_-]+")


class TomlError(ValueError):
    """A value that TOML has no word for."""


def to_toml(value: Any, items: Callable[[Any], list[Any] | None], look: Callable[[], object] = int) -> str:
    """Return the text of a table. Raises ValueError, and TooLarge for parts that are shared without end.

    ``items`` returns the items of a list or set and None for anything else. ``look`` is called at every part,
    and may raise to stop.
    """
    if not isinstance(value, dict):
        raise TomlError(f"the root must be a dict, not {type_name(value)}")
    refuse_endless([value])
    refuse_deep(value, items)
    writer = _Writer(items, look)
    writer.table(value, ())
    return "".join(writer.pieces)


class _Writer:
    def __init__(self, items: Callable[[Any], list[Any] | None], look: Callable[[], object]) -> None:
        self.pieces: list[str] = []
        self._items = items
        self._look = look

    def table(self, table: dict[str, Any], path: tuple[str, ...]) -> None:
        """Write the entries of a table that has its header already; ``path`` is that of keys."""
        later = []
        for key in sorted(table):
            value = table[key]
            if isinstance(value, dict) or self._is_list_of_tables(value):
                later.append(key)
            else:
                self.pieces.append(f"{_key(key)} = {self._inline(value, (*path, key))}\n")
        for key in later:
            self._under_header(table[key], (*path, key))

    def _is_list_of_tables(self, value: Any) -> bool:
        items = self._items(value) or ()
        return len(items) > 0 and all(isinstance(item, dict) for item in items)

    def _under_header(self, value: Any, path: tuple[str, ...]) -> None:
        name, one = ".".join(map(_key, path)), isinstance(value, dict)
        for table in [value] if one else self._items(value) or ():
            self._look()
            gap = "\n" if self.pieces else ""
            self.pieces.append(f"{gap}[{name}]\n" if one else f"{gap}[[{name}]]\n")
            self.table(table, path)

    def _inline(self, value: Any, path: tuple[str, ...]) -> str:
        self._look()
        if isinstance(value, dict):
            inner = [f"{_key(key)} = {self._inline(value[key], (*path, key))}" for key in sorted(value)]
            return f"{{ {', '.join(inner)} }}" if inner else "{}"
        items = self._items(value)
        if items is not None:
            inner = [self._inline(item, (*path, str(i))) for i, item in enumerate(items)]
            return f"[{', '.join(inner)}]"
        return _scalar(value, path)


def _scalar(value: Any, path: tuple[str, ...]) -> str:
    if value is True or value is False:
        return str(value).lower()
    if type(value) is str:
        from harnpy.formats.json import quote

        return quote(value)
    if type(value) is int:
        return str(value)
    if type(value) is float:
        return float_with_point(value) if value - value == 0 else str(value)
    raise TomlError(f"TOML has no {type_name(value)} (at {'.'.join(map(_key, path))})")


def _key(key: str) -> str:
    from harnpy.formats.json import quote

    return key if _BARE.fullmatch(key) else quote(key)
