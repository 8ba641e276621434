"""The `agent_session_*` builtins over the Vm's `SessionRegistry`: lifecycle, clients, workspaces, and so on.

Each checks the types of its arguments and returns the result of the method of the same name. Spec: 08 §1.
"""

from __future__ import annotations

from functools import partial

from harnpy.builtins.bridge.callables import python_function
from harnpy.builtins.bridge.contexts import under_rules_of_now
from harnpy.builtins.bridge.live_sessions import sessions_of
from harnpy.vm.declare import builtin
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import RuntimeFault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.formats.dicts import Dict
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

#: What the declarations of all verbs have in common.
session_builtin = partial(declare, family="agent_sessions", strict=True)


@session_builtin("agent_session_open(id?: string, opts?: dict) -> string")
def agent_session_open(vm: Vm, id: str | None, opts: Dict | None) -> str:
    """Open a session, or create it, and return its id; without `id` a new id is generated.

    `opts`: `workspace_anchor`, `workspace_policy`. Throws for a blank id and unknown options.
    Spec: 08 §1.2, §1.8.

    Example:
        let s = agent_session_open("support")
        [s, agent_session_exists("support")]  // ["support", true]
    """
    return sessions_of(vm).open(id, opts)


@session_builtin("agent_session_exists(id: string) -> bool")
def agent_session_exists(vm: Vm, id: str) -> bool:
    """Return true if a session with that id is open.

    Example: agent_session_exists("nobody opened it")  // false
    """
    return sessions_of(vm).exists(id)


@session_builtin("agent_session_current_id() -> string | nil")
def agent_session_current_id(vm: Vm) -> str | None:
    """Return the id of the innermost session whose loop is running, or nil outside any loop.

    Example: agent_session_current_id()  // nil
    """
    return sessions_of(vm).current_id()


@session_builtin("agent_session_length(id: string) -> int")
def agent_session_length(vm: Vm, id: str) -> int:
    """Return the number of messages in a session. Throws when there is no such session.

    Example: agent_session_length(agent_session_open())  // 0
    """
    return sessions_of(vm).length(id)


@session_builtin("agent_session_history(id: string, opts?: dict) -> list")
def agent_session_history(vm: Vm, id: str, opts: Dict | None) -> list[Dict]:
    """Return the messages behind a session's window, oldest first, including compacted and trimmed ones.

    They begin with the last reset; given `{include_reset: true}`, with the session. Throws for unknown
    ids and options. An extension of harnpy: docs/sessions.md.

    Example:
        let s = agent_session_open()
        for text in ["one", "two", "three"] { agent_session_inject(s, {role: "user", content: text}) }
        agent_session_trim(s, 1)
        agent_session_history(s).map({ message -> message.content })  // ["one", "two", "three"]
    """
    return sessions_of(vm).history_value(id, opts)


@session_builtin("agent_session_snapshot(id: string) -> dict | nil")
def agent_session_snapshot(vm: Vm, id: str) -> Dict | None:
    """Return a session's current transcript and state, or nil if it doesn't exist.

    Spec: 08 §1.3.

    Example: agent_session_snapshot(agent_session_open()).messages  // []
    """
    return sessions_of(vm).snapshot_value(id)


@session_builtin("agent_session_ancestry(id: string) -> dict | nil")
def agent_session_ancestry(vm: Vm, id: str) -> Dict | None:
    """Return `{parent_id, child_ids, root_id}` of a session, or nil if it doesn't exist.

    Example:
        let s = agent_session_open()
        let branch = agent_session_fork(s)
        agent_session_ancestry(branch).parent_id == s  // true
    """
    return sessions_of(vm).ancestry(id)


@session_builtin("agent_session_reset(id: string) -> nil")
def agent_session_reset(vm: Vm, id: str) -> None:
    """Empty a session's transcript; keep its id, subscribers and lineage.

    Example:
        let s = agent_session_open()
        agent_session_inject(s, {role: "user", content: "Hello!"})
        agent_session_reset(s)
        agent_session_length(s)  // 0
    """
    sessions_of(vm).reset(id)


