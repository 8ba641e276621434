"""What is written to a session: events, messages, context. Spec: 10 §A2.2, §C3, §C9."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.builtins.bridge.durable.errors import invalid
from harnpy.builtins.bridge.durable.values import drafts_of
from harnpy.builtins.bridge.durable.verbs import builtin
from harnpy.session.log import ANY

if TYPE_CHECKING:
    from harnpy.builtins.bridge.durable.verbs import Call
    from harnpy.vm.values.objects import Value

    Dict = dict[str, Any]


@builtin(
    "__session_append(id: string, event: dict | list, opts?: dict) -> int",
    "expected_version?: int, turn_id?: string, metadata?: dict",
)
def append(call: Call, id: str, event: Value, opts: Dict) -> int:
    """Append events, all or none, and return the number of the last one."""
    drafts = drafts_of(call.name, id, event, opts)
    if not drafts:
        raise invalid(f"{call.name}: there is no event to append", id)
    expected = opts.get("expected_version")
    return call.session(id).append(*drafts, expected_version=ANY if expected is None else expected)[-1].seq


@builtin("__session_add_history(id: string, messages: dict | list, opts?: dict) -> int")
def add_history(call: Call, id: str, messages: Value, opts: Dict) -> int:
    """Append messages that are no turn's, and return the number of the last event."""
    session = call.session(id)
    session.add_history(messages)
    return session.seq


@builtin("__session_set_history(id: string, messages: dict | list, opts?: dict) -> int")
def set_history(call: Call, id: str, messages: Value, opts: Dict) -> int:
    """Restart the history with these messages, and return the number of the last event."""
    session = call.session(id)
    session.set_history(messages)
    return session.seq


@builtin("__session_reset(id: string, opts?: dict) -> nil")
def reset(call: Call, id: str, opts: Dict) -> None:
    """Empty window and history; registers stay."""
    call.session(id).reset()


@builtin("__session_clean_window(id: string, opts?: dict) -> nil")
def clean_window(call: Call, id: str, opts: Dict) -> None:
    """Empty the window; the history stays."""
    call.session(id).clean_window()


@builtin(
    "__session_context(id: string, text: string, opts?: dict) -> string", "kind?: string, placement?: string"
)
def context(call: Call, id: str, text: str, opts: Dict) -> str:
    """Append what the model is to know and nobody has said. Return the event's id."""
    return call.session(id).append_context(text, opts.get("kind", "generic"), opts.get("placement")).id
