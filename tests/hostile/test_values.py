"""Values that can't be written out, from programs and from Python, and how a killed process is reported."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import Any

import pytest

import harnpy
from harnpy import Vm, VmError
from harnpy.isolation.process import OUT_OF_MEMORY, reason
from harnpy.vm.errors import LimitExceeded
from harnpy.vm.values.given import DEEPEST, UnsupportedValue

_DEPTH = 100_000
_USES = (
    "println(deep)",
    "return deep == [deep]",
    "return json_stringify(deep)",
    "return hash_value(deep)",
    "return set([deep])",
    "return deep.flatten()",
    'return "${[deep]}"',
    "return try { throw deep } catch (e) { to_string(e) }",
    'agent_session_inject(agent_session_open("s"), {role: "user", content: deep})',
)


def test_a_deep_value_from_python_raises_no_error_of_python() -> None:
    deep: Any = "x"
    vm = Vm()
    for depth in range(_DEPTH):
        if depth == DEEPEST:
            vm.set_global("deep", deep)
        deep = [deep]
    for use in _USES:
        with suppress(VmError):
            vm.run_source(use)
    with pytest.raises(UnsupportedValue, match=r"^.{0,200} is nested more than 500 deep: flatten it$"):
        vm.set_global("deeper", deep)


@pytest.mark.parametrize("memory", [None, 1 << 30])
def test_a_killed_process_is_not_called_out_of_memory(memory: int | None) -> None:
    error = reason(-signal.SIGKILL, memory, None, killed_before=1 << 62)
    assert str(error) == "the process of the isolated program has ended by signal 9"
    assert not isinstance(error, LimitExceeded)


def test_what_the_kernel_did_meanwhile_is_said() -> None:
    error = reason(-signal.SIGKILL, 1 << 30, None, killed_before=-1)
    assert str(error).endswith("ended by signal 9, when the system had no memory left")


def test_a_process_that_says_it_has_no_memory_is_believed() -> None:
    error = reason(OUT_OF_MEMORY, 1 << 30, None, killed_before=0)
    assert isinstance(error, LimitExceeded)
    assert error.limit == "memory"


def test_a_fault_of_a_small_process_is_no_lack_of_memory() -> None:
    error = reason(-signal.SIGSEGV, 1 << 50, None, killed_before=0)
    assert str(error) == "the process of the isolated program has ended by signal 11"


def test_a_child_killed_by_somebody_says_the_signal() -> None:
    with harnpy.isolated(memory="2G") as vm:
        vm.register("die() -> nil", lambda: os.kill(vm._child.process.pid, signal.SIGKILL))
        with pytest.raises(VmError, match="has ended by signal 9"):
            vm.run_source("die()\nsleep(1h)")
        assert vm.run_source("return 1") == 1
