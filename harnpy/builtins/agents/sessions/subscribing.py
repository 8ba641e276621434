"""Subscribers to a session's agent events, and feedback to its loops. Spec: 08 §1.7."""

from __future__ import annotations

from harnpy.builtins.bridge.callables import python_function
from harnpy.builtins.bridge.contexts import under_rules_of_now
from harnpy.builtins.bridge.live_sessions import sessions_of
from harnpy.vm.declare.builtin import builtin
from harnpy.vm.errors import RuntimeFault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


@builtin("agent_subscribe(session_id: any, callback: any) -> nil", family="llm")
def agent_subscribe(vm: Vm, session_id: Value, callback: Value) -> None:
    """Call `callback` with each agent event of a session, which is opened if necessary.

    What the callback throws becomes a warning. The rules that are in force now bind it later, too.
    Spec: 08 §1.7.

    Example:
        let s = agent_session_open()
        let turns = atomic(0)
        agent_subscribe(s, { event -> if event.type == "turn_start" { atomic_add(turns, 1) } })
        agent_loop("Hi", nil, {provider: "mock", session_id: s})
        atomic_get(turns) > 0  // true
    """
    call = "agent_subscribe(session_id, callback)"
    _require_string(call, "session_id", session_id)
    if callback is None:
        raise RuntimeFault(f"{call}: callback closure required")
    if vm.callback(callback, 1) is None:
        raise RuntimeFault(f"{call}: callback must be a closure")
    sessions_of(vm).subscribe(session_id, under_rules_of_now(vm, python_function(vm, callback)))


@builtin("agent_inject_feedback(session_id: any, kind: any, content: any) -> nil", family="llm")
def agent_inject_feedback(vm: Vm, session_id: Value, kind: Value, content: Value) -> None:
    """Queue a note for the loop that runs on a session now or next. Spec: 07 §7.2.

    Example:
        let s = agent_session_open()
        agent_inject_feedback(s, "hint", "The shop closes at six.")  // nil
    """
    call = "agent_inject_feedback(session_id, kind, content)"
    for name, value in (("session_id", session_id), ("kind", kind), ("content", content)):
        _require_string(call, name, value)
    sessions_of(vm).inject_feedback(session_id, kind, content)


def _require_string(call: str, name: str, value: Value) -> None:
    if type(value) is not str:
        raise RuntimeFault(f"{call}: {name} must be a string")
