"""Values to YAML in block style, keys in ascending order. Spec: 04 §11.5.

What other readers of YAML, by whatever version, could take for anything but a text is quoted, as in JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from harnpy.formats.display import display, float_with_point
from harnpy.formats.json import quote
from harnpy.formats.nesting import refuse_deep, refuse_endless

_NUMBER_LIKE = re.compile(r"[0-9][0-9a-fA-FxXoOeEtTzZ_:.+ -]*")
_WORDS = frozenset("y yes n no on off true false null nan inf".split())
_UNPRINTABLE = re.compile("[\u2028\u2029\ufeff\ufffe\uffff]")
#: A longer key needs a mark of its own.
_LONGEST_KEY = 1000


def to_yaml(value: Any, items: Callable[[Any], list[Any] | None], look: Callable[[], object] = int) -> str:
    """Return the text, which ends with a line end. Raises ValueError for what is nested too deeply, TooLarge
    for parts that are shared without end.

    ``items`` returns the items of a list or set and None for anything else; what is no data is written as its
    display text. ``look`` is called at every part, and may raise to stop.
    """
    refuse_endless([value])
    refuse_deep(value, items)
    writer = _Writer(items, look)
    writer.value(value, "", "")
    return "".join(writer.pieces)


class _Writer:
    """Every value is written behind what its line has already: nothing, ``key:`` or ``-``."""

    def __init__(self, items: Callable[[Any], list[Any] | None], look: Callable[[], object]) -> None:
        self.pieces: list[str] = []
        self._items = items
        self._look = look

    def value(self, value: Any, margin: str, before: str) -> None:
        """Write a value to its line end. ``before`` is ``""``, ``":"`` or ``"-"``."""
        self._look()
        items = None if isinstance(value, dict) else self._items(value)
        if isinstance(value, dict) and value:
            self._entries(value, margin, before)
        elif items:
            self._list(items, margin, before)
        else:
            text = _scalar(value, margin + "  ") if items is None else "[]"
            self.pieces.append(f" {text}\n" if before else f"{text}\n")

    def _entries(self, entries: dict[str, Any], margin: str, before: str) -> None:
        inner = margin + "  " if before else margin
        self.pieces.append({"": "", ":": "\n" + inner, "-": " "}[before])
        for i, key in enumerate(sorted(entries)):
            self.pieces.append(f"{inner if i else ''}{_key(key, inner)}:")
            self.value(entries[key], inner, ":")

    def _list(self, items: list[Any], margin: str, before: str) -> None:
        inner = margin + "  " if before == "-" else margin
        self.pieces.append({"": "", ":": "\n" + inner, "-": " "}[before])
        for i, item in enumerate(items):
            self.pieces.append(f"{inner if i else ''}-")
            self.value(item, inner, "-")


def _key(key: str, margin: str) -> str:
    text = key if _is_plain(key) else _quoted(key)
    return text if len(text) < _LONGEST_KEY else f"? {text}\n{margin}"


def _scalar(value: Any, margin: str) -> str:
    kind = type(value)
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "{}"
    if kind is float:
        return _float(value)
    if kind is int or kind is bool:
        return display(value)
    text = display(value)
    if _is_plain(text):
        return text
    return _literal(text, margin) if _has_plain_lines(text) else _quoted(text)


def _float(x: float) -> str:
    if x - x != 0:
        return ".nan" if x != x else str(x).replace("inf", ".inf")
    return float_with_point(x)


def _is_plain(text: str) -> bool:
    """Return whether the text means itself: it begins like a word and reads like nothing else."""
    return (
        text[:1].isalnum()
        and text.isprintable()
        and ": " not in text
        and " #" not in text
        and not text.endswith((" ", ":"))
        and text.lower() not in _WORDS
        and not _NUMBER_LIKE.fullmatch(text)
    )


def _has_plain_lines(text: str) -> bool:
    return "\n" in text and not text[0].isspace() and text.replace("\n", "").replace("\t", "").isprintable()


def _literal(text: str, margin: str) -> str:
    """A block with the text's own lines; the mark says what line ends are at its end."""
    mark = "|+" if text.endswith("\n\n") else "|" if text.endswith("\n") else "|-"
    lines = text.removesuffix("\n").split("\n")
    return "\n".join([mark, *(margin + line if line else "" for line in lines)])


def _quoted(text: str) -> str:
    """A text as in JSON, with what YAML can't print escaped, too."""
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", quote(text))
