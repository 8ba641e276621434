"""Projection snapshots: a session that is loaded from one is the same session. Spec: 10 §C5."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harnpy.session import Event, EventDraft, RewindError, Session, SessionBusy
from harnpy.session import events as kinds
from harnpy.session.codec import encode_event
from harnpy.session.compaction import Compaction
from harnpy.session.events import micros
from harnpy.session.projections import EVENTS
from harnpy.session.stored import StoredSession
from harnpy.session.transcript import LIVE_KINDS
from harnpy.session.transfer.logs import dump_log, load_log
from harnpy.storage import Store
from harnpy.storage.memory import MemoryStore
from harnpy.world import World
from tests.clock import SimulatedClock
from tests.counts import COUNT
from tests.session.shapes import calling, said, tool
from tests.storage.conftest import STORES
from tests.storage.test_processes import WORKER, wait_for_the_dead
from tests.support import ROOT, Popen

TYPE = kinds.PROJECTION_SNAPSHOTTED


def load(id: str, store: Store, world: World | None = None) -> StoredSession:
    session = StoredSession.load(id, store, world or World())
    assert session
    return session


def loaded_in_full(id: str, store: Store) -> StoredSession:
    head = store.head("session", id)
    assert head
    session = StoredSession.load(id, store, World(), until=head.version)
    assert session
    return session


def say(session: Session, text: str, turn: Event | None = None) -> Event:
    return session.record(kinds.MESSAGE_ADDED, said("user", text), turn)


def begin(session: Session) -> Event:
    return session.record(kinds.TURN_STARTED, {"agent_id": "a"})


def end(session: Session, turn: Event, stop_reason: str = "completed") -> Event:
    return session.record(kinds.TURN_COMPLETED, {"agent_id": "a", "turn_stop_reason": stop_reason}, turn)


def turn_of(session: Session, *texts: str) -> None:
    turn = begin(session)
    for text in texts:
        say(session, text, turn)
    end(session, turn)


def compact(session: Session, keep: int, text: str = "short") -> None:
    session.compact(Compaction(0, session.length - keep, text, "truncate", 0, 0), None)


def snapshots(session: Session) -> list[Event]:
    return [event for event in session.events() if event.type == TYPE]


def is_light(session: StoredSession) -> bool:
    return session._is_light


# The same views.


def shown(session: StoredSession) -> dict[str, Any]:
    """What the session shows without the log behind a snapshot, and then the rest."""
    view = session.view
    window = view.window
    return {
        "messages": session.messages(),
        "window": session.window(),
        "entries": [entry.shown() for entry in session.entries()],
        "contexts": [(at, event.seq) for at, event in window.contexts],
        "fields": (window.summary, window.metadata, window.assets, window.state, window.files),
        "floor": window.floor,
        "registers": dict(view.registers),
        "clients": view.clients,
        "live": list(window.live_events()),
        "statuses": (view.status, view.execution, sorted(view.open_turns), session.revision),
        "lineage": (view.parent_id, view.linked_at, view.cleared_at, view.branched_at),
        "undone": (view.rewound.at, view.rewound.leaves, view.pins),
        "times": (micros(view.created), session.seq, session.seq > 1 and micros(session.moment)),
        "head": (session._digest.head(), session.info._replace(updated_at="")),
        "turns": list(view.turns.items()),
        "history": session.history(),
        "everything": session.history(include_reset=True),
        "transcript": view.transcript("s"),
        "events": [encode_event(event) for event in session.events()],
        "stored": [event.stored() for event in session.events()],
    }


def works(session: Session, number: int) -> None:
    """A turn with a tool; somebody says something while it runs."""
    turn = begin(session)
    for step in range(2):
        session.record(kinds.STEP_STARTED, {"agent_id": "a", "iteration": step}, turn)
        say(session, f"{number} meanwhile")
        id = f"{number}.{step}"
        session.record(kinds.MESSAGE_ADDED, calling(id), turn)
        session.record(kinds.TOOL_STARTED, {"tool": "read", "args": "{}", "id": id}, turn)
        session.record(kinds.TOOL_COMPLETED, {"tool": "read", "id": id, "output": "done"}, turn)
        session.record(kinds.MESSAGE_ADDED, tool(id), turn)
    end(session, turn, "max_turns_hit")


def beside(session: Session, number: int) -> None:
    """Two turns at once."""
    turns = begin(session), begin(session)
    for text in "ab":
        for turn in turns:
            say(session, f"{number}{text} of {turn.seq}", turn)
    for turn in turns:
        end(session, turn)


def context(session: Session, number: int) -> None:
    kind = "harness" if number % 2 else "generic"
    session.record(kinds.CONTEXT_ADDED, {"kind": kind, "content": f"context {number}"})


def client(session: Session, number: int) -> None:
    record = None if number % 3 == 0 else {"client_id": "c", "mode": "observer", "number": number}
    kind = sorted(LIVE_KINDS)[number % len(LIVE_KINDS)]
    event = {"id": f"n{number}", "kind": kind, "visibility": "internal"}
    session.append(EventDraft(kinds.TRANSCRIPT_EVENT, event, {kinds.LIVE_CLIENTS: {"c": record}}))


def restored(session: Session, number: int) -> None:
    messages = [said("user", f"{number} restored"), said("assistant", "yes")]
    session.restore(
        {"messages": messages, "summary": "as before", "metadata": {"n": number}, "state": "idle"}
    )


def reversed_(session: Session, number: int) -> None:
    window = session.view.window
    session.replace("set", window.with_entries(window.entries.items()[::-1][: number + 1]))


def brought(session: Session, number: int) -> None:
    other = Session.create("other", MemoryStore(), World())
    turn_of(other, "x", "y", "z")
    other.set("memo", number)
    compact(other, 2)
    session.become_fork_of(other, other.view)


def pinned(session: Session, number: int) -> None:
    entries = [entry for entry in session.view.window.entries.items() if entry.is_logged]
    if entries:
        session.pin(session.origin.own(entries[number % len(entries)]).id)


def rewound(session: Session, number: int) -> None:
    with suppress(RewindError, SessionBusy):
        session.rewind(1 + number % 2)


def redone(session: Session, number: int) -> None:
    with suppress(RewindError, SessionBusy):
        session.redo()


def trimmed(session: Session, number: int) -> None:
    session.trim(number % 5)


def compacted(session: Session, number: int) -> None:
    if session.length > 1:
        compact(session, number % session.length, f"short {number}")


VERBS: dict[str, Callable[[StoredSession, int], object]] = {
    "turn": lambda session, number: turn_of(session, f"{number}.1", f"{number}.2"),
    "works": works,
    "beside": beside,
    "say": lambda session, number: say(session, str(number)),
    "context": context,
    "client": client,
    "memo": lambda session, number: session.set("memo", number),
    "model": lambda session, number: session.set("model", str(number)),
    "metadata": lambda session, number: session.set("metadata.n", None if number % 3 == 0 else number),
    "status": lambda session, number: session.set_status(("suspended", "active")[number % 2]),
    "trim": trimmed,
    "compact": compacted,
    "reset": lambda session, number: session.reset(),
    "set": lambda session, number: session.set_history([said("user", f"{number} set")]),
    "restore": restored,
    "reverse": reversed_,
    "bring": brought,
    "pin": pinned,
    "rewind": rewound,
    "redo": redone,
}
#: The first of them come most often.
CHOSEN = st.sampled_from(
    ["snapshot"] * 8 + ["reload", "fork"] * 3 + ["turn", "works", "say"] * 3 + list(VERBS)
)


def test_a_snapshot_shows_what_the_whole_log_shows(store: Store) -> None:
    numbers = count()
    light = 0

    @settings(max_examples=COUNT.examples(12), deadline=None)
    @given(st.lists(CHOSEN, max_size=20))
    @example(["turn", "snapshot"])  # which is loaded from the snapshot on, whatever else is drawn
    def check(verbs: list[str]) -> None:
        nonlocal light
        id = f"s{next(numbers)}"
        world = World(clock=SimulatedClock(tick=1.0))
        session = StoredSession.begin(id, store, world)
        for number, verb in enumerate(verbs):
            if verb == "snapshot":
                session.snapshot()
            elif verb == "reload":
                session = load(session.id, store, world)
            elif verb == "fork":
                session = session.fork(f"{id} fork {number}")
            else:
                VERBS[verb](session, number)
        again = load(session.id, store, world)
        light += is_light(again)
        whole = shown(loaded_in_full(session.id, store))
        assert shown(again) == whole
        assert shown(session) == whole

    check()
    assert light


def test_a_file_of_a_fork_reads_back(store: Store) -> None:
    session = StoredSession.begin("s", store, World())
    works(session, 1)
    session.snapshot()
    fork = session.fork("t")
    works(fork, 2)
    load_log(dump_log(load("t", store)), store, World(), id="u")
    again = load("u", store)
    assert is_light(again)
    whole = shown(loaded_in_full("u", store))
    assert shown(again) == whole
    assert whole["messages"] == fork.messages()


def test_what_a_fork_brought_is_not_taken_for_the_event_that_brought_it() -> None:
    session = StoredSession.begin("s", MemoryStore(), World())
    brought(session, 1)
    fork = session.fork("t")
    compact(fork, 1)
    assert [entry["message"]["content"] for entry in fork.events()[-1].data["entries"]] == ["short", "z"]
    assert [event.type for event in fork.events()[1:]] == [kinds.HISTORY_REPLACED, kinds.COMPACTION_TRIGGERED]


# What is read.


class Counted:
    """A stream that counts the events it gives."""

    def __init__(self, stream: Any) -> None:
        self.whole = stream
        self.read_so_far = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.whole, name)

    def read(self, *where: Any, **more: Any) -> Iterator[Event]:
        for event in self.whole.read(*where, **more):
            self.read_so_far += 1
            yield event


class CountingStore:
    def __init__(self, store: Store) -> None:
        self.whole = store
        self.streams: list[Counted] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.whole, name)

    def stream(self, *which: Any) -> Counted:
        self.streams.append(Counted(self.whole.stream(*which)))
        return self.streams[-1]

    def branch(self, source: Counted, *what: Any, **more: Any) -> Counted:
        self.streams.append(Counted(self.whole.branch(source.whole, *what, **more)))
        return self.streams[-1]

    @property
    def read_so_far(self) -> int:
        return sum(stream.read_so_far for stream in self.streams)


def long_session(store: Store, turns: int = 100) -> StoredSession:
    """One of some 1,500 events whose window was compacted now and then."""
    session = StoredSession.begin("s", store, World())
    session.set("system_prompt", "be brief")
    for number in range(turns):
        works(session, number)
        if number % 20 == 17:
            compact(session, 4, f"short {number}")
    return session


def test_a_load_reads_a_snapshot_and_what_follows_it(store: Store) -> None:
    session = long_session(store)
    counting: Any = CountingStore(store)
    again = load("s", counting)
    # The window's events with those between them, the snapshot, event 1, a register, a compaction, and
    # what has come since.
    little = session.view.window.entries.items()[1].seq
    allowed = session.seq - little + 1 + 4 + EVENTS
    assert (again.messages(), again.window()) == (session.messages(), session.window())
    assert (again.get("system_prompt"), again.length) == ("be brief", session.length)
    assert counting.read_so_far < allowed < session.seq / 4
    works(again, 1000)
    assert again.prompt_state() == load("s", store).prompt_state()
    assert again.view.window.live_events() == []
    assert is_light(again)
    assert counting.read_so_far < allowed + EVENTS

    fork = again.fork("t")
    assert is_light(fork)
    assert fork.messages() == again.messages()
    assert counting.read_so_far < 3 * allowed

    before = counting.read_so_far
    assert len(again.history()) == len(session.history()) + 6
    assert counting.read_so_far > before + session.seq / 2
    before = counting.read_so_far
    assert len(again.view.transcript("s")["events"]) > session.length
    assert again.events(0, 1)[0].type == kinds.SESSION_CREATED
    assert counting.read_so_far == before + 1


def test_the_others_of_a_fork_may_go(store: Store) -> None:
    session = long_session(store, 30)
    again = load("s", store)
    fork = again.fork("t")
    expected = session.history()
    store.delete("session", "s")
    assert fork.history() == expected
    assert load("t", store).history() == expected


# When one is taken.


def test_one_is_taken_at_the_end_of_a_turn(store: Store) -> None:
    session = StoredSession.begin("s", store, World())
    for number in range(EVENTS):
        say(session, str(number))
    assert not snapshots(session)
    turn = begin(session)
    for number in range(EVENTS):
        say(session, str(number), turn)
    assert not snapshots(session)
    revision = session.revision
    done = end(session, turn)
    assert (done.more, session.revision) == (1, revision + 1)
    (taken,) = snapshots(session)
    assert (taken.seq, taken.seq) == (done.seq + 1, session.seq)
    assert (taken.data["strategy"], taken.data["cutoff_seq"]) == ("count", done.seq)
    for number in range(24):
        say(session, str(number))
    turn_of(session, *map(str, range(23)))
    assert len(snapshots(session)) == 1
    turn_of(session)
    assert len(snapshots(session)) == 2
    assert is_light(load("s", store))


def test_none_is_taken_while_another_turn_is_open(store: Store) -> None:
    session = StoredSession.begin("s", store, World())
    turns = begin(session), begin(session)
    for number in range(EVENTS):
        say(session, str(number), turns[0])
    end(session, turns[1])
    assert (session.snapshot(), snapshots(session)) == (False, [])
    end(session, turns[0])
    assert len(snapshots(session)) == 1


def test_a_cut_makes_one_due(store: Store) -> None:
    session = long_session(store, 12)
    for cut in (lambda: session.trim(5), lambda: session.rewind(), lambda: session.redo()):
        cut()
        assert not is_light(load("s", store))
        turn_of(session, "more")
        assert session.events()[-1].type == TYPE
        assert is_light(load("s", store))
        turn_of(session, "more")
        assert session.events()[-1].type != TYPE
        if cut is not None:
            session.rewind()


def test_one_can_be_asked_for(store: Store) -> None:
    clock = SimulatedClock(tick=0.0)
    session = StoredSession.begin("s", store, World(clock=clock))
    assert not session.snapshot(if_needed=True)
    say(session, "a")
    assert not session.snapshot(if_needed=True, max_events=3)
    assert session.snapshot(if_needed=True, max_events=2)
    assert not session.snapshot(if_needed=True, max_events=1)  # nothing has come since
    assert session.snapshot()
    assert session.snapshot(trigger="nightly")
    say(session, "b")
    clock.sleep(59.0)
    assert not session.snapshot(if_needed=True, max_age=60.0)
    clock.sleep(1.0)
    assert not session.snapshot(if_needed=True, max_events=0)
    assert session.snapshot(if_needed=True, max_age=60.0)
    assert [event.data["strategy"] for event in snapshots(session)] == ["count", "manual", "nightly", "time"]
    assert is_light(load("s", store))


def test_it_is_taken_of_what_others_have_written_meanwhile(store: Store) -> None:
    session, other = StoredSession.begin("s", store, World()), load("s", store)
    turn = begin(session)
    for number in range(EVENTS):
        say(session, str(number), turn)
    say(other, "theirs")
    end(session, turn)
    assert [event.data["shown"] for event in snapshots(session)] == [EVENTS + 1]
    say(other, "theirs, too")
    assert session.snapshot()
    again = load("s", store)
    assert (is_light(again), again.messages()) == (True, other.messages())


def test_in_memory_there_is_none() -> None:
    session = Session.create("s", MemoryStore(), World())
    for number in range(EVENTS):
        turn_of(session, str(number))
    assert not session.snapshot()
    assert not snapshots(session)


def test_transcripts_do_not_show_them(store: Store) -> None:
    session = long_session(store, 12)
    assert snapshots(session)
    shown = {event["kind"] for event in session.view.transcript("s")["events"]}
    assert shown == {"message", "tool_intent", "tool_execution"}


# What one costs.


def sizes(session: Session) -> list[int]:
    return [len(json.dumps(event.stored())) for event in snapshots(session)]


def test_snapshots_do_not_grow_with_the_window() -> None:
    session = StoredSession.begin("s", MemoryStore(), World())
    for number in range(200):
        works(session, number)
    first, *_, last = sizes(session)
    assert last - first < 20  # longer numbers
    session.rewind(1)
    for number in range(20):
        works(session, number)
        session = load("s", session.store)
    assert max(sizes(session)) < first + 80


def test_a_summary_that_grows_is_spelled_by_the_cuts_alone() -> None:
    session = StoredSession.begin("s", MemoryStore(), World())
    for number in range(20):
        works(session, number)
        compact(session, 2, f"{number} " + "x" * 1000)
        turn_of(session, "more")
        session.snapshot()
        session.snapshot()
        if number % 3 == 0:
            session = load("s", session.store)
            assert is_light(session)
    summary = session.view.window.summary
    assert summary is not None
    assert len(summary) > 20_000
    assert max(sizes(session)) < 400
    counting: Any = CountingStore(session.store)
    again = load("s", counting)
    assert (is_light(again), again.view.window.summary) == (True, summary)
    assert counting.read_so_far < 60
    session.reset()
    session.snapshot()
    again = load("s", session.store)
    assert (is_light(again), again.view.window.summary) == (True, None)


# What is damaged.


def wrong(*path: Any, value: Any = None) -> Callable[[dict[str, Any]], None]:
    def change(payload: dict[str, Any]) -> None:
        *above, key = path
        for step in above:
            payload = payload[step]
        if value is None:
            del payload[key]
        else:
            payload[key] = value

    return change


DAMAGES = {
    "no entries": wrong("entries"),
    "entries of another kind": wrong("entries", value="all"),
    "an entry of another kind": wrong("entries", 0, value=[1, 2, 3]),
    "an event that isn't there": wrong("entries", -1, value=[9_000, 9_001]),
    "fewer events": wrong("entries", -1),
    "no cut": wrong("entries", 0, value={"cut": 2}),
    "a cut that made nothing": wrong("entries", 0, value={"cut": 5}),
    "another place": wrong("cutoff_seq", value=3),
    "another register": wrong("registers", "memo", value=2),
    "no register": wrong("registers", "memo", value=9_000),
    "a later snapshot": wrong("summary", value=[9_000, []]),
    "no snapshot": wrong("summary", value=[2, []]),
    "a summary of no cut": wrong("summary", value=[0, [2]]),
    "a summary in words": wrong("summary", value=[0, "as before", 1]),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_the_log_says_what_a_damaged_one_does_not(store: Store, damage: Callable[..., None]) -> None:
    session = StoredSession.begin("s", store, World())
    works(session, 1)
    session.set("memo", 1)
    session.trim(4)
    compact(session, 2)
    turn_of(session, "more")
    assert session.snapshot()
    payload = json.loads(json.dumps(snapshots(session)[0].data))
    payload["cutoff_seq"] = session.seq
    session.record(TYPE, payload)
    assert is_light(load("s", store))
    payload = json.loads(json.dumps(payload))
    payload["cutoff_seq"] = session.seq
    damage(payload)
    session.record(TYPE, payload)
    again = load("s", store)
    assert not is_light(again)
    assert shown(again) == shown(session)


def test_another_systems_snapshot_is_no_use() -> None:
    session = StoredSession.begin("s", MemoryStore(), World())
    event = say(session, "a")
    session.record(TYPE, {"strategy": "count", "cutoff_event_id": event.id, "messages": [said("user", "a")]})
    again = load("s", session.store)
    assert (is_light(again), again.messages()) == (False, [said("user", "a")])


# Killed.

WORK = """
import sys
from harnpy.session.stored import StoredSession
from harnpy.storage import open_store
from harnpy.world import World
from tests.session.test_snapshots import works

session = StoredSession.load("s", open_store(sys.argv[1]), World())
number = 0
while True:
    works(session, number)
    number += 1
    print(session.seq, flush=True)
"""


@pytest.mark.parametrize("url", [name for name in STORES if name != "memory"], indirect=True)
def test_who_is_killed_leaves_a_snapshot_that_can_be_used(
    url: str, opened: Callable[..., Store], popen: Popen
) -> None:
    store = opened()
    StoredSession.begin("s", store, World())
    for lines in (9, 4, 1):
        env = {**os.environ, "PGAPPNAME": WORKER}
        command = [sys.executable, "-c", WORK, url]
        with popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            said_last = [process.stdout.readline() for _ in range(lines)][-1]
            process.kill()
        wait_for_the_dead(url)
        again = load("s", opened())
        assert again.seq >= int(said_last)
        assert is_light(again)
        assert shown(again) == shown(loaded_in_full("s", store))
