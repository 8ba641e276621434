"""TOML, read in time that grows with the text's length whatever it says. Spec: 04 §11.1, §11.5."""

from __future__ import annotations

import re
from typing import Any

#: As in JSON.
_DEEPEST = 128
_TOO_DEEP = "recursion limit exceeded"

_PART = r"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+"""
#: A dotted key that is too deep. `tomllib` takes quadratic time for it.
_DEEP_KEY = re.compile(rf"(?<![\w\\-])(?:{_PART}\.[ \t]*+){{{_DEEPEST}}}{_PART}")


def parse_toml(text: str) -> dict[str, Any]:
    """Return the table. Raises ValueError, also for one that is nested too deeply."""
    import tomllib

    if _DEEP_KEY.search(text):
        raise ValueError(_TOO_DEEP)
    try:
        table = tomllib.loads(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    _check_depth(table)
    return table


def _check_depth(table: dict[str, Any]) -> None:
    level: list[Any] = [table]
    for _ in range(_DEEPEST):
        level = [inner for outer in level for inner in _containers_in(outer)]
    if level:
        raise ValueError(_TOO_DEEP)


def _containers_in(outer: Any) -> list[Any]:
    items = outer.values() if isinstance(outer, dict) else outer
    return [item for item in items if isinstance(item, dict | list)]
