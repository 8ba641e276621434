"""The session that a task's loops and model calls are on when they name none. Spec: 10 §A2.5, §C9."""

from __future__ import annotations

from harnpy.builtins.bridge.contexts import context_of
from harnpy.builtins.bridge.live_sessions import sessions_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.agent.context import ActiveSession
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


def active_session(vm: Vm) -> ActiveSession | None:
    """The running task's; None inside a loop, whose conversation is its own."""
    if vm.task_context is None:
        return None
    context = context_of(vm)
    return None if context.sessions.ids else context.active


def on_active_session(vm: Vm, options: Value) -> Value:
    """The options of a loop, with the active session if they name none."""
    active = active_session(vm)
    given = {} if options is None else options
    if active is None or type(given) is not dict or given.get("session_id") is not None:
        return options
    sessions_of(vm).open(active.id, {"store": active.runtime.store})
    return {**given, "session_id": active.id}
