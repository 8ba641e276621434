"""Canto's logs of sessions, in and out. Spec: 10 §A1, §C17."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from harnpy.session.codec import encode_event
from harnpy.session.errors import TransferError
from harnpy.session.stored import StoredSession
from harnpy.session.transfer.canto import ancestry_of, dump_lines, read_log
from harnpy.session.transfer.logs import load_log, load_rows
from harnpy.storage import open_store
from harnpy.storage.memory import MemoryStore
from harnpy.world import World
from tests.session.test_views_equal import views
from tests.session.transfer.conversations import EXAMPLES, STEPS, play, take


def brought(session: StoredSession, id: str | None = None) -> StoredSession:
    """The session out and in again."""
    record = json.loads(json.dumps(ancestry_of(session)))
    found = read_log(list(dump_lines(session)), record)
    assert found.losses == []
    return load_rows(found.rows, MemoryStore(), World(), id)


def facts(session: StoredSession) -> dict[str, Any]:
    shown = views(session)
    events = [{**event, "id": None} for event in shown["transcript"]["events"]]
    return {**shown, "transcript": {**shown["transcript"], "events": events}}


@settings(max_examples=EXAMPLES, deadline=None)
@given(STEPS, STEPS)
def test_what_goes_out_comes_in(steps: list[tuple[Any, ...]], later: list[tuple[Any, ...]]) -> None:
    session = play([("say", 0, "first"), *steps])
    fork = session.fork("fork")
    take(fork, later)
    for each in (session, fork):
        found = brought(each)
        assert facts(found) == facts(each)
        assert (found.revision, found.status, found.info) == (each.revision, each.status, each.info)
        if each is fork and ("foreign",) in steps:
            continue  # a store in memory doesn't know which session gave a shared event its own id
        ours = [encode_event(event) for event in found.events()]
        assert ours == [encode_event(event) for event in each.events()]
    renamed = brought(session, "renamed")
    assert renamed.messages() == session.messages()
    assert renamed.window() == session.window()


# Logs as Canto writes them.

A, B, C, D, E, F = (f"01JGXM0000000000000000000{letter}" for letter in "ABCDEF")


def line(id: str, type: str, data: Any, session: str = "c", **more: Any) -> str:
    """One line; keys that aren't given are left out."""
    head = {"id": id, "session_id": session, **more}
    return (
        json.dumps({**head, "type": type, "timestamp": "2025-01-05T09:30:00.123456789Z", "data": data}) + "\n"
    )


def said(id: str, role: str, content: str, **more: Any) -> str:
    keys = {key: more.pop(key) for key in ("tool_id", "tool_calls") if key in more}
    return line(id, "message_added", {"role": role, "content": content, **keys}, **more)


def load(*lines: str) -> StoredSession:
    return load_log(lines, MemoryStore(), World())


CALL = {"id": "x", "type": "function", "function": {"name": "ls", "arguments": "{}"}}


def test_a_log_of_canto() -> None:
    session = load(
        line(A, "turn_started", {"agent_id": "a"}, turn_id="T"),
        said(B, "user", "Go", turn_id="T", cost=0.5, metadata={"client": "x"}),
        "\n",
        said(C, "assistant", "", turn_id="T", tool_calls=[CALL]),
        line("t1", "tool_started", {"tool": "ls", "args": "no JSON", "id": "x"}, turn_id="T"),
        line(
            "t2", "tool_completed", {"tool": "ls", "id": "x", "output": "a.txt", "error": "gone"}, turn_id="T"
        ),
        line(D, "turn_completed", {"agent_id": "a", "steps": 1, "turn_stop_reason": "completed"}),
        line(E, "weather", 7),
        line(F, "approval_requested", {"ID": "p", "SessionID": "c", "Tool": "ls", "Args": "{}"}),
    )
    assert session.messages()[0] == {"role": "user", "content": "Go"}
    assert session.window()[-1] == {"role": "tool", "tool_call_id": "x", "content": "a.txt\nError: gone"}
    assert (session.execution_status, session.view.open_turns) == ("completed", {})
    events = session.events()
    assert [event.id for event in events[1:4]] == [A, B, C]
    assert events[2].metadata == {"client": "x"}
    assert (events[2].cost, events[2].timestamp) == (0.5, "2025-01-05T09:30:00.123456Z")
    assert events[-1].data == {"id": "p", "session_id": "c", "tool": "ls", "args": "{}"}
    assert session.view.transcript("c")["events"]


def test_an_end_without_a_turn_ends_the_open_one_that_began_last() -> None:
    ends = [line(id, "turn_completed", {"agent_id": "a", "turn_stop_reason": "completed"}) for id in (C, D)]
    begins = [line(id, "turn_started", {"agent_id": id}) for id in (A, B)]
    session = load(*begins, *ends)
    assert ([turn.status for turn in session.turns()], session.view.open_turns) == (["completed"] * 2, {})
    assert [event.turn_id for event in session.events(after=3)] == [B, A]


def test_numbers_with_gaps_are_counted_anew() -> None:
    session = load(said(A, "user", "a", seq=1), said(B, "user", "b", seq=7), said(C, "user", "c"))
    assert [event.seq for event in session.events()] == [1, 2, 3, 4]
    origins = [event.metadata.get("origin_seq") for event in session.events()]
    assert origins == [None, 1, 7, None]


@pytest.mark.parametrize("data", [{"content": "x"}, {"error": "failed to marshal event data: x"}, None, [1]])
def test_messages_that_canto_passes_over(data: Any) -> None:
    found = read_log([said(A, "user", "a"), line(B, "message_added", data)])
    assert str(found.losses[0]).startswith("c: unreadable messages: line 2: ")
    assert len(found.rows) == 2