@session_builtin("agent_session_fork(src: string, dst?: string) -> string")
def agent_session_fork(vm: Vm, src: str, dst: str | None) -> str:
    """Copy a session's transcript under a new id and return the id. Subscribers aren't copied.

    Throws when `src` is unknown or `dst` equals it. An existing `dst` gets the transcript and a new
    parent. Spec: 08 §1.4.

    Example:
        let s = agent_session_open()
        agent_session_inject(s, {role: "user", content: "Hello!"})
        let branch = agent_session_fork(s)
        agent_session_inject(branch, {role: "user", content: "Or not."})
        [agent_session_length(s), agent_session_length(branch)]  // [1, 2]
    """
    return sessions_of(vm).fork(src, dst)


@session_builtin("agent_session_fork_at(src: string, keep_first: int, dst?: string) -> string")
def agent_session_fork_at(vm: Vm, src: str, keep_first: int, dst: str | None) -> str:
    """Fork a session, keeping only its first messages on the fork. Spec: 08 §1.4.

    Example:
        let s = agent_session_open()
        for text in ["one", "two", "three"] { agent_session_inject(s, {role: "user", content: text}) }
        agent_session_length(agent_session_fork_at(s, 2))  // 2
    """
    return sessions_of(vm).fork_at(src, keep_first, dst)


@session_builtin("agent_session_trim(id: string, keep_last: int) -> int")
def agent_session_trim(vm: Vm, id: str, keep_last: int) -> int:
    """Keep only a session's newest messages; return how many there are now.

    Example:
        let s = agent_session_open()
        for text in ["one", "two", "three"] { agent_session_inject(s, {role: "user", content: text}) }
        agent_session_trim(s, 2)  // 2
    """
    return sessions_of(vm).trim(id, keep_last)


@session_builtin("agent_session_inject(id: string, message: any) -> nil")
def agent_session_inject(vm: Vm, id: str, message: Value) -> None:
    """Append a message, a dict with a string `role`, to a session. Spec: 08 §1.5.

    A loop that is running on the session adds it before its next model call.

    Example:
        let s = agent_session_open()
        agent_session_inject(s, {role: "user", content: "Hello!"})
        agent_session_snapshot(s).messages[0].content  // "Hello!"
    """
    sessions_of(vm).inject_shared(id, message)


@session_builtin("agent_session_close(id: string, status?: any) -> nil")
def agent_session_close(vm: Vm, id: str, status: Value) -> None:
    """Remove a session. Its subscribers receive `status`, a string or a dict with `reason`.

    Spec: 08 §1.6.

    Example:
        let s = agent_session_open()
        agent_session_close(s)
        agent_session_exists(s)  // false
    """
    sessions_of(vm).close(id, status)


@session_builtin("agent_session_seed_from_jsonl(jsonl_path: string, opts?: dict) -> dict", guarded=True)
def agent_session_seed_from_jsonl(vm: Vm, jsonl_path: str, opts: Dict | None) -> Dict:
    """Create a session from the messages in an `llm_transcript.jsonl`: `{ok, session_id?, …, error?}`.

    `opts`: `truncate_to_last`, `drop_tool_calls`, `rename_session`, `validate`, `provider`, `model`.
    A problem with the file is returned as `error`, not thrown. Spec: 08 §3.4.

    Example: agent_session_seed_from_jsonl("no such file.jsonl").ok  // false
    """
    return sessions_of(vm).seed_from_jsonl(jsonl_path, opts)


@session_builtin("agent_session_scratchpad(id: string) -> dict | nil")
def agent_session_scratchpad(vm: Vm, id: str) -> Dict | None:
    """Return the dict that an agent keeps beside a session's transcript, or nil.

    Example: agent_session_scratchpad(agent_session_open())  // nil
    """
    return sessions_of(vm).scratchpad(id)


