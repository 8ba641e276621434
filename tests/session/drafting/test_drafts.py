"""Drafts of events, and what reading them gives back (10 §A1.1, §A1.2, §C3)."""

from __future__ import annotations

import inspect
import pickle
from contextlib import nullcontext
from typing import Any

import pytest

from harnpy.session import (
    EventDecodeError,
    EventDraft,
    EventRejected,
    InvalidArgument,
    InvalidTransition,
    Session,
    drafts,
    messages,
    payload_types,
)
from harnpy.session.drafting import metadata
from harnpy.session.events import READ_TYPES
from harnpy.session.payload_types import PayloadType, by_type

#: What the session writes itself; all others have a draft.
OWN = {
    "session_created", "history_replaced", "register_set", "status_changed", "action_executed",
    "store_repaired",
}  # fmt: skip
SPECIAL: dict[str, Any] = {
    "artifact_recorded": {"artifact": {"id": "a"}},
    "compaction_triggered": {"strategy": "mine"},
    "context_added": {"content": "c", "kind": "generic"},
    "projection_snapshotted": {"strategy": "mine"},
    "tools_changed": {"names": ["read"]},
}


def example(kind: type[PayloadType]) -> PayloadType:
    """Return a payload with a text where one is needed."""
    if kind.TYPE in SPECIAL:
        return kind(**SPECIAL[kind.TYPE])
    needed = [
        name for name, field in inspect.signature(kind).parameters.items() if field.default is field.empty
    ]
    return kind(**dict.fromkeys(needed, "x"))


def test_each_type_has_a_draft_and_reads_back() -> None:
    session = Session("s")
    for type, kind in by_type().items():
        if type in OWN or type in ("message_added", "leaf_moved"):
            continue
        name = {"context_added": "context"}.get(type, type)
        payload = example(kind)
        fields = {
            field: getattr(payload, field) for field in SPECIAL.get(type, inspect.signature(kind).parameters)
        }
        (event,) = session.append(getattr(drafts, name)(**fields))
        assert event.type == type
        if type != "compaction_triggered":
            assert event.payload(kind) == payload
    assert {*by_type()} == {*READ_TYPES, "message_added"}


def test_a_payload_is_of_its_type_alone() -> None:
    session = Session("s")
    said, free = session.append(drafts.user("hi"), EventDraft("message_rated", {"stars": "many"}))
    assert said.payload(payload_types.TurnStarted) is None
    message = said.payload(payload_types.Message)
    assert message is not None
    assert (message.role, message.content) == ("user", "hi")

    class Rating(payload_types.Struct):
        TYPE = "message_rated"
        stars: int

    with pytest.raises(EventDecodeError) as caught:
        free.payload(Rating)
    assert str(caught.value) == (
        f"decode message_rated event {free.id}: `data.stars` must be an int, not a string"
    )
    assert (caught.value.code, str(pickle.loads(pickle.dumps(caught.value)))) == ("decode", str(caught.value))
    with pytest.raises(InvalidArgument, match="names its event type in `TYPE`: dict has none"):
        free.payload(dict)


def test_messages_by_role() -> None:
    assert messages.user("a") == {"role": "user", "content": "a"}
    assert messages.system("b") == {"role": "system", "content": "b"}
    calls = [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    session = Session("s")
    session.append(
        drafts.user("go"),
        drafts.message(messages.assistant(tool_calls=calls, reasoning="hm")),
        drafts.message(messages.tool("f", "c1", "done")),
    )
    assert session.window() == session.messages()
    assert session.messages()[1:] == [
        {"role": "assistant", "content": "", "tool_calls": calls, "reasoning": "hm"},
        {"role": "tool", "name": "f", "tool_call_id": "c1", "content": "done"},
    ]


@pytest.mark.parametrize(
    ("draft", "problem"),
    [
        (EventDraft("message_added", {"content": "x"}), "session append: message has invalid role"),
        (EventDraft("message_added", "x"), "session append: message has invalid role"),
        (EventDraft("context_added", {}), "session append: context_added: `data.content` is missing"),
        (EventDraft("turn_completed"), "session append: turn_completed: `data` must be a dict, not nil"),
        (
            EventDraft("tool_started", {"tool": 1}),
            "session append: tool_started: `data.tool` must be a string, not an int",
        ),
        (
            EventDraft("session_created", {}),
            "session append: session_created is the session's own: ",
        ),
        (
            EventDraft("history_replaced", {}),
            "session append: history_replaced is the session's own: ",
        ),
        (drafts.branch_summary(" "), "session branch summary: summary is required"),
        (drafts.leaf_moved("no"), 'session tree: target event "no" not found'),
        (
            drafts.compaction_triggered("x", cutoff_event_id="no", entries=[]),
            'effective history: compaction cutoff "no" not found',
        ),
        (EventDraft("x", seq=-1), "session append: event sequence cannot be negative"),
        (EventDraft("x", seq=1), "session append: event sequence is not monotonic"),
        (EventDraft("x", seq=4), "session append: event sequence 4 leaves a gap: the next one is 3"),
        (EventDraft("x", timestamp="today"), "session append: no RFC 3339 time stamp: 'today'"),
        (EventDraft("x", parent_id="no"), 'session tree: parent event "no" not found'),
    ],
)
def test_what_no_view_could_read_is_refused(draft: EventDraft, problem: str) -> None:
    session = Session("s")
    session.append(drafts.user("a"))
    with pytest.raises(EventRejected) as caught:
        session.append(*([] if draft.place is not None else [drafts.user("b")]), draft)
    assert str(caught.value).startswith(problem)
    assert session.version == 2


def test_a_status_that_can_not_follow_is_refused() -> None:
    session = Session("s")
    session.set_status("deleted")
    with pytest.raises(InvalidTransition):
        session.append(EventDraft("status_changed", {"from": "deleted", "to": "active"}))


def test_an_import_brings_its_own_time_and_number() -> None:
    session = Session("s")
    later, last = session.append(
        EventDraft("x", seq=2, timestamp="2999-01-01T00:00:00.5Z", id="mine"),
        EventDraft("x", timestamp="1999-01-01T00:00:00+02:00"),
    )
    assert (later.id, later.timestamp, last.timestamp) == ("mine", *["2999-01-01T00:00:00.500000Z"] * 2)
    (after,) = session.append(EventDraft("x"))
    assert after.timestamp == last.timestamp


@pytest.mark.parametrize("ambient", [False, True])
def test_a_turn_that_begins_in_the_same_append_is_named_by_its_draft(ambient: bool) -> None:
    session = Session("s")
    started = drafts.turn_started("helper")
    said = drafts.user("go")
    said.turn = started
    with metadata(by="test") if ambient else nullcontext():
        begun, prompt = session.append(started, said)
    assert (started.event, said.event) == (begun, prompt)
    assert prompt.turn is begun
    assert [event.turn_id for event in session.read(after=1)] == [None, begun.id]
    assert prompt.metadata == ({"by": "test"} if ambient else {})
