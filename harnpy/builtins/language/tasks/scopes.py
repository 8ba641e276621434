"""Who shares a cell, a map or a mailbox: scopes, and handles that carry theirs. Spec: 05 §8.1."""

from __future__ import annotations

from harnpy.builtins.language.tasks.context import ids_of
from harnpy.builtins.language.tasks.option_tables import check_options
from harnpy.vm.declare.builtin import ABSENT, builtin
from harnpy.vm.errors import RuntimeFault
from harnpy.vm.values.objects import display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

    #: The scope's id and the key in it.
    Place = tuple[str, str]

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
    """The id of a scope for the running task, `"<scope>:<id>"`; the default scope is `task_group`.

    `options`: `tenant_id`, for the scope `tenant`.

    Example:
        shared_scope_id("task_group").starts_with("task_group:")  // true
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
