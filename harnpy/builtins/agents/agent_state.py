"""Plans, handoffs, and the durable files of an agent (`std/agent_state`).

Spec: 06 §19, 07 §14.2-14.5, 08 §12.
"""

from __future__ import annotations

from functools import partial

from harnpy.agent import handoffs, plans
from harnpy.agent.saved_state import HANDOFF_KEY, AgentState, handoff_envelope, read_handle
from harnpy.builtins.bridge.contexts import context_of
from harnpy.builtins.bridge.live_sessions import sessions_of
from harnpy.faults import MisuseError
from harnpy.formats.json import pretty_json
from harnpy.vm.declare import builtin
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import RuntimeFault
from harnpy.world.clock import rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

    T = TypeVar("T")

state_builtin = partial(declare, family="agent_state", counted=True, guarded=True)

# Plans and handoffs in their normal forms. Spec: 07 §14.2–14.3, 08 §12.


@builtin("plan_artifact(plan: any) -> dict", family="tools")
def plan_artifact(vm: Vm, plan: Value) -> dict[str, Any]:
    """Return a plan in any form as `{_type: "plan_artifact", id, title, summary, steps, approval, …}`.

    Example: plan_artifact({title: "Move", steps: ["pack", "drive"]}).title  // "Move"
    """
    return plans.plan_artifact(plan)


@builtin("plan_entries(plan: any) -> list", family="tools")
def plan_entries(vm: Vm, plan: Value) -> list[dict[str, Any]]:
    """Return the steps of a plan as `{content, status, priority?}`, or its summary if it has none.

    Example: plan_entries({steps: ["pack", "drive"]}).map({ step -> step.content })  // ["pack", "drive"]
    """
    return plans.plan_entries(plan)


@builtin("handoff(payload: dict) -> dict", family="records")
def handoff(vm: Vm, payload: Value) -> dict[str, Any]:
    """Return a handoff in normalised form: from whom, to whom, which task, why, with what.

    Spec: 07 §14.3, 08 §12.

    Example:
        let who = {source_persona: "clerk", target_persona_or_human: "manager"}
        handoff(who + {task: "Refund", reason: "over 100"}).target_persona_or_human.id  // "manager"
    """
    return _normal(vm, payload, "handoff")


@builtin("handoff_context(payload: dict) -> string", family="records")
def handoff_context(vm: Vm, payload: Value) -> str:
    """Return a handoff as tagged text for the model that takes over.

    Example:
        let who = {source_persona: "clerk", target_persona_or_human: "manager"}
        handoff_context(who + {task: "Refund", reason: "over 100"}).contains("over 100")  // true
    """
    return handoffs.handoff_context(_normal(vm, payload, "handoff_context"))


def _normal(vm: Vm, payload: Value, caller: str) -> dict[str, Any]:
    id, now, run_id = f"handoff_{vm.world.ids.new()}", rfc3339(vm.world.clock.now()), current_run(vm)
    return handoffs.normalise(payload, id, now, run_id, caller)


def current_run(vm: Vm) -> str | None:
    """Return the workflow run that the running task works for, by its mutation session."""
    workflow = context_of(vm).workflow
    return None if workflow is None else workflow.mutation["run_id"]


# The builtins behind `std/agent_state`: an agent's durable files. Spec: 06 §19, 07 §14.5.


@state_builtin("__agent_state_init(root: string, options?: dict) -> dict")
def init(vm: Vm, root: Value = None, options: Value = None) -> dict[str, Any]:
    """Create or reopen `<root>/<session_id>/` and return its handle."""
    text, current = _text(root, "__agent_state_init", "root"), sessions_of(vm).current_id()
    return _done(lambda: _state(vm).init(text, _dict(options), current))


@state_builtin("__agent_state_resume(root: string, session_id: string, options?: dict) -> dict")
def resume(vm: Vm, root: Value = None, session_id: Value = None, options: Value = None) -> dict[str, Any]:
    """Return the handle of a session's existing state."""
    caller = "__agent_state_resume"
    text, id = _text(root, caller, "root"), _text(session_id, caller, "session_id")
    return _done(lambda: _state(vm).resume(text, id, _dict(options)))


@state_builtin("__agent_state_write(handle: dict, key: string, content: string) -> nil")
def write(vm: Vm, handle: Value = None, key: Value = None, content: Value = None) -> None:
    """Replace the text under a key and record who wrote it."""
    if type(content) is not str:
        raise RuntimeFault("__agent_state_write: `content` must be a string")
    _done(lambda: _state(vm).write(read_handle(handle, "__agent_state_write"), _key(key), content))


@state_builtin("__agent_state_read(handle: dict, key: string) -> string | nil")
def read(vm: Vm, handle: Value = None, key: Value = None) -> str | None:
    """Return the text under a key, or nil."""
    return _done(lambda: _state(vm).read(read_handle(handle, "__agent_state_read"), _key(key)))


@state_builtin("__agent_state_list(handle: dict) -> list")
def keys(vm: Vm, handle: Value = None) -> list[str]:
    """Return all keys, sorted."""
    return _done(lambda: _state(vm).keys(read_handle(handle, "__agent_state_list")))


@state_builtin("__agent_state_delete(handle: dict, key: string) -> nil")
def delete(vm: Vm, handle: Value = None, key: Value = None) -> None:
    """Delete a key if it exists."""
    _done(lambda: _state(vm).delete(read_handle(handle, "__agent_state_delete"), _key(key)))


@state_builtin("__agent_state_handoff(handle: dict, summary: dict) -> nil")
def hand_off(vm: Vm, handle: Value = None, summary: Value = None) -> None:
    """Write a summary for the next agent under the reserved key."""
    if type(summary) is not dict:
        raise RuntimeFault("__agent_state_handoff: `summary` must be a JSON object")

    def write_envelope() -> None:
        target = read_handle(handle, "__agent_state_handoff")
        envelope = handoff_envelope(target, summary, _handoff(vm, summary), vm.world.clock.now())
        _state(vm).hand_off(target, pretty_json(envelope))

    _done(write_envelope)


@builtin("__agent_state_handoff_key() -> string", family="agent_state")
def handoff_key(vm: Vm) -> str:
    """Return the reserved key for handoffs."""
    return HANDOFF_KEY


def _handoff(vm: Vm, summary: Value) -> dict[str, Any] | None:
    try:
        id, now = f"handoff_{vm.world.ids.new()}", rfc3339(vm.world.clock.now())
        return handoffs.normalise(summary, id, now, current_run(vm))
    except MisuseError:
        return None


def _state(vm: Vm) -> AgentState:
    return AgentState(vm.world, vm.tasks.sleep)


def _done(action: Callable[[], T]) -> T:
    """Return the result of ``action``; a failure becomes a runtime error."""
    try:
        return action()
    except OSError as error:
        raise RuntimeFault(f"agent_state: {error.strerror}: {error.filename}") from None


def _text(value: Value, caller: str, argument: str) -> str:
    if type(value) is not str or not value:
        raise RuntimeFault(f"{caller}: `{argument}` must be a non-empty string")
    return value


def _key(value: Value) -> str:
    return value if type(value) is str else ""


def _dict(value: Value) -> dict[str, Value]:
    return value if type(value) is dict else {}
