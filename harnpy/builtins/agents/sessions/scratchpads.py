"""A session's scratchpad. Spec: 08 §1.9."""

from __future__ import annotations

from harnpy.builtins.agents.sessions import builtin
from harnpy.builtins.bridge.live_sessions import sessions_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.vm.vm import Vm


@builtin("agent_session_scratchpad(id: string) -> dict | nil")
def agent_session_scratchpad(vm: Vm, id: str) -> Dict | None:
    """The dict that an agent keeps beside a session's transcript; nil when there is none.

    Example:
        agent_session_scratchpad(agent_session_open())  // nil
    """
    return sessions_of(vm).scratchpad(id)


@builtin("agent_session_set_scratchpad(id: string, scratchpad: dict, opts?: dict) -> dict")
def agent_session_set_scratchpad(vm: Vm, id: str, scratchpad: Dict, opts: Dict | None) -> Dict:
    """Replace a session's scratchpad, and return `{ok, version, scratchpad}`.

    `opts`: `source`, `reason`, `metadata`. At most 65536 bytes of JSON. Spec: 08 §1.9.

    Example:
        let s = agent_session_open()
        agent_session_set_scratchpad(s, {step: 1})
        agent_session_scratchpad(s)  // {step: 1}
    """
    return sessions_of(vm).set_scratchpad(id, scratchpad, opts)


@builtin("agent_session_clear_scratchpad(id: string, opts?: dict) -> dict")
def agent_session_clear_scratchpad(vm: Vm, id: str, opts: Dict | None) -> Dict:
    """Remove a session's scratchpad, and return `{ok, version, scratchpad: nil}`.

    Example:
        let s = agent_session_open()
        agent_session_set_scratchpad(s, {step: 1})
        agent_session_clear_scratchpad(s)
        agent_session_scratchpad(s)  // nil
    """
    return sessions_of(vm).clear_scratchpad(id, opts)
