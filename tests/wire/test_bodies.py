"""What each dialect's request makes of a conversation and of tools, and how many cases each kind has.

A case is a file of `bodies/`: its ``kind``, the messages and tools that are ``given``, and what is ``sent``
of them, by dialect. Spec: 07 §1.17, §1.18, §6.7.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from importlib import import_module
from math import prod
from pathlib import Path

import pytest

from harnpy.llm.request import Request
from harnpy.llm.request_messages import request_messages
from tests.llm.providers.test_providers import ask
from tests.llm.wire import Say, Wire
from tests.wire.exchanges import cases
from tests.wire.rules import check_request

HERE = Path(__file__).parent
BODIES = {
    path.stem: json.loads(path.read_text(encoding="utf-8")) for path in (HERE / "bodies").glob("*.json")
}
#: Each kind has at least so many cases.
LEAST = 6


@pytest.mark.parametrize(
    ("name", "dialect"), [(name, dialect) for name in sorted(BODIES) for dialect in BODIES[name]["sent"]]
)
def test_a_body(name: str, dialect: str) -> None:
    given, sent = BODIES[name]["given"], BODIES[name]["sent"][dialect]
    said = request_messages(given.get("messages", [{"role": "user", "content": "Go."}]))
    with Wire(dialect, Say("Fine.")) as wire:
        ask(wire, Request(said, None, "acme", "m-1", tools=given.get("tools")))
    [received] = wire.requests
    assert {key: received.body.get(key) for key in sent} == sent
    check_request(dialect, received.body)


#: A row of README.md: a kind, and where its cases are.
_ROW = re.compile(r"^\| `(\w+)` \| .+ \| (.+) \|$", re.MULTILINE)
#: Which of them are data.
_DATA = {"cases/": Counter(case.expected["kind"] for case in cases())}
_DATA["bodies/"] = Counter(case["kind"] for case in BODIES.values())


def test_each_kind_has_cases() -> None:
    import_module("agents")  # some tests are those of a framework, and can be counted only where it is there
    table = dict(_ROW.findall((HERE / "README.md").read_text(encoding="utf-8")))
    for kind, column in table.items():
        places = re.findall(r"`([^`]+)`", column)
        found = sum(_DATA[place][kind] if place in _DATA else _tests_in(place) for place in places)
        assert found >= LEAST, kind
        for place, counts in _DATA.items():
            assert (place in places) == (kind in counts), kind
            assert place not in places or counts[kind] >= LEAST, kind
    assert set().union(*_DATA.values()) <= set(table)


def _tests_in(path: str) -> int:
    """Return how many tests a file has, with each set of parameters."""
    module = import_module(path.removesuffix(".py").replace("/", "."))
    return sum(
        prod(
            len(list(mark.args[1])) for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"
        )
        for name, test in vars(module).items()
        if name.startswith("test_")
    )
