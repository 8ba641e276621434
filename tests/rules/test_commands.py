"""A command policy holds in every way that a program gets to `process.exec`. Spec: 02 §28."""

from __future__ import annotations

import pytest

from tests.rules.places import PLACES
from tests.rules.recording import Record
from tests.rules.sets import ALL, UNRESTRICTED, Rules
from tests.rules.trial import recorded
from tests.rules.ways import WAYS, modules, program

_COMMANDS = [place for place in PLACES if place.name.startswith("host_call process.exec")]
_POLICY = 'command_policy_push({deny_patterns: ["*"]})\n'
#: Where ways give their loops and nodes a policy; a graph takes none for commands.
_OF_NODES = 'model_policy: {provider: "mock", max_iterations: 1} + POLICY'


def tried(way: str, source: str, rules: Rules = UNRESTRICTED) -> Record:
    record = recorded(source, rules, modules(way, _COMMANDS), hooks=way.startswith("manifest hook"))
    assert not record.failure
    assert {place.name for place in _COMMANDS} == set(record.visited)
    return record


@pytest.mark.parametrize("way", WAYS)
def test_one_that_the_program_pushed(way: str) -> None:
    imported, rest = program(way).split("let POLICY", 1)
    assert "process" not in tried(way, f"{imported}{_POLICY}let POLICY{rest}").effects()


@pytest.mark.parametrize("way", sorted(WAYS.keys() - {"graph"}))
def test_one_of_the_loop_or_the_node(way: str) -> None:
    source = program(way).replace("capability_policy: POLICY", _OF_NODES)
    rules = Rules("commands", ALL, {"command_policy": {"deny_patterns": ["*"]}})
    assert "process" not in tried(way, source, rules).effects()