def test_a_torn_last_line_is_left_out() -> None:
    torn = said(B, "user", "ä b")[:40]
    found = read_log([said(A, "user", "a"), torn])
    assert [str(loss) for loss in found.losses] == ["c: torn line: 40 bytes"]
    assert load(said(A, "user", "a"), torn).messages() == [{"role": "user", "content": "a"}]
    assert load(said(A, "user", "a").rstrip()).length == 1
    with pytest.raises(TransferError, match=r"^line 1 isn't JSON"):
        read_log([torn + "\n", said(A, "user", "a")])


def test_branches_of_a_log() -> None:
    session = load(
        said(A, "user", "a"),
        said(B, "user", "b", parent_id=A),
        line(C, "leaf_moved", {"target_event_id": A}, parent_id=B),
        said(D, "user", "d", parent_id=A),
        line(E, "branch_summary", {"summary": "b was tried"}, parent_id=D),
    )
    assert [message["content"] for message in session.messages()] == ["a", "d"]
    assert session.window()[-1]["content"].endswith("<summary>\nb was tried\n</summary>")
    rooted = load(said(A, "user", "a"), line(B, "leaf_moved", {}), said(C, "user", "c"))
    assert [message["content"] for message in rooted.messages()] == ["c"]


def test_a_parent_that_no_move_has_led_to() -> None:
    session = load(said(A, "user", "a"), said(B, "user", "b"), said(C, "user", "c", parent_id=A))
    assert [message["content"] for message in session.messages()] == ["a", "c"]


def test_what_was_chosen_is_in_registers() -> None:
    session = load(
        line(A, "model_changed", {"provider_id": "p", "model": "m"}),
        line(B, "thinking_changed", {"level": ""}),
        line(C, "tools_changed", {"names": []}),
        line(D, "model_changed", {"model": "n"}),
    )
    assert (session.get("thinking"), session.get("tools")) == ("off", [])
    assert session.view.registers["model"][:2] == (2, {"model": "n"})


SUMMARY = "<conversation_summary>\nshort\n</conversation_summary>"


@pytest.mark.parametrize("type", ["compaction_triggered", "projection_snapshotted"])
def test_snapshots(type: str) -> None:
    entries = [
        {"context_kind": "summary", "placement": "prefix", "message": {"role": "user", "content": SUMMARY}},
        {"event_id": B, "event_type": "message_added", "message": {"role": "user", "content": "b"}},
        {
            "event_id": C,
            "event_type": "message_added",
            "message": {"role": "assistant", "content": "[offloaded]"},
        },
    ]
    snapshot = {"strategy": "summarize", "cutoff_event_id": C, "entries": entries, "read_files": ["f"]}
    session = load(
        said(A, "user", "a"), said(B, "user", "b"), said(C, "assistant", "c"), said(D, "user", "d"),
        line(E, type, snapshot), said(F, "user", "f"),
    )  # fmt: skip
    shown = [message["content"] for message in session.window()]
    if type == "compaction_triggered":
        assert shown[0] == SUMMARY
        assert shown[1].startswith("<working_set>")
        assert shown[2:] == ["b", "[offloaded]", "d", "f"]
    else:
        assert shown == ["a", "b", "c", "d", "f"]
    assert [message["content"] for message in session.history()] == [
        "a",
        "c",
        "b",
        "d",
        "f",
    ] or type != snapshot


@pytest.mark.parametrize(
    "snapshot", [{}, {"cutoff_event_id": A}, {"entries": []}, {"messages": [{"role": "user"}]}]
)
def test_snapshots_that_count_for_nothing(snapshot: Any) -> None:
    session = load(said(A, "user", "a"), line(B, "compaction_triggered", {"strategy": "s", **snapshot}))
    assert session.messages() == [{"role": "user", "content": "a"}]


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ([said(A, "user", "a"), said(B, "user", "b", session="d")],
         'replay: session id mismatch: session="c" event="d"'),
        ([said(A, "user", "a"), line(B, "leaf_moved", {"target_event_id": "gone"})],
         'session tree: target event "gone" not found'),
        ([said(A, "user", "a"), said(B, "user", "b", parent_id="gone")],
         'session tree: parent event "gone" not found'),
        ([line(A, "compaction_triggered", {"cutoff_event_id": "gone"})],
         'effective history: compaction cutoff "gone" not found'),
        ([said(A, "user", "a"), "{}\n"], "line 2 is no event: it needs id, session_id, timestamp, type"),
        ([said(A, "user", "a").replace("2025-", "x")], "event 1 can't be read: 'x"),
    ],
)  # fmt: skip
def test_what_is_no_log(lines: list[str], text: str) -> None:
    store = open_store("memory:")
    with pytest.raises(TransferError) as caught:
        load_log(lines, store, World())
    assert str(caught.value).startswith(text)
    assert store.head("session", "c") is None


def test_a_fork_that_canto_made() -> None:
    record = {"session_id": "f", "parent_session_id": "c", "fork_point_event_id": B, "branch_label": "try",
              "depth": 1, "created_at": "2025-01-06T00:00:00Z"}  # fmt: skip
    shared = [
        said(id, "user", id, session="f", metadata={"fork_origin": {"session_id": "c", "event_id": origin}})
        for id, origin in ((C, A), (D, B))
    ]
    for known in (record, None):
        found = read_log([*shared, said(E, "user", "own", session="f")], known)
        session = load_rows(found.rows, MemoryStore(), World(), None)
        info = session.info
        assert (info.parent_id, info.fork_seq, info.branch_label) == ("c", 3, "try" if known else "")
        assert len(session.messages()) == 3
        assert session.events()[3].id == E
        assert session.revision == 2
