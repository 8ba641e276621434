"""Which messages count: pins, rewinds. Spec: 10 §C5, §C9."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.builtins.bridge.durable.errors import invalid
from harnpy.builtins.bridge.durable.values import event_value
from harnpy.builtins.bridge.durable.verbs import builtin

if TYPE_CHECKING:
    from harnpy.builtins.bridge.durable.verbs import Call

    Dict = dict[str, Any]


@builtin("__session_pin(id: string, event_id: string, opts?: dict) -> bool")
def pin(call: Call, id: str, event_id: str, opts: Dict) -> bool:
    """Keep a message in the window; false when it is pinned already."""
    return call.session(id).pin(event_id)


@builtin("__session_unpin(id: string, event_id: string, opts?: dict) -> bool")
def unpin(call: Call, id: str, event_id: str, opts: Dict) -> bool:
    """Take a pin out; false when there is none."""
    return call.session(id).unpin(event_id)


@builtin("__session_rewind(id: string, turns?: int, opts?: dict) -> list")
def rewind(call: Call, id: str, turns: int | None, opts: Dict) -> list[Dict]:
    """Take back the last turns, and return the messages that left the window."""
    if turns is not None and turns < 1:
        raise invalid(f"{call.name}: `turns` must be at least 1", id)
    return call.session(id).rewind(1 if turns is None else turns)


@builtin("__session_redo(id: string, opts?: dict) -> list")
def redo(call: Call, id: str, opts: Dict) -> list[Dict]:
    """Undo the last rewind, and return the messages that came back."""
    return call.session(id).redo()


@builtin("__session_move_leaf(id: string, event_id: string, opts?: dict) -> list", "summary?: string")
def move_leaf(call: Call, id: str, event_id: str, opts: Dict) -> list[Dict]:
    """Go on behind an earlier event. Return the events that say so."""
    return [event_value(event) for event in call.session(id).move_leaf(event_id, opts.get("summary"))]
