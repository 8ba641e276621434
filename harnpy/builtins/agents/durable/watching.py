"""Watching what is appended, and waiting for what is outside. Spec: 10 §A1.12, §C9, §C10."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.builtins.bridge.durable.callbacks import callback
from harnpy.builtins.bridge.durable.errors import invalid
from harnpy.builtins.bridge.durable.values import event_value
from harnpy.builtins.bridge.durable.verbs import builtin
from harnpy.session.events import WAIT_RESOLVED, WAIT_STARTED, EventDraft
from harnpy.session.live.watched import BUFFER
from harnpy.session.log import ANY

if TYPE_CHECKING:
    from harnpy.builtins.bridge.durable.verbs import Call
    from harnpy.vm.run.tasks.channels import Channel
    from harnpy.vm.values.objects import Value

    Dict = dict[str, Any]


@builtin("__session_watch(id: string, opts?: dict) -> channel", "after?: int, types?: list, buffer?: int")
def watch(call: Call, id: str, opts: Dict) -> Channel:
    """A channel of a session's events as they come, whoever appends them."""
    types = opts.get("types")
    if types is not None and not all(type(each) is str for each in types):
        raise invalid(f"{call.name}: option `types` must be a list of strings", id)
    session, buffer = call.session(id), opts.get("buffer", BUFFER)
    watched = session.watch(buffer=buffer, after=opts.get("after"), types=types)
    shared = not call.runtime.store.url.startswith("memory:")
    return call.durable.listening.watch(session, watched, shared=shared)


@builtin("__session_observe(id: string, fn: closure, opts?: dict) -> string")
def observe(call: Call, id: str, fn: Value, opts: Dict) -> str:
    """Have a function called with each event that this program appends, before the append returns."""
    observer = callback(call, fn)
    return call.durable.listening.observe(call.session(id), lambda event: observer(event_value(event)))


@builtin("__session_wait(id: string, opts?: dict) -> string", "reason?: string, external_id?: string")
def wait(call: Call, id: str, opts: Dict) -> str:
    """Say that a session waits for something outside. Return the event's id."""
    return call.session(id).append(EventDraft(WAIT_STARTED, opts), expected_version=ANY)[0].id


@builtin("__session_resolve(id: string, opts?: dict) -> bool", "reason?: string, external_id?: string")
def resolve(call: Call, id: str, opts: Dict) -> bool:
    """Say that a session waits no more; false when it didn't."""
    session = call.session(id)
    if not session.is_waiting:
        return False
    session.append(EventDraft(WAIT_RESOLVED, opts), expected_version=ANY)
    return True


@builtin("__session_is_waiting(id: string, opts?: dict) -> bool")
def is_waiting(call: Call, id: str, opts: Dict) -> bool:
    """Whether a session waits for an approval or for something outside."""
    return call.session(id).is_waiting


@builtin("__session_tool_record(id: string, key: string, opts?: dict) -> dict | nil")
def tool_record(call: Call, id: str, key: str, opts: Dict) -> Dict | None:
    """What the log knows last of a call of a tool, by its idempotency key; nil for nothing."""
    found = call.session(id).find_tool(key)
    if found is None:
        return None
    known = found.completed or found.started
    assert known is not None
    status = "started" if found.completed is None else "completed"
    shown = {"key": key, "status": status, "output": found.output, "error": found.error}
    return {**shown, "event": event_value(known)}


@builtin("__session_tool_fence(id: string, key: string, opts?: dict) -> dict")
def tool_fence(call: Call, id: str, key: str, opts: Dict) -> Dict:
    """Whether to make a call of a tool, or what it came to when it was made."""
    found = call.session(id).tool_fence(key)
    if found == "execute":
        return {"action": "execute"}
    return {"action": "reuse", "output": found.output, "error": found.error}
