"""TOML, read in time that grows with the text's length whatever it says. Spec: 04 §11.1, §11.5."""

from __future__ import annotations

import re
from typing import Any

from harnpy.text.depth import DEEPEST, TOO_DEEP, refuse_deep

_PART = r"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+"""
#: A dotted key that is too deep. `tomllib` takes quadratic time for it.
_DEEP_KEY = re.compile(rf"(?<![\w\\-])(?:{_PART}\.[ \t]*+){{{DEEPEST}}}{_PART}")


def parse_toml(text: str) -> dict[str, Any]:
    """Return the table. Raises ValueError, also for nesting that is too deep and integers of over 64 bits."""
    import tomllib

    if _DEEP_KEY.search(text):
        raise ValueError(TOO_DEEP)
    try:
        table = tomllib.loads(text)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    refuse_deep(table)
    _check_integers(table)
    return table


def _check_integers(table: dict[str, Any]) -> None:
    left: list[Any] = [table]
    while left:
        outer = left.pop()
        for item in outer.values() if isinstance(outer, dict) else outer:
            if isinstance(item, dict | list):
                left.append(item)
            elif isinstance(item, int) and not -(2**63) <= item < 2**63:
                raise ValueError(f"integer out of range: {item}")
