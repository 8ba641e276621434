"""Positions, revisions, ids and times of events: computed from the log (10 §C3.3)."""

from __future__ import annotations

from hashlib import sha256
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from harnpy.session import Event, EventDraft, Session, SessionRegistry
from harnpy.session.events import event_id, position, read_stamp, stamp
from tests.worlds import world_with

TIMES = st.integers(0, 2**47 * 1000)
SEQS = st.integers(1, 2**34 - 1)


def session_of(registry: SessionRegistry, id: str = "s") -> Session:
    session = registry.session(registry.open(id))
    assert session
    return session


def said(text: str) -> EventDraft:
    return EventDraft("message_added", {"role": "user", "content": text})


def test_the_specifications_example() -> None:
    at = read_stamp("2026-01-05T09:30:00.123456Z")
    assert event_id("incident-42", 7, at) == "019b8d7d-f23b-7000-8000-07183735306a"
    assert stamp(at) == "2026-01-05T09:30:00.123456Z"


@given(st.text(), SEQS, TIMES)
def test_an_id_is_a_uuid_7_of_time_position_and_session(session: str, seq: int, at: int) -> None:
    id = event_id(session, seq, at)
    bits = UUID(id).int
    assert str(UUID(id)) == id
    assert bits >> 80 == at // 1000
    assert (bits >> 76 & 0xF, bits >> 62 & 0b11) == (7, 0b10)
    assert (bits >> 64 & 0xFFF) << 22 | bits >> 40 & 0x3F_FFFF == seq
    assert (
        f"{bits & 0xFF_FFFF_FFFF:010x}" == sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    )
    assert position(id, session) == seq


@given(st.text(), SEQS, SEQS, TIMES, st.integers(0, 10**9))
def test_ids_rise_with_positions(session: str, one: int, other: int, at: int, later: int) -> None:
    if one > other:
        one, other = other, one
    if one < other:
        assert event_id(session, one, at) < event_id(session, other, at + later)


@given(st.text() | st.uuids().map(str))
def test_an_id_of_somewhere_else_names_no_position(id: str) -> None:
    assert position(id, "s") is None


@given(TIMES)
def test_time_stamps_read_back(at: int) -> None:
    assert read_stamp(stamp(at)) == at


@given(st.lists(st.floats(0, 4e9), min_size=1, max_size=20))
def test_times_never_go_back_whatever_the_clock_does(clock: list[float]) -> None:
    ticks = iter([clock[0], *clock])
    registry = SessionRegistry(world=world_with(now=lambda: next(ticks, clock[-1])))
    session = session_of(registry)
    for n in range(len(clock)):
        session.append(said(str(n)), said("and on"))
    events = session.events()
    times = [event.time for event in events]
    assert times == sorted(times)
    assert all(type(time) is int for time in times)
    ids = [event.id for event in events]
    assert ids == sorted(ids)
    assert ids == [event_id("s", event.seq, event.time) for event in events]


def test_an_append_has_one_time_and_says_how_many_events_follow() -> None:
    clock = iter(range(1, 100))
    session = session_of(SessionRegistry(world=world_with(now=lambda: float(next(clock)))))
    events = session.append(said("a"), said("b"), said("c"))
    assert len({event.time for event in events}) == 1
    assert [event.more for event in events] == [2, 1, 0]
    assert (session.seq, session.version) == (4, 4)


def test_a_fork_computes_the_ids_of_what_it_shares() -> None:
    registry = SessionRegistry()
    session = session_of(registry)
    session.append(said("a"))
    registry.fork("s", "t")
    fork = session_of(registry, "t")
    fork.append(said("b"))
    shared = fork.event(2)
    assert shared.id == event_id("t", 2, session.event(2).time)
    assert shared.metadata == {"fork_origin": {"session_id": "s", "event_id": session.event(2).id}}
    assert [event.id for event in fork.events()] == [event.id for event in map(fork.event, (1, 2, 3))]


def test_the_summary_of_a_compaction_has_its_id() -> None:
    registry = SessionRegistry()
    session = session_of(registry)
    session.append(*(said(str(n)) for n in range(10)))
    registry.compact("s", {"keep_last": 2, "compact_strategy": "truncate"})
    (cut,) = [event for event in session.events() if event.type == "compaction_triggered"]
    summary = session.view.window.entries.items()[0]
    assert (summary.id, summary.timestamp) == (cut.id, cut.timestamp)


class TestRevisions:
    """How many times a session was saved."""

    def test_each_direct_append_is_a_save_however_many_events_it_writes(self) -> None:
        session = session_of(SessionRegistry())
        assert session.revision == 1
        session.append(said("a"), said("b"))
        assert session.revision == 2
        session.set("memo", "x")
        assert session.revision == 3

    def test_a_turn_is_one_save_made_when_it_ends(self) -> None:
        session = session_of(SessionRegistry())
        turn = started(session)
        session.append(EventDraft("message_added", {"role": "user", "content": "a"}, turn=turn))
        assert session.revision == 1
        session.append(said("injected meanwhile"))
        assert session.revision == 2
        session.append(EventDraft("turn_completed", {"agent_id": "a"}, turn=turn))
        assert session.revision == 3
        session.append(EventDraft("message_added", {"role": "user", "content": "late"}, turn=turn))
        assert session.revision == 4

    def test_what_is_appended_together_with_something_of_a_turn_is_of_its_save(self) -> None:
        session = session_of(SessionRegistry())
        turn = started(session)
        session.append(EventDraft("message_added", {"role": "user", "content": "a"}, turn=turn), said("b"))
        assert session.revision == 1
        session.append(EventDraft("turn_completed", {"agent_id": "a"}, turn=turn))
        assert session.revision == 2

    def test_a_fork_counts_its_own_saves(self) -> None:
        registry = SessionRegistry()
        session = session_of(registry)
        for text in "abc":
            session.append(said(text))
        registry.fork("s", "t")
        fork = session_of(registry, "t")
        assert (session.revision, fork.revision) == (4, 1)
        fork.append(said("d"))
        assert fork.revision == 2

    @given(st.lists(st.lists(st.booleans(), min_size=1, max_size=3), max_size=8))
    def test_asking_in_between_changes_nothing(self, appends: list[list[bool]]) -> None:
        asked, unasked = (session_of(SessionRegistry()) for _ in range(2))
        for session in (asked, unasked):
            turn = started(session)
            for batch in appends:
                session.append(*(EventDraft("x", turn=turn if inside else None) for inside in batch))
                if session is asked:
                    assert session.revision
        assert asked.revision == unasked.revision


def started(session: Session) -> Event:
    (turn,) = session.append(EventDraft("turn_started", {"agent_id": "a"}))
    return turn
