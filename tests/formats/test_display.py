"""Type names: one for a value, whoever made it."""

from __future__ import annotations

import pytest

from harnpy.formats.display import type_name
from harnpy.vm.values import Set

NAMES = {
    "nil": None,
    "bool": True,
    "int": 1,
    "float": 1.5,
    "string": "a",
    "list": [],
    "dict": {},
    "bytes": b"a",
    "set": Set([1]),
    "closure": print,
    "object": object(),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_value_has_the_name_of_its_type(name: str) -> None:
    assert type_name(NAMES[name]) == name
