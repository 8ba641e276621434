"""The running task: its ids, what it works for, and the values it carries. Spec: 05 §12, 07 §14.7."""

from __future__ import annotations

from harnpy.builtins.bridge.contexts import context_of
from harnpy.vm.declare.builtin import builtin
from harnpy.vm.errors import Thrown
from harnpy.vm.run.tasks.supervisors import Supervisors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.vm.run.tasks.task import Task
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

#: Set only by triggers and schedulers.
_UNSET = dict.fromkeys(
    "scope_id trigger_id trigger_event_id binding_key "
    "tenant_id provider scheduler_key runner capacity_class".split()
)


@builtin("runtime_context() -> dict", family="concurrency")
def runtime_context(vm: Vm) -> dict[str, Value]:
    """The running task: its ids, its agent sessions, its context values, whether it was cancelled.

    Example:
        runtime_context().task_id  // "task_root"
    """
    return _context(vm)


@builtin("task_current() -> dict", family="concurrency")
def task_current(vm: Vm) -> dict[str, Value]:
    """The same as `runtime_context()`.

    Example:
        task_current().task_id == runtime_context().task_id  // true
    """
    return _context(vm)


@builtin("runtime_context_values() -> dict", family="concurrency")
def runtime_context_values(vm: Vm) -> dict[str, Value]:
    """The context values of the running task; its children begin with a copy of them.

    Example:
        runtime_context_set("user", "ada")
        runtime_context_values().user  // "ada"
    """
    return vm.tasks.current.runtime_context


@builtin("runtime_context_get(key: string, default?: any) -> any", family="concurrency", counted=True)
def runtime_context_get(vm: Vm, key: Value = None, default: Value = None) -> Value:
    """The value under `key`, else `default`.

    Example:
        runtime_context_get("language", "en")  // "en"
    """
    return vm.tasks.current.runtime_context.get(_key("runtime_context_get", key), default)


@builtin("runtime_context_set(key: string, value: any) -> any", family="concurrency", counted=True)
def runtime_context_set(vm: Vm, key: Value = None, value: Value = None) -> Value:
    """Set the running task's value under `key`; returns the former value, else nil.

    Example:
        runtime_context_set("user", "ada")
        await(spawn { runtime_context_get("user") })  // "ada"
    """
    task, name = vm.tasks.current, _key("runtime_context_set", key)
    # A new dict: child tasks share the old one, and programs may keep it.
    before, task.runtime_context = task.runtime_context, {**task.runtime_context, name: value}
    return before.get(name)


@builtin("runtime_context_clear(key: string) -> any", family="concurrency", counted=True)
def runtime_context_clear(vm: Vm, key: Value = None) -> Value:
    """Remove the running task's value under `key`; returns the former value, else nil.

    Example:
        runtime_context_set("user", "ada")
        runtime_context_clear("user")  // "ada"
    """
    task, name = vm.tasks.current, _key("runtime_context_clear", key)
    before = task.runtime_context
    task.runtime_context = {other: value for other, value in before.items() if other != name}
    return before.get(name)


def _key(function: str, key: Value) -> str:
    if type(key) is not str:
        raise Thrown(f"{function}: first argument must be a string key")
    return key


def _context(vm: Vm) -> dict[str, Value]:
    task = vm.tasks.current
    worker, workflow = context_of(vm).worker, context_of(vm).workflow
    return {
        **_UNSET,
        **ids_of(vm),
        "task_name": task.name(),
        "workflow_id": workflow.workflow_id if workflow else None,
        "stage_id": workflow.stage_id if workflow else None,
        "worker_id": worker.id if worker else None,
        "agent_name": worker.name if worker else None,
        "trace_id": task.open_spans[-1]["trace_id"] if task.open_spans else None,
        "span_id": task.open_spans[-1]["span_id"] if task.open_spans else None,
        "context_values": task.runtime_context,
        "cancelled": task.cancel_requested,
        "debug": _debug(vm, task),
    }


def ids_of(vm: Vm) -> dict[str, str | None]:
    """Return what the running task is and belongs to: tasks, a run, agent sessions."""
    task, context = vm.tasks.current, context_of(vm)
    sessions = context.sessions.ids
    return {
        "task_id": task.id(),
        "parent_task_id": task.parent.id() if task.parent else None,
        "root_task_id": vm.tasks.root.id(),
        "task_group_id": task.group_id(),
        "run_id": context.workflow.run_id if context.workflow else None,
        "agent_session_id": sessions[-1] if sessions else None,
        "parent_agent_session_id": sessions[-2] if len(sessions) > 1 else None,
        "root_agent_session_id": sessions[0] if sessions else None,
    }


def _debug(vm: Vm, task: Task) -> dict[str, Any]:
    supervisors = vm.state(Supervisors)
    return {
        "cancelled": task.cancel_requested,
        "waiting_reason": None,
        "active_task_ids": [child.handle_id() for child in task.children or () if child.batch is None],
        "held_synchronization": [
            {"kind": grant.lock.kind, "key": grant.lock.key, "permits": grant.units}
            for grant in task.held or ()
        ],
        "supervisors": [supervisors[id].state() for id in sorted(supervisors)],
    }
