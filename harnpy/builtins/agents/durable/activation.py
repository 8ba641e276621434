"""The active session of a task: the default one of `agent_loop` and `llm_call`. Spec: 10 §A2.5, §C9."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.agent.context import ActiveSession
from harnpy.builtins.bridge.contexts import context_of
from harnpy.builtins.bridge.durable.verbs import builtin
from harnpy.session.runtime import bus

if TYPE_CHECKING:
    from harnpy.builtins.bridge.durable.verbs import Call

    Dict = dict[str, Any]


@builtin("__session_activate(id?: string, opts?: dict) -> string")
def activate(call: Call, id: str | None, opts: Dict) -> str:
    """Make a session the default one of this task, a new one if there is none of that id."""
    runtime = call.runtime
    known = runtime.open(id, create=True) if id is not None else runtime.create(id=call.durable.new_id())
    context_of(call.vm).active = ActiveSession(known.id, runtime)
    call.durable.events.emit(bus.ACTIVATED, {"session_id": known.id, "agent_name": known.info.agent_name})
    return known.id


@builtin("__session_deactivate() -> nil")
def deactivate(call: Call) -> None:
    """Let the task have no default session."""
    context = context_of(call.vm)
    active, context.active = context.active, None
    if active is not None:
        call.durable.events.emit(bus.DEACTIVATED, {"session_id": active.id})


@builtin("__session_active() -> string | nil")
def active(call: Call) -> str | None:
    """The id of the task's default session; nil when there is none."""
    found = context_of(call.vm).active
    return None if found is None else found.id
