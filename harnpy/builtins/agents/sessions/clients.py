"""Live clients of a session. Spec: 08 §1.10.

The registry checks `client_id`, which may be blank; the declaration checks the other arguments.
"""

from __future__ import annotations

from harnpy.builtins.agents.sessions import builtin
from harnpy.builtins.bridge.live_sessions import sessions_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


@builtin("agent_session_attach(id: string, client_id: string, opts?: dict) -> dict")
def agent_session_attach(vm: Vm, id: str, client_id: str, opts: Dict | None) -> Dict:
    """Attach a client to a session, or change an attached one.

    `opts`: `mode` (`observer`, or `controller`: one per session), `takeover`, `metadata`,
    `can_inject_prompt`, `can_route_permission`. Spec: 08 §1.10.

    Example:
        let s = agent_session_open()
        agent_session_attach(s, "laptop", {mode: "controller"})
        agent_session_live_clients(s).map({ client -> client.client_id })  // ["laptop"]
    """
    return sessions_of(vm).attach(id, client_id, opts)


@builtin("agent_session_takeover(id: string, client_id: string, opts?: dict) -> dict")
def agent_session_takeover(vm: Vm, id: str, client_id: str, opts: Dict | None) -> Dict:
    """Attach a client as the controller; the former controller becomes an observer.

    Example:
        let s = agent_session_open()
        agent_session_attach(s, "laptop", {mode: "controller"})
        agent_session_takeover(s, "phone")
        agent_session_live_clients(s).map({ client -> client.mode })  // ["observer", "controller"]
    """
    return sessions_of(vm).takeover(id, client_id, opts)


@builtin("agent_session_detach(id: string, client_id: string, opts?: dict) -> dict")
def agent_session_detach(vm: Vm, id: str, client_id: str, opts: Dict | None) -> Dict:
    """Detach a client; a controller leaves no successor. `opts`: `reason`, `metadata`.

    Example:
        let s = agent_session_open()
        agent_session_attach(s, "laptop")
        agent_session_detach(s, "laptop")
        agent_session_live_clients(s)  // []
    """
    return sessions_of(vm).detach(id, client_id, opts)


@builtin("agent_session_heartbeat(id: string, client_id: string, opts?: dict) -> dict")
def agent_session_heartbeat(vm: Vm, id: str, client_id: str, opts: Dict | None) -> Dict:
    """Record that a client is still there. `opts`: `metadata`, merged over its own.

    Example:
        let s = agent_session_open()
        agent_session_attach(s, "laptop")
        agent_session_heartbeat(s, "laptop").client_id  // "laptop"
    """
    return sessions_of(vm).heartbeat(id, client_id, opts)


@builtin("agent_session_live_clients(id: string) -> list")
def agent_session_live_clients(vm: Vm, id: str) -> list[Dict]:
    """The attached clients, in the order in which they came.

    Example:
        agent_session_live_clients(agent_session_open())  // []
    """
    return sessions_of(vm).live_clients(id)


@builtin(
    "agent_session_client_inject_prompt(id: string, client_id: string, content: any, opts?: dict) -> nil"
)
def agent_session_client_inject_prompt(
    vm: Vm, id: str, client_id: str, content: Value, opts: Dict | None
) -> None:
    """Append a user message on behalf of the controller. `content`: text, or a list of blocks.

    Throws for any other client, and for a controller without prompt-injection rights. Spec: 08 §1.10.

    Example:
        let s = agent_session_open()
        agent_session_attach(s, "laptop", {mode: "controller", can_inject_prompt: true})
        agent_session_client_inject_prompt(s, "laptop", "Go on.")
        agent_session_length(s)  // 1
    """
    sessions_of(vm).client_inject_prompt(id, client_id, content, opts)


@builtin("agent_session_route_permission(id: string, client_id: string, request: dict, opts?: dict) -> dict")
def agent_session_route_permission(vm: Vm, id: str, client_id: str, request: Dict, opts: Dict | None) -> Dict:
    """Record that the controller handles a permission request: `{ok, client_id, request, routed_at, …}`.

    Example:
        let s = agent_session_open()
        agent_session_attach(s, "laptop", {mode: "controller", can_route_permission: true})
        agent_session_route_permission(s, "laptop", {tool: "edit"}).ok  // true
    """
    return sessions_of(vm).route_permission(id, client_id, request, opts)