@session_builtin("agent_session_set_scratchpad(id: string, scratchpad: dict, opts?: dict) -> dict")
def agent_session_set_scratchpad(vm: Vm, id: str, scratchpad: Dict, opts: Dict | None) -> Dict:
    """Replace a session's scratchpad, and return `{ok, version, scratchpad}`.

    `opts`: `source`, `reason`, `metadata`. At most 65536 bytes of JSON. Spec: 08 §1.9.

    Example:
        let s = agent_session_open()
        agent_session_set_scratchpad(s, {step: 1})
        agent_session_scratchpad(s)  // {step: 1}
    """
    return sessions_of(vm).set_scratchpad(id, scratchpad, opts)


@session_builtin("agent_session_clear_scratchpad(id: string, opts?: dict) -> dict")
def agent_session_clear_scratchpad(vm: Vm, id: str, opts: Dict | None) -> Dict:
    """Remove a session's scratchpad, and return `{ok, version, scratchpad: nil}`.

    Example:
        let s = agent_session_open()
        agent_session_set_scratchpad(s, {step: 1})
        agent_session_clear_scratchpad(s)
        agent_session_scratchpad(s)  // nil
    """
    return sessions_of(vm).clear_scratchpad(id, opts)


# The directories that a session's agent works in. Spec: 08 §1.8.


@session_builtin("agent_session_workspace_anchor(id: string) -> dict | nil")
def agent_session_workspace_anchor(vm: Vm, id: str) -> Dict | None:
    """Return `{primary, additional_roots, anchored_at}` of a session, or nil if it has no anchor.

    Example: agent_session_workspace_anchor(agent_session_open())  // nil
    """
    return sessions_of(vm).workspace_anchor(id)


@session_builtin("agent_session_set_workspace_anchor(id: string, anchor: any) -> bool")
def agent_session_set_workspace_anchor(vm: Vm, id: str, anchor: Value) -> bool:
    """Replace a session's anchor and its roots. `anchor`: a dict, the primary path alone, or nil for none.

    Example:
        let s = agent_session_open()
        agent_session_set_workspace_anchor(s, "/work/app")
        agent_session_workspace_anchor(s).primary  // "/work/app"
    """
    return sessions_of(vm).set_workspace_anchor(id, anchor)


@session_builtin("agent_session_workspace_policy(id: string) -> dict")
def agent_session_workspace_policy(vm: Vm, id: str) -> Dict:
    """Return a session's policy, `{default_mount_mode}`.

    Example: agent_session_workspace_policy(agent_session_open())  // {default_mount_mode: "read_only"}
    """
    return sessions_of(vm).workspace_policy(id)


@session_builtin("agent_session_set_workspace_policy(id: string, policy: dict) -> bool")
def agent_session_set_workspace_policy(vm: Vm, id: str, policy: Dict) -> bool:
    """Replace a session's policy: `default_mount_mode` is `read_only` or `read_write`.

    Mounted roots keep their mode.

    Example:
        let s = agent_session_open()
        agent_session_set_workspace_policy(s, {default_mount_mode: "read_only"})
        agent_session_workspace_policy(s)  // {default_mount_mode: "read_only"}
    """
    return sessions_of(vm).set_workspace_policy(id, policy)


@session_builtin("agent_session_list_roots(id: string) -> dict")
def agent_session_list_roots(vm: Vm, id: str) -> Dict:
    """Return a session's directories in the order they were mounted: `{primary, additional}`.

    Example:
        let s = agent_session_open(nil, {workspace_anchor: "/work/app"})
        agent_session_list_roots(s).additional  // []
    """
    return sessions_of(vm).list_roots(id)


@session_builtin("agent_session_add_root(id: string, root: string, opts?: dict) -> dict")
def agent_session_add_root(vm: Vm, id: str, root: str, opts: Dict | None) -> Dict:
    """Mount another directory, and return `{ok, mounted_at?, error?}`.

    `opts`: `mount_mode`, else the policy's default. Spec: 08 §1.8.

    Example:
        let s = agent_session_open(nil, {workspace_anchor: "/work/app"})
        agent_session_add_root(s, "/work/lib").ok  // true
    """
    return sessions_of(vm).add_root(id, root, opts)


