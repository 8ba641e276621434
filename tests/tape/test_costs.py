"""What recording costs, in steps: turns of loops, writes, looks at what a model is asked. Spec: 13 §1."""

from __future__ import annotations

from asyncio.base_events import BaseEventLoop
from pathlib import Path
from selectors import DefaultSelector
from typing import Any

import pytest

from harnpy.tape import models
from harnpy.tape.tapes import TapeWriter
from tests.tape.taped import recorded

ASKING = 'for n in range(%d) { llm_call("q${1000 + n}", nil, {provider: "p"}) }'
LOOKING = """
let tools = tool_define(tool_registry(), "look", "Looks", {parameters: {}, handler: { _args -> "nothing" }})
for n in range(%d) { agent_loop("q${1000 + n}", nil, {provider: "p", tools: tools, tool_format: "native"}) }
"""
TURNS = 20


class Counter:
    """Counts the calls of a function that it stands for."""

    def __init__(self, function: Any) -> None:
        self.calls = 0
        self._function = function

    def __get__(self, instance: Any, owner: Any) -> Any:
        return lambda *arguments: self(instance, *arguments)

    def __call__(self, *arguments: Any) -> Any:
        self.calls += 1
        return self._function(*arguments)


def count(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> Counter:
    counter = Counter(getattr(owner, name))
    monkeypatch.setattr(owner, name, counter)
    return counter


def each_time(tmp_path: Path, counter: Counter, program: str) -> float:
    """Return how often a function is called for each turn of the program's loop, when it is recorded."""
    recorded(tmp_path, program % 1, "one")
    first = counter.calls
    recorded(tmp_path, program % (1 + TURNS), "more")
    return (counter.calls - 2 * first) / TURNS


def test_a_call_of_a_model_costs_few_turns_of_loops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert each_time(tmp_path, count(monkeypatch, BaseEventLoop, "_run_once"), ASKING) <= 7


def test_the_programs_own_loop_looks_for_nothing_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = count(monkeypatch, DefaultSelector, "select")
    assert each_time(tmp_path, looks, ASKING) <= 2


def test_what_a_model_is_asked_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert each_time(tmp_path, count(monkeypatch, models, "told_request"), ASKING) == 1


def test_that_a_tool_begins_is_written_with_what_comes_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two calls of a model, each written when it ends, with what came before it."""
    assert each_time(tmp_path, count(monkeypatch, TapeWriter, "_write"), LOOKING) == 4
