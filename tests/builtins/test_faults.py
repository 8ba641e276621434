"""What a program sees of the faults of domain packages, however it calls the builtin."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from harnpy import Vm, VmError
from harnpy.faults import CategorizedError, Fault, Interruption, MisuseError, OptionError
from harnpy.vm.errors import CategorizedFault, Interrupted, RuntimeFault, Thrown, harn_error, reporting_faults


class Named(OptionError):
    def message_from(self, builtin: str) -> str:
        return f"{builtin}: {self.message}"


class WithValue(Fault):
    def caught_from(self, builtin: str) -> object:
        return {"by": builtin}


@pytest.mark.parametrize(
    ("fault", "kind", "text"),
    [
        (WithValue("no"), Thrown, "Thrown: {by: f}"),
        (Fault("no"), Thrown, "Thrown: no"),
        (OptionError("no"), Thrown, "Thrown: no"),
        (Named("no"), Thrown, "Thrown: f: no"),
        (MisuseError("no"), RuntimeFault, "Runtime error: no"),
        (CategorizedError("timeout", "no"), CategorizedFault, "Error [timeout]: no"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Fault) else None,
)
def test_only_the_class_decides_what_a_fault_becomes(fault: Fault, kind: type[VmError], text: str) -> None:
    error = harn_error(fault, "f")
    assert type(error) is kind
    assert error.text == text


def test_an_interruption_becomes_what_caused_it() -> None:
    def interrupted(vm: Vm) -> None:
        raise Interruption from Interrupted("deadline")

    with pytest.raises(Interrupted) as caught:
        reporting_faults("f", interrupted)(Vm())
    assert caught.value.__cause__ is None


def test_an_interruption_without_a_cause_passes() -> None:
    def interrupted(vm: Vm) -> None:
        raise Interruption("stop")

    with pytest.raises(Interruption):
        reporting_faults("f", interrupted)(Vm())


@pytest.mark.parametrize(
    "call",
    [
        'agent_session_trim("nobody", 1)',
        '"nobody" |> { id -> agent_session_trim(id, 1) }',
        "let f = agent_session_trim\nf('nobody', 1)".replace("'", '"'),
        '[["nobody", 1]].map({ pair -> agent_session_trim(pair[0], pair[1]) })',
        'await(spawn { agent_session_trim("nobody", 1) })',
    ],
)
def test_a_program_catches_it_however_the_builtin_is_called(call: str) -> None:
    source = f"fn attempt() {{ {call} }}\ntry {{ attempt() }} catch (e) {{ return e }}"
    assert Vm().run_source(source) == "agent_session_trim: unknown session id 'nobody'"


@pytest.mark.parametrize("run", [Vm.run_source, lambda vm, text: asyncio.run(vm.run_async(text))])
def test_uncaught_it_leaves_as_a_vm_error(run: Callable[[Vm, str], Any]) -> None:
    with pytest.raises(VmError.Thrown, match="unknown session id"):
        run(Vm(), 'agent_session_trim("nobody", 1)')


def test_a_function_of_a_namespace_reports_its_faults_and_can_be_denied() -> None:
    with pytest.raises(VmError, match="not permitted"):
        Vm(deny=["event_log.emit"]).run_source('event_log.emit("t", "kind", {})')
