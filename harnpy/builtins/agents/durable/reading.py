"""What a session's log and its views show. Spec: 10 §C5, §C9."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.builtins.bridge.durable.errors import invalid
from harnpy.builtins.bridge.durable.values import event_value
from harnpy.builtins.bridge.durable.verbs import builtin

if TYPE_CHECKING:
    from harnpy.builtins.bridge.durable.verbs import Call

    Dict = dict[str, Any]
    Dicts = list[Dict]


@builtin("__session_messages(id: string, opts?: dict) -> list")
def messages(call: Call, id: str, opts: Dict) -> Dicts:
    """The messages of the window, as they were written."""
    return call.session(id).messages()


@builtin("__session_window(id: string, opts?: dict) -> list")
def window(call: Call, id: str, opts: Dict) -> Dicts:
    """The window as a model gets it."""
    return call.session(id).window()


@builtin("__session_history(id: string, opts?: dict) -> list", "include_reset?: bool")
def history(call: Call, id: str, opts: Dict) -> Dicts:
    """The messages behind the window, too."""
    return call.session(id).history(include_reset=bool(opts.get("include_reset")))


@builtin("__session_entries(id: string, opts?: dict) -> list")
def entries(call: Call, id: str, opts: Dict) -> Dicts:
    """The messages of the window with their events."""
    return [entry.shown() for entry in call.session(id).entries()]


@builtin(
    "__session_events(id: string, opts?: dict) -> list",
    "after?: int, until?: int | string, types?: list, reverse?: bool, limit?: int, branch?: bool",
)
def events(call: Call, id: str, opts: Dict) -> Dicts:
    """The events of a session's log, oldest first."""
    for key in ("after", "until", "limit"):
        if isinstance(opts.get(key), int) and opts[key] < 0:
            raise invalid(f"{call.name}: option `{key}` must be at least 0", id)
    return [event_value(event) for event in call.session(id).events(**opts)]


@builtin("__session_branch(id: string, event_id: string, opts?: dict) -> list")
def branch(call: Call, id: str, event_id: str, opts: Dict) -> Dicts:
    """The events that lead to one, and itself."""
    return [event_value(event) for event in call.session(id).branch(event_id)]
