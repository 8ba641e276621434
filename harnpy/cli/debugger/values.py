"""Values as a debugger shows them: a short text, and the parts that can be opened. Spec: 09 §15.4."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

from harnpy.cli.console import one_line
from harnpy.vm.values.objects import EnumValue, Pair, Set, display, type_name

Value = Any

_WIDTH = 160
#: How many parts of a value are shown.
MOST_PARTS = 1000


def short(value: Value, width: int = _WIDTH) -> str:
    """A value on one line; a string in quotes."""
    text = json.dumps(value, ensure_ascii=False) if type(value) is str else display(value)
    text = one_line(text)
    return text if len(text) <= width else text[: width - 1] + "…"


def kind(value: Value) -> str:
    return type_name(value)


def parts(value: Value) -> list[tuple[str, Value]]:
    """What a value consists of, by name or number; empty for one without parts."""
    if isinstance(value, dict):
        found: Any = sorted(value.items())
    elif isinstance(value, list):
        found = ((f"[{i}]", item) for i, item in enumerate(value))
    elif isinstance(value, EnumValue):
        found = ((f"[{i}]", item) for i, item in enumerate(value.fields))
    elif isinstance(value, Pair):
        found = (("first", value.first), ("second", value.second))
    elif isinstance(value, Set):
        found = ((f"[{i}]", item) for i, item in enumerate(value.items))
    else:
        found = ()
    return list(islice(found, MOST_PARTS))
