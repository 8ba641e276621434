"""The running task: its ids, the values it carries, and the scopes in which tasks share state.

Spec: 05 §8.1, §12, 07 §14.7.
"""

from __future__ import annotations

from harnpy.builtins.bridge.contexts import context_of
from harnpy.builtins.language.arguments import check_options
from harnpy.vm.declare import ABSENT, builtin
from harnpy.vm.errors import RuntimeFault, Thrown
from harnpy.vm.run.supervisors import Supervisors
from harnpy.vm.values import display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.vm.run.tasks import Task
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

    #: The scope's id and the key in it.
    Place = tuple[str, str]

#: Set only by triggers and schedulers.
_UNSET = dict.fromkeys(
    "scope_id trigger_id trigger_event_id binding_key "
    "tenant_id provider scheduler_key runner capacity_class".split()
)


@builtin("task_current() -> dict", family="concurrency")
@builtin("runtime_context() -> dict", family="concurrency")
def runtime_context(vm: Vm) -> dict[str, Value]:
    """Return the running task: its ids, its agent sessions, its context values, whether it was cancelled.

    Example: [runtime_context().task_id, task_current().task_id]  // ["task_root", "task_root"]
    """
    return _context(vm)


@builtin("runtime_context_values() -> dict", family="concurrency")
def runtime_context_values(vm: Vm) -> dict[str, Value]:
    """Return the context values of the running task; its children begin with a copy of them.

    Example:
        runtime_context_set("user", "ada")
        runtime_context_values().user  // "ada"
    """
    return vm.tasks.current.runtime_context


@builtin("runtime_context_get(key: string, default?: any) -> any", family="concurrency", counted=True)
def runtime_context_get(vm: Vm, key: Value = None, default: Value = None) -> Value:
    """Return the running task's value under `key`, or `default`.

    Example: runtime_context_get("language", "en")  // "en"
    """
    return vm.tasks.current.runtime_context.get(_key("runtime_context_get", key), default)


@builtin("runtime_context_set(key: string, value: any) -> any", family="concurrency", counted=True)
def runtime_context_set(vm: Vm, key: Value = None, value: Value = None) -> Value:
    """Set the running task's value under `key`; return the former value, or nil.

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
    """Remove the running task's value under `key`; return the former value, or nil.

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


# Who shares a cell, a map or a mailbox: scopes, and handles that carry theirs. Spec: 05 §8.1.


_DEFAULT = "task_group"

#: The ids that a scope stands for, the first that is set; scopes that mean the same have a name in common.
_IDS = {
    "task": ("task_id",),
    "root_task": ("root_task_id",),
    "task_group": ("task_group_id", "run_id", "root_task_id"),
    "workflow_run": ("run_id", "task_group_id", "root_task_id"),
    "agent_session": ("agent_session_id", "root_agent_session_id", "root_task_id"),
}
_ALIASES = {
    "task_local": "task",
    "workflow": "task_group",
    "workflow_local": "task_group",
    "run": "workflow_run",
    "session": "agent_session",
}


@builtin("shared_scope_id(scope?: string, options?: dict) -> string", family="concurrency")
def shared_scope_id(vm: Vm, scope: str | None, options: Value) -> str:
    """Return the id of a scope for the running task, `"<scope>:<id>"`; the default scope is `task_group`.

    `options`: `tenant_id`, for the scope `tenant`.

    Example: shared_scope_id("task_group").starts_with("task_group:")  // true
    """
    given = options if type(options) is dict else {}
    check_options("shared_scope_id", given)
    return scope_id(vm, "shared_scope_id", scope, given.get("tenant_id"))


def scope_id(vm: Vm, function: str, scope: Value = None, tenant: Value = None) -> str:
    """Return ``"<scope>:<id>"``. Raises RuntimeFault for a scope that is none of a program."""
    name = _DEFAULT if scope is None else display(scope)
    if not name:
        raise RuntimeFault(f"{function}: scope must not be empty")
    plain = name.replace("-", "_")
    plain = _ALIASES.get(plain, plain)
    if plain in _IDS:
        ids = ids_of(vm)
        return f"{name}:{next(ids[key] for key in _IDS[plain] if ids[key] is not None)}"
    if plain in ("tenant", "tenant_scoped"):
        return f"{name}:{_tenant(vm, function, tenant)}"
    if plain in ("durable", "event_log"):
        raise RuntimeFault(f"{function}: durable shared state is explicit; use store_* or agent_state_* APIs")
    if plain in ("external", "host"):
        raise RuntimeFault(f"{function}: external shared state must be provided by a host/connector builtin")
    return f"{name}:{'process' if plain == 'global' else name}"


def _tenant(vm: Vm, function: str, given: Value) -> str:
    tenant = vm.tasks.current.runtime_context.get("tenant_id") if given is None else given
    if tenant is None:
        raise RuntimeFault(f"{function}: tenant scope requires tenant_id in options or runtime context")
    return display(tenant)


def place_to_open(vm: Vm, function: str, kind: str, target: Value) -> Place:
    """Return what an open function names: by options, a handle or a key."""
    given = target if type(target) is dict else {"key": None if target is ABSENT else target}
    if "_type" in given:
        return place_of(vm, function, kind, given)
    check_options(function, given)
    key = given.get("key")
    if key is None:
        key = given.get("name")
    if key is None or key == "":
        raise RuntimeFault(f"{function}: key/name is required")
    return scope_id(vm, function, given.get("scope"), given.get("tenant_id")), display(key)


def place_of(vm: Vm, function: str, kind: str, target: Value) -> Place:
    """Return what a handle of ``kind``, or a plain name in the default scope, stands for."""
    if type(target) is not dict:
        name = display(target)
        if not name:
            raise RuntimeFault(f"{function}: name must not be empty")
        return scope_id(vm, function), name
    scope, key = target.get("scope"), target.get("key")
    if target.get("_type") != kind or type(scope) is not str or type(key) is not str:
        raise RuntimeFault(f"{function}: expected {kind} handle")
    return scope, key


def handle(kind: str, place: Place) -> dict[str, Value]:
    scope, key = place
    return {"_type": kind, "scope": scope, "key": key}
