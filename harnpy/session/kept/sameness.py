"""A long text that one append holds twice is stored once. Spec: 10 §C4.

A text of 64 characters or more that an earlier event of the append holds is written as ``{"$same": [k,
pointer]}``: k events back, at that JSON pointer of its data. A dict of the caller's that looks like one is
stored with one ``$`` more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

#: Shorter texts are written again.
LONG = 64
_KEY = "$same"


def shortened(values: list[Any]) -> list[Any]:
    """Return the data of an append's events, each with references to those before it."""
    seen: dict[str, tuple[int, str]] = {}
    written = []
    for place, value in enumerate(values):
        written.append(_shortened(value, place, seen))
        if place + 1 < len(values):
            _note_texts(value, "", place, seen)
    return written


def is_plain(text: str) -> bool:
    """Whether JSON text has no reference and nothing that looks like one."""
    return f'{_KEY}"' not in text


def restored(value: Any, before: list[Any]) -> Any:
    """Return what `shortened` was given; ``before`` is the data of the append's earlier events, restored."""

    def change(found: dict[str, Any], key: str) -> tuple[bool, Any]:
        if key == _KEY:
            back, pointer = found[key]
            return True, _at(before[-back] if back <= len(before) else None, pointer)
        return False, {key[1:]: found[key]}

    return _changed(value, change, lambda text: text)


def _shortened(value: Any, place: int, seen: dict[str, tuple[int, str]]) -> Any:
    def change(found: dict[str, Any], key: str) -> tuple[bool, Any]:
        return False, {f"${key}": found[key]}

    def short(text: str) -> Any:
        known = seen.get(text) if len(text) >= LONG else None
        return text if known is None else {_KEY: [place - known[0], known[1]]}

    return _changed(value, change, short)


def _changed(
    value: Any, change: Callable[[dict[str, Any], str], tuple[bool, Any]], text: Callable[[str], Any]
) -> Any:
    """Return a copy with ``text(part)`` of each text and ``change(part, key)`` of each dict that looks like a
    reference; that says whether it is done with it. One frame a level: values may be deep.
    """
    kind = type(value)
    if kind is str:
        return text(value)
    if kind is list:
        items = []
        for item in value:
            items.append(_changed(item, change, text))
        return items
    if kind is not dict:
        return value
    key = _marker(value)
    if key is not None:
        is_done, value = change(value, key)
        if is_done:
            return value
    copy = {}
    for key, item in value.items():
        copy[key] = _changed(item, change, text)
    return copy


def _marker(value: dict[str, Any]) -> str | None:
    """The only key of ``value``, if it is ``$same`` or looks like it."""
    if len(value) != 1:
        return None
    (key,) = value
    return key if key.endswith(_KEY) and key.strip("$") == "same" else None


def _note_texts(value: Any, pointer: str, place: int, seen: dict[str, tuple[int, str]]) -> None:
    if type(value) is str:
        if len(value) >= LONG:
            seen.setdefault(value, (place, pointer))
    elif type(value) is dict:
        for key, item in value.items():
            _note_texts(item, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}", place, seen)
    elif type(value) is list:
        for index, item in enumerate(value):
            _note_texts(item, f"{pointer}/{index}", place, seen)


def _at(value: Any, pointer: str) -> Any:
    try:
        for step in pointer.split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            value = value[int(step)] if type(value) is list else value[step]
    except (LookupError, TypeError, ValueError):
        return ""  # a repair has put something else in the place of an unreadable record
    return value
