"""A record's values as JSON has them, and their text. Spec: 08 §8.1, §6.1.

Functions don't outlast a program: they are left out.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harnpy.session.effects import Effects

    Dict = dict[str, Any]

_LEFT_OUT = object()
_INDENT = 2


def plain(value: Any, effects: Effects) -> Any:
    """``value`` as it is read back from its JSON text; itself when nothing has to change.

    That matters: whoever keeps what was made of a value knows it by its identity.
    """
    made = _plain(value, effects)
    return None if made is _LEFT_OUT else made


def _plain(value: Any, effects: Effects) -> Any:
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if kind is float:
        return value if isfinite(value) else None
    if isinstance(value, dict):
        items = {key: _plain(item, effects) for key, item in value.items()}
        same = kind is dict and all(items[key] is item for key, item in value.items())
        return value if same else {key: item for key, item in items.items() if item is not _LEFT_OUT}
    if kind is list:
        made = [_plain(item, effects) for item in value]
        same = all(new is item for new, item in zip(made, value, strict=True))
        return value if same else [item for item in made if item is not _LEFT_OUT]
    if callable(value):
        return _LEFT_OUT
    return effects.parse_json(effects.to_json(value))


def pretty(value: Any) -> str:
    """The JSON text of a plain value: sorted keys, two spaces to a level."""
    from msgspec import json

    return json.format(json.encode(value, order="sorted"), indent=_INDENT).decode()


def indented(text: str, levels: int) -> str:
    """A text of `pretty` for a place that many levels deep. Lines end nowhere else than between values."""
    return text.replace("\n", "\n" + " " * (_INDENT * levels))