@session_builtin("agent_session_remove_root(id: string, root: string) -> dict")
def agent_session_remove_root(vm: Vm, id: str, root: str) -> Dict:
    """Unmount a directory, and return `{ok, error?}`.

    Example:
        let s = agent_session_open(nil, {workspace_anchor: "/work/app"})
        agent_session_add_root(s, "/work/lib")
        agent_session_remove_root(s, "/work/lib").ok  // true
    """
    return sessions_of(vm).remove_root(id, root)


# Live clients of a session. Spec: 08 §1.10.
#
# The registry checks `client_id`, which may be blank; the declaration checks the other arguments.


@session_builtin("agent_session_attach(id: string, client_id: string, opts?: dict) -> dict")
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


@session_builtin("agent_session_takeover(id: string, client_id: string, opts?: dict) -> dict")
def agent_session_takeover(vm: Vm, id: str, client_id: str, opts: Dict | None) -> Dict:
    """Attach a client as the controller; the former controller becomes an observer. Spec: 08 §1.10.

    Example:
        let s = agent_session_open()
        agent_session_attach(s, "laptop", {mode: "controller"})
        agent_session_takeover(s, "phone")
        agent_session_live_clients(s).map({ client -> client.mode })  // ["observer", "controller"]
    """
    return sessions_of(vm).takeover(id, client_id, opts)


@session_builtin("agent_session_detach(id: string, client_id: string, opts?: dict) -> dict")
def agent_session_detach(vm: Vm, id: str, client_id: str, opts: Dict | None) -> Dict:
    """Detach a client; a controller gets no successor. `opts`: `reason`, `metadata`. Spec: 08 §1.10.

    Example:
        let s = agent_session_open()
        agent_session_attach(s, "laptop")
        agent_session_detach(s, "laptop")
        agent_session_live_clients(s)  // []
    """
    return sessions_of(vm).detach(id, client_id, opts)


@session_builtin("agent_session_heartbeat(id: string, client_id: string, opts?: dict) -> dict")
def agent_session_heartbeat(vm: Vm, id: str, client_id: str, opts: Dict | None) -> Dict:
    """Record that a client is still there. `opts`: `metadata`, merged over its own. Spec: 08 §1.10.

    Example:
        let s = agent_session_open()
        agent_session_attach(s, "laptop")
        agent_session_heartbeat(s, "laptop").client_id  // "laptop"
    """
    return sessions_of(vm).heartbeat(id, client_id, opts)


@session_builtin("agent_session_live_clients(id: string) -> list")
def agent_session_live_clients(vm: Vm, id: str) -> list[Dict]:
    """Return the attached clients in the order they attached. Spec: 08 §1.10.

    Example: agent_session_live_clients(agent_session_open())  // []
    """
    return sessions_of(vm).live_clients(id)


@session_builtin(
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


@session_builtin(
    "agent_session_route_permission(id: string, client_id: string, request: dict, opts?: dict) -> dict"
)
def agent_session_route_permission(vm: Vm, id: str, client_id: str, request: Dict, opts: Dict | None) -> Dict:
    """Record that the controller handles a permission request: `{ok, client_id, request, routed_at, …}`.
    Spec: 08 §1.10.

    Example:
        let s = agent_session_open()
        agent_session_attach(s, "laptop", {mode: "controller", can_route_permission: true})
        agent_session_route_permission(s, "laptop", {tool: "edit"}).ok  // true
    """
    return sessions_of(vm).route_permission(id, client_id, request, opts)


# Subscribers to a session's agent events, and feedback to its loops. Spec: 08 §1.7.


@builtin("agent_subscribe(session_id: any, callback: any) -> nil", family="llm")
def agent_subscribe(vm: Vm, session_id: Value, callback: Value) -> None:
    """Call `callback` for each agent event of a session, which is opened if necessary.

    Errors of the callback become warnings. The rules that are in force now bind it later, too.
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
    """Queue a note for a session's current or next loop. Spec: 07 §7.2.

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
