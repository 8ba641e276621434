"""Patterns mean the same in every CPython that we support.

Before 3.11.5 a possessive quantifier goes on from the wrong place when its last repetition fails after a part
that moves on by itself (gh-106052). Such a part is to be repeated in an atomic group.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import pytest

import harnpy

_MOVES_ON = {"ASSERT", "ASSERT_NOT", "MAX_REPEAT", "MIN_REPEAT"}


def operations(parsed: Any) -> Iterator[tuple[str, Any]]:
    """Every operation of a parsed pattern, those inside of others too."""
    if isinstance(parsed, re._parser.SubPattern):  # type: ignore[attr-defined]
        for name, argument in parsed:
            yield str(name), argument
            yield from operations(argument)
    elif isinstance(parsed, tuple | list):
        for part in parsed:
            yield from operations(part)


def is_misread(pattern: str, flags: int = 0) -> bool:
    parsed = re._parser.parse(pattern, flags)  # type: ignore[attr-defined]
    repeated = (argument for name, argument in operations(parsed) if name == "POSSESSIVE_REPEAT")
    return any(name in _MOVES_ON for body in repeated for name, _ in operations(body))


def patterns() -> Iterator[tuple[str, re.Pattern[Any]]]:
    for module in pkgutil.walk_packages(harnpy.__path__, "harnpy."):
        if module.name.endswith("__main__"):
            continue
        try:
            loaded = importlib.import_module(module.name)
        except ImportError as error:
            missing = error.__cause__ or error
            if not isinstance(missing, ModuleNotFoundError) or (missing.name or "").startswith("harnpy"):
                raise
            continue  # of an extra that isn't installed
        for name, value in vars(loaded).items():
            for each in value.values() if isinstance(value, dict) else [value]:
                if isinstance(each, re.Pattern):
                    yield f"{module.name}.{name}", each


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # former places of modules
def test_no_pattern_is_misread_before_3_11_5() -> None:
    assert is_misread(r'(?:[^"$]|\$(?!\{))*+')
    assert not is_misread(r'(?>(?:[^"$]|\$(?!\{))*)')
    found = list(patterns())
    assert any(name == "harnpy.syntax.lexer._TOKEN" for name, _ in found)
    assert [name for name, each in found if is_misread(each.pattern, each.flags)] == []
