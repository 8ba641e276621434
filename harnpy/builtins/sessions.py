"""Sessions: the `agent_session_*` builtins over the Vm's registry. Spec: 08 §1."""

from __future__ import annotations

from harnpy.builtins.convert import domain_errors
from harnpy.session.effects import Effects
from harnpy.session.registry import SessionStore
from harnpy.vm.builtin import builtin
from harnpy.vm.errors import RuntimeFault
from harnpy.vm.values import display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.vm.machine import Vm
    from harnpy.vm.values import Value

    Dict = dict[str, Any]


def make_store(vm: Vm) -> SessionStore:
    """The session registry of a Vm: its effects are the host's, its stack the running task's."""
    host = vm.host

    def warn(topic: str, message: str) -> None:
        host.write_err(f"warning: {topic}: {message}\n")

    effects = Effects(host.now, host.uuid7, display, warn)
    return SessionStore(effects=effects, stack=lambda: vm.session_stack)


def _store(vm: Vm) -> SessionStore:
    store: SessionStore = vm.sessions
    return store


@builtin("agent_session_open(id?: string, opts?: dict) -> string", family="agent_sessions", strict=True)
def agent_session_open(vm: Vm, id: str | None, opts: Dict | None) -> str:
    """Open a session, or create it, and answer its id; without `id` a new one is minted.

    `opts`: `workspace_anchor`, `workspace_policy`. Throws for a blank id and unknown options.
    Spec: 08 §1.2, §1.8.
    """
    with domain_errors:
        return _store(vm).open(id, opts)


@builtin("agent_session_exists(id: string) -> bool", family="agent_sessions", strict=True)
def agent_session_exists(vm: Vm, id: str) -> bool:
    """Whether a session of that id is open."""
    return _store(vm).exists(id)


@builtin("agent_session_current_id() -> string | nil", family="agent_sessions", strict=True)
def agent_session_current_id(vm: Vm) -> str | None:
    """The id of the session whose loop is running, innermost first; nil outside any loop."""
    return _store(vm).current_id()


@builtin("agent_session_length(id: string) -> int", family="agent_sessions", strict=True)
def agent_session_length(vm: Vm, id: str) -> int:
    """The number of messages in a session. Throws when there is no such session."""
    with domain_errors:
        return _store(vm).length(id)


@builtin("agent_session_snapshot(id: string) -> dict | nil", family="agent_sessions", strict=True)
def agent_session_snapshot(vm: Vm, id: str) -> Dict | None:
    """The transcript and the state of a session as it stands; nil when there is no such session.

    Spec: 08 §1.3.
    """
    return _store(vm).snapshot_value(id)


@builtin("agent_session_ancestry(id: string) -> dict | nil", family="agent_sessions", strict=True)
def agent_session_ancestry(vm: Vm, id: str) -> Dict | None:
    """`{parent_id, child_ids, root_id}` of a session; nil when there is no such session."""
    return _store(vm).ancestry(id)


@builtin("agent_session_reset(id: string) -> nil", family="agent_sessions", strict=True)
def agent_session_reset(vm: Vm, id: str) -> None:
    """Start a session's transcript afresh; its id, subscribers and lineage stay."""
    with domain_errors:
        _store(vm).reset(id)


@builtin("agent_session_fork(src: string, dst?: string) -> string", family="agent_sessions", strict=True)
def agent_session_fork(vm: Vm, src: str, dst: str | None) -> str:
    """Copy a session's transcript under a new id, and answer that. Subscribers stay behind.

    Throws when `src` is unknown or `dst` equals it. An existing `dst` gets the transcript and a new
    parent. Spec: 08 §1.4.
    """
    with domain_errors:
        return _store(vm).fork(src, dst)


@builtin(
    "agent_session_fork_at(src: string, keep_first: int, dst?: string) -> string",
    family="agent_sessions",
    strict=True,
)
def agent_session_fork_at(vm: Vm, src: str, keep_first: int, dst: str | None) -> str:
    """Fork a session, keeping only its first messages on the fork. Spec: 08 §1.4."""
    with domain_errors:
        return _store(vm).fork_at(src, keep_first, dst)


@builtin("agent_session_trim(id: string, keep_last: int) -> int", family="agent_sessions", strict=True)
def agent_session_trim(vm: Vm, id: str, keep_last: int) -> int:
    """Keep a session's newest messages, and answer how many there are now."""
    with domain_errors:
        return _store(vm).trim(id, keep_last)


@builtin("agent_session_inject(id: string, message: any) -> nil", family="agent_sessions", strict=True)
def agent_session_inject(vm: Vm, id: str, message: Value) -> None:
    """Append a message, a dict with a string `role`, to a session. Spec: 08 §1.5.

    A loop that is running on the session takes it in before its next model call.
    """
    with domain_errors:
        _store(vm).adopt(id, message)


@builtin("agent_session_close(id: string, status?: any) -> nil", family="agent_sessions", strict=True)
def agent_session_close(vm: Vm, id: str, status: Value) -> None:
    """Remove a session. `status`, a string or a dict with `reason`, tells its subscribers why.

    Spec: 08 §1.6.
    """
    with domain_errors:
        _store(vm).close(id, status)


@builtin("agent_subscribe(session_id: any, callback: any) -> nil", family="llm")
def agent_subscribe(vm: Vm, session_id: Value, callback: Value) -> None:
    """Call `callback` with each agent event of a session, which is opened if need be.

    What the callback raises is a warning. Spec: 08 §1.7.
    """
    call = "agent_subscribe(session_id, callback)"
    _require_string(call, "session_id", session_id)
    if callback is None:
        raise RuntimeFault(f"{call}: callback closure required")
    if vm.callback(callback, 1) is None:
        raise RuntimeFault(f"{call}: callback must be a closure")
    with domain_errors:
        _store(vm).subscribe(session_id, lambda event: vm.call(callback, event))


@builtin("agent_inject_feedback(session_id: any, kind: any, content: any) -> nil", family="llm")
def agent_inject_feedback(vm: Vm, session_id: Value, kind: Value, content: Value) -> None:
    """Queue a note for the loop that runs on a session now or next. Spec: 07 §7.2."""
    call = "agent_inject_feedback(session_id, kind, content)"
    for name, value in (("session_id", session_id), ("kind", kind), ("content", content)):
        _require_string(call, name, value)
    _store(vm).inject_feedback(session_id, kind, content)


def _require_string(call: str, name: str, value: Value) -> None:
    if type(value) is not str:
        raise RuntimeFault(f"{call}: {name} must be a string")
