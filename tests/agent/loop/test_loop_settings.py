"""What a loop reads from its options: those that are given, and nothing else is looked at (07 §6.1–6.2)."""

from __future__ import annotations

from typing import Any

import pytest

from harnpy.agent.loop.loop_settings import LoopSettings, read_settings
from harnpy.agent.loop_options import LOOP
from harnpy.agent.runtime import Runtime
from harnpy.faults import Fault
from harnpy.session import SessionRegistry
from tests.worlds import models_with

#: One option of each group that is read together, as if it weren't given: all of them are looked at then.
NOTHING_SAID = dict.fromkeys(
    "max_iterations compact_threshold permissions root_task stop budget timeout schema_retries "
    "interleaved_thinking working_files".split()
)
VALUES = (
    True,
    1,
    0,
    -1,
    0.5,
    "text",
    "native",
    "error",
    "low",
    "none",
    ["x"],
    {"a": 1},
    {"mode": "x"},
    print,
)


@pytest.fixture(scope="module")
def runtime() -> Runtime:
    return Runtime(models_with({}), SessionRegistry())


def settings(runtime: Runtime, options: dict[str, Any]) -> LoopSettings | str:
    try:
        return read_settings(runtime, "go", "sys", {"provider": "mock", **options}, "agent_loop", "text")
    except Fault as fault:
        return fault.message


@pytest.mark.parametrize("option", sorted({*LOOP.own} - {"provider"}))
def test_an_option_means_the_same_alone_and_beside_others(runtime: Runtime, option: str) -> None:
    for value in VALUES:
        given = {option: value}
        assert settings(runtime, given) == settings(runtime, {**NOTHING_SAID, **given}), value


def test_loops_share_nothing_that_one_of_them_changes(runtime: Runtime) -> None:
    first, second = settings(runtime, {}), settings(runtime, {})
    assert isinstance(first, LoopSettings)
    assert isinstance(second, LoopSettings)
    assert first == second
    assert first.request is not second.request
    assert first.request.sampling is not second.request.sampling
    assert first.ledger is not second.ledger
