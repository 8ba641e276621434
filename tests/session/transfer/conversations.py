"""Random sessions, with something of everything that a session can hold."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from typing import Any

from hypothesis import strategies as st

from harnpy.session import events as kinds
from harnpy.session.compaction import Compaction
from harnpy.session.errors import RewindError
from harnpy.session.events import EventDraft
from harnpy.session.log import Session
from harnpy.session.stored import StoredSession
from harnpy.storage import Store
from harnpy.storage.memory import MemoryStore
from tests.counts import COUNT
from tests.worlds import world_with

#: How many of them a test takes.
EXAMPLES = COUNT.examples(12)

Json = dict[str, Any]

TEXTS = st.sampled_from(
    ["", "hello", "two\nlines", "ä \u2028 \x85 \ufeff", "- a: 'b' # c", "2026-01-01", "yes", "x" * 80]
)
NUMBERS = st.integers(0, 4)
VALUES = st.sampled_from([None, 0, 1.5, "text", [1, {"a": None}], {"b": ["c"]}])

MESSAGES: list[Callable[[str], Json]] = [
    lambda text: {"role": "user", "content": text},
    lambda text: {"role": "assistant", "content": text or "said"},
    lambda text: {"role": "system", "content": text},
    lambda text: {"role": "tool_result", "content": text, "tool_use_id": "gone"},
    lambda text: {"role": "item", "payload": text},
    lambda text: {"role": "user", "content": [{"type": "text", "text": text}, {"type": "image", "url": "u"}]},
    lambda text: {"role": "assistant", "content": [
        {"type": "thinking", "thinking": text, "signature": "s"},
        {"type": "tool_use", "id": "b1", "name": "f", "input": {"a": text}},
        {"type": "tool_use", "id": "b2", "name": "g", "input": {}}]},
    lambda text: {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "b1", "content": text, "is_error": True},
        {"type": "tool_result", "tool_use_id": "b2", "content": [{"type": "text", "text": text}]},
        {"type": "text", "text": text}]},
    lambda text: {"role": "assistant", "content": None, "reasoning": text, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": json.dumps({"a": text})}}]},
    lambda text: {"role": "tool", "tool_call_id": "c1", "content": text, "name": "f"},
    lambda text: {"role": "assistant", "content": text, "metadata": {"k": text}, "name": "bob"},
    lambda text: {"role": "user", "content": text, "cache_control": {"type": "ephemeral"}},
]  # fmt: skip

KEYS = ["memo", "scratchpad", "metadata.a", "metadata.b c", "settings.own", "model", "thinking"]
STEP = st.one_of(
    st.tuples(st.just("say"), st.integers(0, len(MESSAGES) - 1), TEXTS),
    st.tuples(st.just("say"), st.integers(0, len(MESSAGES) - 1), TEXTS),
    st.tuples(st.just("turn"), TEXTS),
    st.tuples(st.just("register"), st.sampled_from(KEYS), VALUES),
    st.tuples(st.just("task"), TEXTS),
    st.tuples(st.just("note"), NUMBERS, TEXTS),
    *(st.tuples(st.just(name), NUMBERS) for name in ("trim", "compact", "pin", "set_history")),
    st.tuples(st.just("move"), NUMBERS, st.sampled_from([None, "tried"])),
    *(st.tuples(st.just(name)) for name in ("reset", "rewind", "redo", "snapshot", "suspend", "foreign")),
)
STEPS = st.lists(STEP, max_size=14)


def play(steps: list[tuple[Any, ...]], store: Store | None = None, id: str = "s 1") -> StoredSession:
    """Return a session that these steps were taken with."""
    ticks = count(1_767_605_400)
    world = world_with(now=lambda: next(ticks) + 0.123456)
    definition = {"name": "helper", "system_prompt": "Help.", "tools": ["f"], "budget": {"max_steps": 3}}
    facts = {"agent_name": "helper", "agent_label": "Helper", "definition": definition}
    session = StoredSession.begin(id, store or MemoryStore(), world, facts)
    take(session, steps)
    return session


def take(session: Session, steps: list[tuple[Any, ...]]) -> None:
    """Take more steps."""
    for verb, *arguments in steps:
        _VERBS[verb](session, *arguments)


def _say(session: Session, kind: int, text: str) -> None:
    session.append(EventDraft(kinds.MESSAGE_ADDED, MESSAGES[kind](text)))


def _turn(session: Session, text: str) -> None:
    """A turn with a tool whose result only the log of the tool has."""
    begun = session.record(kinds.TURN_STARTED, {"agent_id": "a"})
    call = {"id": "t1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    drafts = [
        EventDraft(kinds.MESSAGE_ADDED, {"role": "user", "content": text}, turn=begun),
        EventDraft(
            kinds.MESSAGE_ADDED, {"role": "assistant", "content": "", "tool_calls": [call]}, turn=begun
        ),
        EventDraft(kinds.TOOL_STARTED, {"tool": "f", "id": "t1", "args": "{}"}, turn=begun),
    ]
    session.append(*drafts)
    end = {"tool": "f", "id": "t1", "output": text or "done"}
    session.append(
        EventDraft(kinds.TOOL_COMPLETED, end, {"client": "cli"}, 0.25, begun),
        EventDraft(
            kinds.TURN_COMPLETED, {"agent_id": "a", "steps": 1, "turn_stop_reason": "completed"}, turn=begun
        ),
    )


def _compact(session: Session, keep: int) -> None:
    if keep < session.length:
        session.compact(Compaction(0, session.length - keep, "short", "truncate", 0, 0), None)


def _pin(session: Session, number: int) -> None:
    entries = session.view.window.history()
    if number < len(entries):
        session.pin(session.origin.own(entries[number]).id)


def _move(session: Session, verb: str) -> None:
    try:
        getattr(session, verb)()
    except RewindError:
        assert verb in ("rewind", "redo")


def _move_leaf(session: Session, back: int, summary: str | None) -> None:
    targets = session.events(branch=True)[:-1]
    if targets and not session.view.open_turns:
        session.move_leaf(targets[-1 - back % len(targets)].id, summary)


NOTES: list[tuple[str, Json, str]] = [
    (kinds.CONTEXT_ADDED, {"kind": "harness"}, "content"),
    (kinds.CONTEXT_ADDED, {}, "content"),
    (kinds.ARTIFACT_RECORDED, {"artifact": {"id": "a", "kind": "k", "uri": "artifact:a"}}, "child_id"),
    (
        kinds.CHILD_REQUESTED,
        {"child_id": "c", "child_session_id": "cs", "agent_id": "a", "mode": "fresh"},
        "task",
    ),
    (kinds.APPROVAL_REQUESTED, {"id": "p", "session_id": "s", "tool": "f", "kind": "k"}, "args"),
]


def _note(session: Session, number: int, text: str) -> None:
    type, data, key = NOTES[number]
    session.append(EventDraft(type, {**data, key: text}))


_VERBS: dict[str, Callable[..., object]] = {
    "say": _say,
    "turn": _turn,
    "register": lambda session, key, value: session.set(key, value),
    "task": lambda session, text: session.set_task(text),
    "note": _note,
    "trim": lambda session, keep: session.trim(keep),
    "compact": _compact,
    "pin": _pin,
    "set_history": lambda session, number: session.set_history([MESSAGES[0]("new")] * number),
    "reset": lambda session: session.reset(),
    "rewind": lambda session: _move(session, "rewind"),
    "redo": lambda session: _move(session, "redo"),
    "move": _move_leaf,
    "snapshot": lambda session: session.snapshot(),
    "suspend": lambda session: session.set_status("suspended"),
    "foreign": lambda session: session.append(
        EventDraft("weather.seen", {"sun": True}, id=f"w-{session.seq}")
    ),
}
