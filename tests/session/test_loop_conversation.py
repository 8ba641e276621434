"""A loop's hold on its session: what is stored when, and in which order (08 §1.5, §1.11)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy.session import SessionError, SessionRegistry
from harnpy.session.conversation import Conversation, SessionConversation
from harnpy.session.transcript import lifecycle_event
from harnpy.session.view import replay
from harnpy.world import World


def said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def texts(messages: list[dict[str, Any]]) -> list[str]:
    return [message["content"] for message in messages]


@pytest.fixture
def store() -> SessionRegistry:
    store = SessionRegistry()
    store.open("s")
    store.inject("s", said("before"))
    return store


def following(store: SessionRegistry, id: str = "s") -> SessionConversation:
    conversation = SessionConversation(id, store)
    conversation.begin("sys", "text")
    return conversation


def test_a_loop_starts_from_the_sessions_messages(store: SessionRegistry) -> None:
    conversation = following(store)
    assert texts(conversation.messages) == ["before"]
    snapshot = store.snapshot("s") or {}
    assert (snapshot["system_prompt"], snapshot["tool_format"], snapshot["state"]) == (
        "sys",
        "text",
        "active",
    )


def test_what_the_loop_adds_is_in_the_session_once_it_is_stored(store: SessionRegistry) -> None:
    conversation = following(store)
    conversation.add(said("a"))
    assert store.length("s") == 1
    conversation.store()
    assert texts(store.messages("s")) == ["before", "a"]
    version = store.session("s").version  # type: ignore[union-attr]
    conversation.store()
    assert store.session("s").version == version  # type: ignore[union-attr]


def test_lifecycle_events_follow_the_messages(store: SessionRegistry) -> None:
    store.append_event("s", {"kind": "early"})
    conversation = following(store)
    for text in ("a", "b"):
        conversation.add(said(text))
        conversation.note(lifecycle_event("provider_payload"))
        conversation.store()
    conversation.end("completed")
    kinds = [event["kind"] for event in (store.snapshot("s") or {})["events"]]
    assert kinds == ["message", "message", "message", "early", "provider_payload", "provider_payload"]


def test_the_log_tells_the_turns_story(store: SessionRegistry) -> None:
    conversation = following(store)
    conversation.add(said("a"))
    conversation.store()
    conversation.end("budget_exhausted", steps=1)
    session = store.session("s")
    assert session
    events = session.events(2)
    assert [event.type for event in events] == [
        "turn_started",
        "register_set",
        "register_set",
        "message_added",
        "turn_completed",
    ]
    assert events[3].turn_id == events[4].turn_id == events[0].id
    assert events[4].data == {"agent_id": "agent_loop", "turn_stop_reason": "budget_exhausted", "steps": 1}
    assert (store.snapshot("s") or {})["state"] == "paused"


def test_a_second_turn_with_the_same_prompt_sets_no_register_again(store: SessionRegistry) -> None:
    following(store).end("completed")
    session = store.session("s")
    assert session
    version = session.version
    following(store).end("completed")
    assert session.version == version + 2


def test_an_injected_message_is_seen_at_once_and_joins_the_loop_at_the_next_boundary(
    store: SessionRegistry,
) -> None:
    conversation = following(store)
    conversation.add(said("prompt"))
    conversation.store()
    store.inject("s", said("injected"))
    assert texts(store.messages("s")) == ["before", "prompt", "injected"]
    conversation.add(said("answer"))
    conversation.store()
    assert texts(store.messages("s")) == ["before", "prompt", "answer", "injected"]
    assert texts(conversation.arrivals()) == ["injected"]
    assert conversation.arrivals() == []
    conversation.step_started("mock", "mock", 2)
    conversation.add(said("answer 2"))
    conversation.end("completed")
    assert texts(store.messages("s")) == ["before", "prompt", "answer", "injected", "answer 2"]


def test_the_same_message_may_stand_there_twice(store: SessionRegistry) -> None:
    conversation = following(store)
    message = said("twice")
    store.inject_shared("s", message)
    conversation.add(said("a"))
    store.inject_shared("s", message)
    conversation.store()
    snapshot = store.snapshot("s") or {}
    assert texts(snapshot["messages"]) == ["before", "a", "twice", "twice"]
    assert len({event["id"] for event in snapshot["events"]}) == 4


def test_a_reset_meanwhile_holds_for_the_loop(store: SessionRegistry) -> None:
    conversation = following(store)
    conversation.add(said("a"))
    conversation.store()
    store.reset("s")
    conversation.add(said("b"))
    conversation.store()
    assert texts(conversation.replaced() or []) == ["before", "a", "b"]
    assert texts(conversation.messages) == ["b"]
    conversation.end("completed")
    assert texts(store.messages("s")) == ["b"]


def test_storing_into_a_closed_session_does_nothing(store: SessionRegistry) -> None:
    conversation = following(store)
    conversation.add(said("a"))
    conversation.note(lifecycle_event("provider_payload"))
    store.close("s")
    conversation.end("completed")
    assert not store.exists("s")
    transcript = conversation.transcript("active")
    assert texts(transcript["messages"]) == ["before", "a"]
    assert transcript["events"][-1]["kind"] == "provider_payload"


def test_a_failed_loop_leaves_what_was_said(store: SessionRegistry) -> None:
    conversation = following(store)
    conversation.add(said("a"))
    conversation.store()
    conversation.add(said("b"))
    conversation.fail(ValueError("no model"))
    assert texts(store.messages("s")) == ["before", "a", "b"]
    session = store.session("s")
    assert session
    end = {"agent_id": "agent_loop", "steps": 0, "turn_stop_reason": "failed", "error": "no model"}
    assert session.events()[-1].data == end
    store.inject("s", said("after"))
    assert conversation.arrivals() == []


def test_a_summary_comes_first_and_stays(store: SessionRegistry) -> None:
    store.store_transcript("s", {"messages": [said("x")], "summary": "sum"})
    conversation = following(store)
    assert (texts(conversation.messages), conversation.summary) == (["sum", "x"], "sum")
    conversation.end("completed")
    assert texts(store.messages("s")) == ["sum", "x"]
    assert (store.snapshot("s") or {})["summary"] == "sum"


def test_a_summary_that_the_window_shows_is_not_put_first(store: SessionRegistry) -> None:
    shown = [said("x"), said("new"), said("y")]
    store.store_transcript("s", {"messages": shown, "summary": "old\n\nnew"})
    assert texts(following(store).messages) == ["x", "new", "y"]
    assert texts(store.prompt_state("s")[0]) == ["x", "new", "y"]


def test_a_summary_that_is_put_first_ends_no_pins(store: SessionRegistry) -> None:
    store.store_transcript("s", {"messages": [said("x"), said("y")], "summary": "sum"})
    session = store.session("s")
    assert session
    session.pin(session.entries()[0].event_id)
    following(store).end("completed")
    session.trim(1)
    assert texts(session.messages()) == ["y"]
    assert texts(session.window()) == ["x", "y"]


def test_the_result_shows_this_runs_lifecycle_events_only(store: SessionRegistry) -> None:
    for run in ("one", "two"):
        conversation = following(store)
        conversation.add(said(run))
        conversation.note(lifecycle_event("provider_payload", run))
        conversation.end("completed")
    transcript = conversation.transcript("active")
    assert [event["text"] for event in transcript["events"]] == ["before", "one", "two", "two"]
    assert "metadata" not in transcript


def test_an_anonymous_conversation_has_the_same_shape(store: SessionRegistry) -> None:
    conversation = Conversation("agent_session_1", World())
    conversation.begin(None, "text")
    conversation.add(said("a"))
    conversation.note(lifecycle_event("provider_payload"))
    conversation.store()
    transcript = conversation.transcript("paused")
    assert [event["kind"] for event in transcript["events"]] == ["message", "provider_payload"]
    assert (transcript["id"], transcript["state"]) == ("agent_session_1", "paused")
    assert store.ids() == ["s"]


STEPS = st.lists(
    st.sampled_from(["add", "inject", "boundary", "store", "note", "trim", "step", "outside"]), max_size=30
)


@given(STEPS)
def test_the_session_ends_as_the_loops_messages_and_then_what_came_too_late(steps: list[str]) -> None:
    store = SessionRegistry()
    conversation = following(store)
    told = []
    for number, step in enumerate(steps):
        text = f"m{number}"
        if step == "add":
            conversation.add(said(text))
            told.append(text)
        elif step == "inject":
            store.inject("s", said(text))
            told.append(text)
        elif step == "boundary":
            joined = conversation.arrivals()
            assert conversation.messages[len(conversation.messages) - len(joined) :] == joined
        elif step == "store":
            conversation.store()
            assert store.messages("s") == conversation.messages + conversation.waiting()
        elif step == "note":
            conversation.note(lifecycle_event("note", text))
        elif step == "trim":
            store.trim("s", 1)
        elif step == "step":
            conversation.step_started("mock", "mock", number)
        else:
            store.append_event("s", {"kind": "outside", "text": text})
    conversation.end("completed")
    session = store.session("s")
    assert session
    assert session.messages() == conversation.messages + conversation.waiting()
    assert sorted(texts(session.history())) == sorted(told)
    assert "trim" in steps or len(session.messages()) == len(told)
    assert all(event.type != "history_replaced" for event in session.events())
    assert replay(session.events()).transcript("s") == session.view.transcript("s")


def test_a_loop_that_stores_its_messages_meanwhile_does_not_spoil_a_compaction(
    store: SessionRegistry,
) -> None:
    conversation = following(store)
    for text in ("a", "b", "c"):
        conversation.add(said(text))
    conversation.store()

    def compactor(archived: list[dict[str, Any]]) -> str:
        store.inject("s", said("late"))
        conversation.add(said("answer"))
        conversation.store()
        return "gist"

    assert store.compact("s", {"keep_last": 2, "custom_compactor": compactor}) == 5
    assert texts(store.messages("s")) == [
        "[auto-compacted 2 older messages]\ngist",
        "b",
        "c",
        "answer",
        "late",
    ]
    assert texts(store.history("s")) == ["before", "a", "b", "c", "answer", "late"]


def test_a_cut_meanwhile_is_a_reason_to_refuse_a_compaction(store: SessionRegistry) -> None:
    for text in ("a", "b", "c"):
        store.inject("s", said(text))

    def compactor(archived: list[dict[str, Any]]) -> str:
        store.trim("s", 2)
        return "gist"

    with pytest.raises(SessionError, match="was cut by someone else meanwhile"):
        store.compact("s", {"keep_last": 1, "custom_compactor": compactor})
    assert texts(store.messages("s")) == ["b", "c"]
