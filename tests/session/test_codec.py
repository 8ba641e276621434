"""How a store keeps events, and how they are shown (10 §C4)."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from harnpy.session import Event, EventDraft, SessionRegistry
from harnpy.session.codec import SessionCodec, decode_event, encode_event
from harnpy.session.events import Origin
from harnpy.storage import Row
from harnpy.world import World

LONG = "all work and no play makes Jack a dull boy, says the hotel's typewriter"

TEXTS = st.sampled_from(["", "a", "$same", "$$same", "a/b~c", LONG, LONG + "!", "\x00ä\U0001f600"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(-1e300, 1e300) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)


def drafts_of(*types: str) -> st.SearchStrategy[EventDraft]:
    return st.builds(
        EventDraft,
        st.sampled_from(types),
        JSON,
        metadata=st.none() | st.dictionaries(TEXTS, JSON, max_size=2),
        cost=st.sampled_from([0.0, 0.25]),
        turn=st.none() | st.just("a turn of the caller's"),
        id=st.none() | st.just("foreign"),
    )


CUSTOM = drafts_of("custom")
DRAFTS = drafts_of("message_added", "custom", "turn_started", "register_set")


def appended(*batches: list[EventDraft]) -> list[Event]:
    registry = SessionRegistry()
    session = registry.session(registry.open("s"))
    assert session
    for batch in batches:
        if batch:
            session.append(*batch)
    return session.events()


def rows_of(events: list[Event]) -> list[Row]:
    """The rows of a log, encoded append by append."""
    rows, batch = [], []
    for event in events:
        batch.append(event)
        if not event.more:
            rows += SessionCodec(event.owner).encode(batch)
            batch = []
    return rows


def decoded(rows: list[Row]) -> list[Event]:
    return SessionCodec(Origin("s", World())).decode(rows)


def said(text: str, **more: Any) -> EventDraft:
    return EventDraft("message_added", {"role": "user", "content": text, **more})


@given(st.lists(st.lists(CUSTOM, max_size=4), max_size=4))
@example([[EventDraft("custom", {"$same": LONG}), EventDraft("custom", {"x": {"$same": LONG}})]])
def test_what_is_read_is_what_was_written(batches: list[list[EventDraft]]) -> None:
    events = appended(*batches)
    again = decoded(rows_of(events))
    shown = [[encode_event(event) for event in log] for log in (events, again)]
    for one, other in zip(*shown, strict=True):
        for key in set(one) | set(other) - {"parent_id"}:
            if key != "parent_id":  # found through the log, which the read ones have none of
                assert json.dumps(one.get(key)) == json.dumps(other.get(key))


@given(st.lists(DRAFTS, min_size=1, max_size=5))
def test_the_data_of_an_append_survives_whatever_it_holds(drafts: list[EventDraft]) -> None:
    owner = Origin("s", World())
    events = Event.drafted(drafts, owner, 1, 1.0)
    again = decoded(SessionCodec(owner).encode(events))
    assert [json.dumps(event.data) for event in again] == [json.dumps(event.data) for event in events]


def test_a_row_has_nothing_that_can_be_computed() -> None:
    *_, event = appended([said("a")])
    (row,) = rows_of([event])
    assert row == Row(2, "message_added", event.time, '{"role":"user","content":"a"}')


def test_a_long_text_that_an_append_holds_twice_is_stored_once() -> None:
    events = appended([said("x", reply=LONG), said(LONG), said("y"), said("z", b=[{"a/b": LONG}])])
    rows = rows_of(events)
    assert [row.data.count(LONG) for row in rows[1:]] == [1, 0, 0, 0]
    assert '{"$same":[3,"/reply"]}' in rows[4].data
    assert [event.data for event in decoded(rows)] == [event.data for event in events]


def test_texts_of_different_appends_are_apart() -> None:
    rows = rows_of(appended([said(LONG)], [said(LONG)]))
    assert [row.data.count(LONG) for row in rows[1:]] == [1, 1]


def test_texts_of_different_appends_are_apart_when_they_are_written_at_once() -> None:
    events = appended([said(LONG)], [said(LONG), said(LONG)])
    rows = SessionCodec(events[0].owner).encode(events)
    assert [row.data.count(LONG) for row in rows[1:]] == [1, 1, 0]
    assert [event.data for event in decoded(rows)] == [event.data for event in events]


def test_an_event_of_a_turn_names_it_by_number_and_reads_back_its_id() -> None:
    registry = SessionRegistry()
    session = registry.session(registry.open("s"))
    assert session
    (turn,) = session.append(EventDraft("turn_started", {"agent_id": "a"}))
    session.append(EventDraft("custom", {}, turn=turn))
    rows = rows_of(session.events())
    assert [row.turn for row in rows] == [None, None, 2]
    owner = Origin("s", World())
    owner.find = session.origin.find
    assert SessionCodec(owner).decode(rows)[2].turn_id == turn.id


def test_the_key_of_a_tools_call_is_the_rows_key() -> None:
    events = appended([EventDraft("tool_started", {"tool": "t", "args": "{}", "idempotency_key": "k"})])
    assert [row.key for row in rows_of(events)] == [None, "k"]


def test_what_a_search_looks_through() -> None:
    drafts = [
        said("hello"),
        EventDraft("message_added", {"role": "user", "content": [{"type": "text", "text": "one"}, "two"]}),
        EventDraft("context_added", {"content": "ctx"}),
        EventDraft("tool_started", {"tool": "t", "args": '{"path":"x"}'}),
        EventDraft("tool_completed", {"tool": "t", "output": "out"}),
        EventDraft("register_set", {"key": "memo", "value": {"k": "v"}, "version": 1}),
        EventDraft("register_set", {"key": "task", "value": "no", "version": 1}),
        EventDraft("custom", {"content": "no"}),
        EventDraft("message_added", {"role": "assistant"}),
    ]
    rows = rows_of(appended(drafts))
    texts = SessionCodec(Origin("s", World())).texts(rows)
    assert texts == [
        None, "hello", "one\ntwo", "ctx", '{"path":"x"}', "out", '{"k":"v"}', None, None, None
    ]  # fmt: skip


def test_the_shown_form_has_its_keys_in_order_and_leaves_out_defaults() -> None:
    _, event = appended([EventDraft("custom", {"x": 1}, metadata={"client": "cli"}, cost=0.5)])
    shown = encode_event(event)
    assert list(shown) == [
        "v", "id", "session_id", "seq", "parent_id", "type", "timestamp", "data", "metadata", "cost"
    ]  # fmt: skip
    assert (shown["v"], shown["seq"], shown["data"]) == (1, 2, {"x": 1})
    assert encode_event(decode_event(shown, Origin("s", World()))) == shown


def test_an_event_knows_the_one_before_it() -> None:
    first, second, third = appended([said("a")], [said("b")])
    assert (first.parent_id, second.parent_id, third.parent_id) == (None, first.id, second.id)


def test_values_may_be_as_deep_as_may_be_appended() -> None:
    deep: Any = LONG
    for _ in range(256):
        deep = {"a": [deep]}
    events = appended([EventDraft("custom", deep), EventDraft("custom", deep)])
    assert [event.data for event in decoded(rows_of(events))][1:] == [deep, deep]
