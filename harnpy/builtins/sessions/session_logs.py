"""The log and the window of a session: reading, writing, pins, rewinds, resizing, run logs.

Spec: 10 §A1.16, §A2.2, §C3, §C5, §C8-C10.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.builtins.bridge.callables import with_callables
from harnpy.builtins.sessions.session_store import Offloaded
from harnpy.builtins.sessions.session_values import drafts_of, errors_told, event_value, invalid
from harnpy.builtins.sessions.verbs import Call, builtin, callback
from harnpy.session.history import ANY
from harnpy.session.resize_policy import CLEAR
from harnpy.session.trajectory import distill, export_run, export_run_tree
from harnpy.vm.values import Builtin, display

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

    Dict = dict[str, Any]
    Dicts = list[Dict]

# What a session's log and its views show. Spec: 10 §C5, §C9.


@builtin("__session_messages(id: string, opts?: dict) -> list")
def messages(call: Call, id: str, opts: Dict) -> Dicts:
    """Return the messages of the window as they were written. Spec: 10 §C5, §C9."""
    return call.session(id).messages()


@builtin("__session_window(id: string, opts?: dict) -> list")
def window(call: Call, id: str, opts: Dict) -> Dicts:
    """Return the window as a model sees it. Spec: 10 §C5, §C9."""
    return call.session(id).window()


@builtin("__session_history(id: string, opts?: dict) -> list", "include_reset?: bool")
def history(call: Call, id: str, opts: Dict) -> Dicts:
    """Return the messages since the last reset, including those no longer in the window.

    With `include_reset`, those before it as well. Spec: 10 §C5, §C9.
    """
    return call.session(id).history(include_reset=bool(opts.get("include_reset")))


@builtin("__session_entries(id: string, opts?: dict) -> list")
def entries(call: Call, id: str, opts: Dict) -> Dicts:
    """Return the messages of `session_window` with their events. Spec: 10 §C5, §C9."""
    return [entry.shown() for entry in call.session(id).entries()]


@builtin(
    "__session_events(id: string, opts?: dict) -> list",
    "after?: int, until?: int | string, types?: list, reverse?: bool, limit?: int, branch?: bool",
)
def events(call: Call, id: str, opts: Dict) -> Dicts:
    """Return the events of the log, oldest first.

    Options: `after`, `until` (a number or an id), `types`, `reverse`, `limit`, `branch` (without what was
    taken back). Spec: 10 §C5, §C9.
    """
    for key in ("after", "until", "limit"):
        if isinstance(opts.get(key), int) and opts[key] < 0:
            raise invalid(f"{call.name}: option `{key}` must be at least 0", id)
    return [event_value(event) for event in call.session(id).events(**opts)]


@builtin("__session_branch(id: string, event_id: string, opts?: dict) -> list")
def branch(call: Call, id: str, event_id: str, opts: Dict) -> Dicts:
    """Return the events that lead to an event, and that event itself. Spec: 10 §A1.9, §C9."""
    return [event_value(event) for event in call.session(id).branch(event_id)]


# What is written to a session: events, messages, context. Spec: 10 §A2.2, §C3, §C9.


@builtin(
    "__session_append(id: string, event: dict | list, opts?: dict) -> int",
    "expected_version?: int, turn_id?: string, metadata?: dict",
)
def append(call: Call, id: str, event: Value, opts: Dict) -> int:
    """Append an event `{type, data?, metadata?, cost?, turn_id?}`, or a list of them atomically.

    Returns the number of the last one. Options: `expected_version`, `turn_id`, `metadata`. Spec: 10 §C3, §C9.
    """
    drafts = drafts_of(call.name, id, event, opts)
    if not drafts:
        raise invalid(f"{call.name}: there is no event to append", id)
    expected = opts.get("expected_version")
    return call.session(id).append(*drafts, expected_version=ANY if expected is None else expected)[-1].seq


@builtin("__session_add_history(id: string, messages: dict | list, opts?: dict) -> int")
def add_history(call: Call, id: str, messages: Value, opts: Dict) -> int:
    """Append messages that belong to no turn; return the number of the last event.

    Spec: 10 §A2.2, §C9.
    """
    session = call.session(id)
    session.add_history(messages)
    return session.seq


@builtin("__session_set_history(id: string, messages: dict | list, opts?: dict) -> int")
def set_history(call: Call, id: str, messages: Value, opts: Dict) -> int:
    """Restart the history with these messages, and return the number of the last event.

    Memo and registers stay. Spec: 10 §A2.2, §C9.
    """
    session = call.session(id)
    session.set_history(messages)
    return session.seq


@builtin("__session_reset(id: string, opts?: dict) -> nil")
def reset(call: Call, id: str, opts: Dict) -> None:
    """Empty window and history; keep the registers. Spec: 10 §A2.2, §C9."""
    call.session(id).reset()


@builtin("__session_clean_window(id: string, opts?: dict) -> nil")
def clean_window(call: Call, id: str, opts: Dict) -> None:
    """Empty the window; the history is kept. Spec: 10 §A2.2, §C9."""
    call.session(id).clean_window()


@builtin(
    "__session_context(id: string, text: string, opts?: dict) -> string", "kind?: string, placement?: string"
)
def context(call: Call, id: str, text: str, opts: Dict) -> str:
    """Append text that the model should know but nobody has said; return the event's id.

    Options: `kind`, `placement` (`prefix`, `history`). Spec: 10 §A2.2, §C9.
    """
    return call.session(id).append_context(text, opts.get("kind", "generic"), opts.get("placement")).id


# Which messages count: pins, rewinds. Spec: 10 §C5, §C9.


@builtin("__session_pin(id: string, event_id: string, opts?: dict) -> bool")
def pin(call: Call, id: str, event_id: str, opts: Dict) -> bool:
    """Keep a message in the window whatever is cut; false if it is already pinned. Spec: 10 §C5, §C9."""
    return call.session(id).pin(event_id)


@builtin("__session_unpin(id: string, event_id: string, opts?: dict) -> bool")
def unpin(call: Call, id: str, event_id: str, opts: Dict) -> bool:
    """Remove a pin; false if there is none. Spec: 10 §C5, §C9."""
    return call.session(id).unpin(event_id)


@builtin("__session_rewind(id: string, turns?: int, opts?: dict) -> list")
def rewind(call: Call, id: str, turns: int | None, opts: Dict) -> list[Dict]:
    """Take back the last turns (default 1); return the messages that left the window. Spec: 10 §C5, §C9."""
    if turns is not None and turns < 1:
        raise invalid(f"{call.name}: `turns` must be at least 1", id)
    return call.session(id).rewind(1 if turns is None else turns)


@builtin("__session_redo(id: string, opts?: dict) -> list")
def redo(call: Call, id: str, opts: Dict) -> list[Dict]:
    """Undo the last rewind; return the messages that came back. Spec: 10 §C5, §C9."""
    return call.session(id).redo()


@builtin("__session_move_leaf(id: string, event_id: string, opts?: dict) -> list", "summary?: string")
def move_leaf(call: Call, id: str, event_id: str, opts: Dict) -> list[Dict]:
    """Continue after an earlier event ("": the beginning); later ones leave the window.

    Returns the events that record the move. Options: `summary` of what leaves the window. Spec: 10 §A1.9,
    §C9.
    """
    return [event_value(event) for event in call.session(id).move_leaf(event_id, opts.get("summary"))]


# When and how windows become smaller, and snapshots. Spec: 10 §C5, §C8, §C9.


_FUNCTIONS = ("summarize", "prompt", "custom_compactor", "mask_callback", "compress_callback")
#: Strategies that put long outputs of tools beside the store.
_WITH_ARTIFACTS = ("offload", "summarize")
#: What the tool of a model does.
_USUAL = "llm"
_PARTS = ("full", "window", "memo")


def _strategy(call: Call, name: str, fn: Value) -> Callable[..., tuple[Any, Any, Any]]:
    """Return a strategy of the program: it returns ``[full, window, memo]``, or a dict with some of them."""
    function = callback(call, fn)

    def strategy(full: Any, window: Any, memo: Any, settings: Any) -> tuple[Any, Any, Any]:
        found = function(full, window, memo, dict(settings))
        if type(found) is dict and all(key in _PARTS for key in found):
            cleared = CLEAR if "memo" in found and found["memo"] is None else found.get("memo")
            return found.get("full"), found.get("window"), cleared
        if type(found) is list and len(found) <= len(_PARTS):
            full, window, memo = [*found, None, None, None][: len(_PARTS)]
            return full, window, memo
        raise invalid(f'strategy "{name}" must return [full, window, memo], got {display(found)}')

    return strategy


@builtin("__session_on_analyze(id: string | nil, fn?: closure, opts?: dict) -> nil")
def on_analyze(call: Call, id: str | None, fn: Value, opts: Dict) -> None:
    """Let `fn(full, window, memo, settings)` choose the resize strategy to run.

    nil restores the default. Without an id: of all sessions of this program. Spec: 10 §C8, §C9.
    """
    function = None if fn is None else callback(call, fn)

    def analysis(full: Any, window: Any, memo: Any, settings: Any) -> Any:
        assert function is not None
        return function(full, window, memo, dict(settings))

    for policy in call.policies(id):
        policy.on_analyze(None if function is None else analysis)


@builtin("__session_strategy(id: string | nil, name: string, fn: closure, opts?: dict) -> nil")
def strategy(call: Call, id: str | None, name: str, fn: Value, opts: Dict) -> None:
    """Register a resize strategy, `fn(full, window, memo, settings)`.

    It returns `[full, window, memo]`, with nil for unchanged parts, or a dict of the changed ones. Spec: 10
    §C8, §C9.
    """
    made = _strategy(call, name, fn)
    for policy in call.policies(id):
        policy.strategy(name, made)


@builtin(
    "__session_resize(id: string, strategy?: string, opts?: dict) -> dict | nil",
    "max_length?: int, max_tokens?: int, threshold_pct?: float, min_keep_turns?: int, keep_first?: int, "
    "keep_last?: int, token_threshold?: int, hard_limit_tokens?: int, hard_limit_strategy?: string, "
    "compact_strategy?: string, tool_output_max_chars?: int, summarize?: closure, prompt?: closure, "
    "custom_compactor?: closure, mask_callback?: closure, compress_callback?: closure, background?: bool",
)
def resize(call: Call, id: str, strategy: str | None, opts: Dict) -> Dict | None:
    """Run a resize strategy, or the one that is due; nil if none is.

    Options: those of the policy; `background` runs it beside the program and returns nil. Spec: 10 §C8, §C9.
    """
    if opts.pop("background", False):
        call.session(id)  # there is one
        call.durable.background.begin(id, lambda: _resized(call, id, strategy, opts))
        return None
    return _resized(call, id, strategy, opts)


def _resized(call: Call, id: str, strategy: str | None, opts: Dict) -> Dict | None:
    given = with_callables(call.vm, opts, *_FUNCTIONS)
    if strategy in _WITH_ARTIFACTS:
        given["artifacts"] = Offloaded(call)
    report = call.session(id).resize(strategy, **given)
    return None if report is None else report.data()


@builtin(
    "__session_snapshot(id: string, opts?: dict) -> bool",
    "if_needed?: bool, max_events?: int, max_age?: float",
)
def snapshot(call: Call, id: str, opts: Dict) -> bool:
    """Store what the view shows, so that loading is fast; false if no snapshot was taken.

    Options: `if_needed`, `max_events` (50), `max_age` (seconds). Spec: 10 §C8, §C9.
    """
    given = {"max_events": 50, **opts}
    return call.session(id).snapshot(**given)


@builtin("__session_compact_tool(id: string, opts?: dict) -> dict")
def compact_tool(call: Call, id: str, opts: Dict) -> Dict:
    """Return a tool for the `tools` of a loop that lets a model shrink a session's window.

    Spec: 10 §C8, §C9.
    """
    call.session(id)  # there is one

    def compact(vm: Vm, arguments: Value = None) -> str:
        given = arguments if type(arguments) is dict else {}
        chosen = given.get("strategy") or _USUAL
        with errors_told("compact", "strategy", id):
            report = _resized(Call(vm, "compact", call.store), id, chosen, {})
        if report is None or not report["shrunk"]:
            return "The conversation is as short as it gets."
        return f"The conversation has {report['after']['messages']} messages now."

    return {
        "name": "compact",
        "description": "Summarize the earlier part of this conversation, to make room.",
        "parameters": {
            "strategy": {"type": "string", "description": "llm, truncate or trim", "required": False}
        },
        "handler": Builtin("compact", compact, 1),
    }


# What runs were: run logs and episodes. Spec: 10 §A1.16, §C9, §C10.


@builtin("__session_run_log(id: string, opts?: dict) -> dict", "tree?: bool")
def run_log(call: Call, id: str, opts: Dict) -> Dict:
    """Return the run log of a session: what it did, answer by answer; with `tree` its children, too.

    Spec: 10 §A1.16, §C9, §C10.
    """
    session = call.session(id)
    run = export_run_tree(session, call.runtime.get) if opts.get("tree") else export_run(session)
    return run.data()


@builtin("__session_episode(id: string, opts?: dict) -> dict", "save?: bool")
def episode(call: Call, id: str, opts: Dict) -> Dict:
    """Return the episode of a session's run: its conclusion and its tool calls.

    With `save` it is stored. Spec: 10 §A1.16, §C9, §C10.
    """
    found = distill(export_run(call.session(id)), ids=call.vm.world.ids)
    if opts.get("save"):
        call.runtime.save_episode(found)
    return found.data()


@builtin("__session_episodes(id: string, opts?: dict) -> list")
def episodes(call: Call, id: str, opts: Dict) -> list[Dict]:
    """Return the stored episodes of a session, oldest first. Spec: 10 §A1.16, §C9, §C10."""
    call.session(id)  # there is one
    return [episode.data() for episode in call.runtime.episodes(id)]


@builtin("__session_search_episodes(query: string, limit?: int, opts?: dict) -> list")
def search_episodes(call: Call, query: str, limit: int | None, opts: Dict) -> list[Dict]:
    """Return the episodes that contain every term of a query or used a tool of that name, newest run first.

    50 at most. Spec: 10 §A1.16, §C9, §C10.
    """
    if limit is not None and limit < 1:
        raise invalid(f"{call.name}: `limit` must be at least 1")
    found = call.runtime.search_episodes(query, 50 if limit is None else limit)
    return [episode.data() for episode in found]
