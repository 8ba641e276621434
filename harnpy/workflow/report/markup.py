"""Building HTML from nested elements. Anything but `Markup` is text and is escaped."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    Child = str | None | Iterable["Child"]

_VOID = frozenset(("br", "img", "meta", "col", "link"))
#: Characters that HTML can't contain: controls except tab and line ends, and lone surrogates.
_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(name: str, /, *children: Child, **attributes: str | int | bool | None) -> Markup:
    """Return an element. ``class_`` is its class; None and False omit attributes, True sets no value."""
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{text(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    inside = joined(*children)
    return Markup(f"<{name}{written}>" if name in _VOID else f"<{name}{written}>{inside}</{name}>")


def joined(*children: Child) -> Markup:
    """Return the children one after the other."""
    return Markup("".join(_written(child) for child in children))


def text(given: str) -> Markup:
    return Markup(escape(_UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", given)))


def _written(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, str):
        return child if isinstance(child, Markup) else text(child)
    return "".join(_written(inner) for inner in child)
