"""The verbs of a session's life. Spec: 08 §1.2–1.6."""

from __future__ import annotations

from harnpy.builtins.agents.sessions import builtin
from harnpy.builtins.bridge.live_sessions import sessions_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


@builtin("agent_session_open(id?: string, opts?: dict) -> string")
def agent_session_open(vm: Vm, id: str | None, opts: Dict | None) -> str:
    """Open a session, or create it, and return its id; without `id` a new one is minted.

    `opts`: `workspace_anchor`, `workspace_policy`. Throws for a blank id and unknown options.
    Spec: 08 §1.2, §1.8.

    Example:
        let s = agent_session_open("support")
        [s, agent_session_exists("support")]  // ["support", true]
    """
    return sessions_of(vm).open(id, opts)


@builtin("agent_session_exists(id: string) -> bool")
def agent_session_exists(vm: Vm, id: str) -> bool:
    """Whether a session of that id is open.

    Example:
        agent_session_exists("nobody opened it")  // false
    """
    return sessions_of(vm).exists(id)


@builtin("agent_session_current_id() -> string | nil")
def agent_session_current_id(vm: Vm) -> str | None:
    """The id of the session whose loop is running, innermost first; nil outside any loop.

    Example:
        agent_session_current_id()  // nil
    """
    return sessions_of(vm).current_id()


@builtin("agent_session_length(id: string) -> int")
def agent_session_length(vm: Vm, id: str) -> int:
    """The number of messages in a session. Throws when there is no such session.

    Example:
        agent_session_length(agent_session_open())  // 0
    """
    return sessions_of(vm).length(id)


@builtin("agent_session_history(id: string, opts?: dict) -> list")
def agent_session_history(vm: Vm, id: str, opts: Dict | None) -> list[Dict]:
    """The messages behind a session's window, oldest first, including those that compaction or trim removed.

    They begin with the last reset; given `{include_reset: true}`, with the session. Throws for unknown
    ids and options. An extension of harnpy: docs/sessions.md.

    Example:
        let s = agent_session_open()
        for text in ["one", "two", "three"] { agent_session_inject(s, {role: "user", content: text}) }
        agent_session_trim(s, 1)
        agent_session_history(s).map({ message -> message.content })  // ["one", "two", "three"]
    """
    return sessions_of(vm).history_value(id, opts)


@builtin("agent_session_snapshot(id: string) -> dict | nil")
def agent_session_snapshot(vm: Vm, id: str) -> Dict | None:
    """The transcript and the state of a session as it stands; nil when there is no such session.

    Spec: 08 §1.3.

    Example:
        agent_session_snapshot(agent_session_open()).messages  // []
    """
    return sessions_of(vm).snapshot_value(id)


@builtin("agent_session_ancestry(id: string) -> dict | nil")
def agent_session_ancestry(vm: Vm, id: str) -> Dict | None:
    """`{parent_id, child_ids, root_id}` of a session; nil when there is no such session.

    Example:
        let s = agent_session_open()
        let branch = agent_session_fork(s)
        agent_session_ancestry(branch).parent_id == s  // true
    """
    return sessions_of(vm).ancestry(id)


@builtin("agent_session_reset(id: string) -> nil")
def agent_session_reset(vm: Vm, id: str) -> None:
    """Empty a session's transcript; its id, subscribers and lineage stay.

    Example:
        let s = agent_session_open()
        agent_session_inject(s, {role: "user", content: "Hello!"})
        agent_session_reset(s)
        agent_session_length(s)  // 0
    """
    sessions_of(vm).reset(id)


@builtin("agent_session_fork(src: string, dst?: string) -> string")
def agent_session_fork(vm: Vm, src: str, dst: str | None) -> str:
    """Copy a session's transcript under a new id, and return that. Subscribers aren't copied.

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


@builtin("agent_session_fork_at(src: string, keep_first: int, dst?: string) -> string")
def agent_session_fork_at(vm: Vm, src: str, keep_first: int, dst: str | None) -> str:
    """Fork a session, keeping only its first messages on the fork. Spec: 08 §1.4.

    Example:
        let s = agent_session_open()
        for text in ["one", "two", "three"] { agent_session_inject(s, {role: "user", content: text}) }
        agent_session_length(agent_session_fork_at(s, 2))  // 2
    """
    return sessions_of(vm).fork_at(src, keep_first, dst)


@builtin("agent_session_trim(id: string, keep_last: int) -> int")
def agent_session_trim(vm: Vm, id: str, keep_last: int) -> int:
    """Keep a session's newest messages, and return how many there are now.

    Example:
        let s = agent_session_open()
        for text in ["one", "two", "three"] { agent_session_inject(s, {role: "user", content: text}) }
        agent_session_trim(s, 2)  // 2
    """
    return sessions_of(vm).trim(id, keep_last)


@builtin("agent_session_inject(id: string, message: any) -> nil")
def agent_session_inject(vm: Vm, id: str, message: Value) -> None:
    """Append a message, a dict with a string `role`, to a session. Spec: 08 §1.5.

    A loop that is running on the session adds it before its next model call.

    Example:
        let s = agent_session_open()
        agent_session_inject(s, {role: "user", content: "Hello!"})
        agent_session_snapshot(s).messages[0].content  // "Hello!"
    """
    sessions_of(vm).inject_shared(id, message)


@builtin("agent_session_close(id: string, status?: any) -> nil")
def agent_session_close(vm: Vm, id: str, status: Value) -> None:
    """Remove a session. Its subscribers receive `status`, a string or a dict with `reason`.

    Spec: 08 §1.6.

    Example:
        let s = agent_session_open()
        agent_session_close(s)
        agent_session_exists(s)  // false
    """
    sessions_of(vm).close(id, status)
