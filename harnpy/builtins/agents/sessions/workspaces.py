"""The directories that a session's agent works in. Spec: 08 §1.8."""

from __future__ import annotations

from harnpy.builtins.agents.sessions import builtin
from harnpy.builtins.bridge.live_sessions import sessions_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


@builtin("agent_session_workspace_anchor(id: string) -> dict | nil")
def agent_session_workspace_anchor(vm: Vm, id: str) -> Dict | None:
    """`{primary, additional_roots, anchored_at}` of a session; nil when it has no anchor.

    Example:
        agent_session_workspace_anchor(agent_session_open())  // nil
    """
    return sessions_of(vm).workspace_anchor(id)


@builtin("agent_session_set_workspace_anchor(id: string, anchor: any) -> bool")
def agent_session_set_workspace_anchor(vm: Vm, id: str, anchor: Value) -> bool:
    """Replace a session's anchor and its roots. `anchor`: a dict, the primary path alone, or nil for none.

    Example:
        let s = agent_session_open()
        agent_session_set_workspace_anchor(s, "/work/app")
        agent_session_workspace_anchor(s).primary  // "/work/app"
    """
    return sessions_of(vm).set_workspace_anchor(id, anchor)


@builtin("agent_session_workspace_policy(id: string) -> dict")
def agent_session_workspace_policy(vm: Vm, id: str) -> Dict:
    """`{default_mount_mode}` of a session.

    Example:
        agent_session_workspace_policy(agent_session_open())  // {default_mount_mode: "read_only"}
    """
    return sessions_of(vm).workspace_policy(id)


@builtin("agent_session_set_workspace_policy(id: string, policy: dict) -> bool")
def agent_session_set_workspace_policy(vm: Vm, id: str, policy: Dict) -> bool:
    """Replace a session's policy: `default_mount_mode` is `read_only` or `read_write`.

    Mounted roots keep their mode.

    Example:
        let s = agent_session_open()
        agent_session_set_workspace_policy(s, {default_mount_mode: "read_only"})
        agent_session_workspace_policy(s)  // {default_mount_mode: "read_only"}
    """
    return sessions_of(vm).set_workspace_policy(id, policy)


@builtin("agent_session_list_roots(id: string) -> dict")
def agent_session_list_roots(vm: Vm, id: str) -> Dict:
    """`{primary, additional}`: a session's directories, in the order of mounting.

    Example:
        let s = agent_session_open(nil, {workspace_anchor: "/work/app"})
        agent_session_list_roots(s).additional  // []
    """
    return sessions_of(vm).list_roots(id)


@builtin("agent_session_add_root(id: string, root: string, opts?: dict) -> dict")
def agent_session_add_root(vm: Vm, id: str, root: str, opts: Dict | None) -> Dict:
    """Mount another directory, and return `{ok, mounted_at?, error?}`.

    `opts`: `mount_mode`, else the policy's default. Spec: 08 §1.8.

    Example:
        let s = agent_session_open(nil, {workspace_anchor: "/work/app"})
        agent_session_add_root(s, "/work/lib").ok  // true
    """
    return sessions_of(vm).add_root(id, root, opts)


@builtin("agent_session_remove_root(id: string, root: string) -> dict")
def agent_session_remove_root(vm: Vm, id: str, root: str) -> Dict:
    """Unmount a directory, and return `{ok, error?}`.

    Example:
        let s = agent_session_open(nil, {workspace_anchor: "/work/app"})
        agent_session_add_root(s, "/work/lib")
        agent_session_remove_root(s, "/work/lib").ok  // true
    """
    return sessions_of(vm).remove_root(id, root)
