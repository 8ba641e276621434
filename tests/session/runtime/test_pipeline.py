"""The ten steps of an action: their order, and what a failure at each of them leaves (10 §C7, §A3.3)."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from harnpy.session import EventBus, EventDraft, SessionRuntime, Txn
from harnpy.session.aio import AsyncSessionRuntime
from harnpy.session.live import LiveSessions
from harnpy.session.stored import StoredSession
from harnpy.storage import Store, open_store
from harnpy.storage.errors import StoreFull
from tests.counts import COUNT

EVENTS = {3: "session_loaded", 7: "session_action_executed", 10: "session_saved"}
HOOKS = {2: "after_load", 5: "after_action", 6: "before_save", 9: "after_save"}
SUCCESS = [
    "after_load",
    "session_loaded",
    "act",
    "after_action",
    "before_save",
    "session_action_executed",
    "after_save",
    "session_saved",
]
#: What is heard when a step fails. A listener that fails (3, 7, 10) changes nothing.
HEARD = {
    None: SUCCESS,
    1: ["session_load_failed"],
    2: ["after_load", "session_load_failed"],
    3: SUCCESS,
    4: ["after_load", "session_loaded", "act"],
    5: ["after_load", "session_loaded", "act", "after_action"],
    6: ["after_load", "session_loaded", "act", "after_action", "before_save"],
    7: SUCCESS,
    8: [*SUCCESS[:6], "session_save_failed"],
    9: [*SUCCESS[:7], "session_save_failed"],
    10: SUCCESS,
}


class Boom(Exception):
    pass


class Recorder:
    """A hook, a listener and an action that note what they are called for, and fail at one step."""

    def __init__(self, step: int | None, *, streams: bool, is_async: bool) -> None:
        self.heard: list[str] = []
        self.payloads: list[dict[str, Any]] = []
        self.name, self.mode = "act", "stream" if streams else "atomic"
        self.step = step
        self._is_async = is_async

    def hook(self, stage: str, txn: Txn) -> Any:
        def run() -> None:
            self.heard.append(stage)
            if stage != "after_save":
                txn.append(message(stage))
            self._fail(stage == HOOKS.get(self.step or 0))

        return self._given(run)

    def listener(self, name: str, data: dict[str, Any]) -> None:
        self.heard.append(name)
        self.payloads.append(data)
        self._fail(name == EVENTS.get(self.step or 0))

    def __call__(self, txn: Txn) -> Any:
        def run() -> None:
            self.heard.append("act")
            if self.mode == "stream":
                turn = txn.append(EventDraft("turn_started", {"agent_id": "a"}))[0]
                txn.append(message("said", turn=turn))
                self._fail(self.step == 4)
                end = {"agent_id": "a", "steps": 1, "turn_stop_reason": "completed"}
                txn.append(EventDraft("turn_completed", end, turn=turn))
            else:
                txn.append(message("said"))
                self._fail(self.step == 4)

        return self._given(run)

    def _given(self, run: Callable[[], None]) -> Any:
        async def later() -> None:
            await asyncio.sleep(0)
            run()

        return later() if self._is_async else run()

    def _fail(self, condition: bool) -> None:
        if condition:
            raise Boom


def message(text: str, **more: Any) -> EventDraft:
    return EventDraft("message_added", {"role": "user", "content": text}, **more)


def facts(store: Store) -> Any:
    """All that the store has of the session."""
    with SessionRuntime(store) as runtime:
        session = runtime.get("s")
        return runtime.info("s"), [(event.id, event.type, event.data) for event in session.events()]


def execute(store: Store, recorder: Recorder, face: str) -> None:
    events = EventBus()
    events.on("*", recorder.listener)
    runtime = SessionRuntime(store, hooks=recorder.hook, events=events)
    if face == "sync":
        with runtime:
            runtime.execute("s", recorder)
        return

    async def run() -> None:
        async with AsyncSessionRuntime(runtime) as face:
            await face.execute("s", recorder)

    asyncio.run(run())


@pytest.mark.parametrize("callables", ["sync", "async"])
@pytest.mark.parametrize("face", ["sync", "async"])
@pytest.mark.parametrize("mode", ["atomic", "stream"])
@pytest.mark.parametrize("step", [None, *range(1, 11)])
def test_each_step_in_its_order_and_what_its_failure_leaves(
    step: int | None, mode: str, face: str, callables: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store("memory:")
    with SessionRuntime(store) as runtime:
        runtime.create("agent", id="s")
    before = facts(store)
    recorder = Recorder(step, streams=mode == "stream", is_async=callables == "async")
    run_failing(store, recorder, face, monkeypatch)
    assert recorder.heard == HEARD[step]
    after = facts(store)
    texts = [data["content"] for _, type, data in after[1] if type == "message_added"]
    if step in (None, 3, 7, 9, 10):
        assert texts == ["after_load", "said", "after_action", "before_save"]
        assert (before[0].revision, after[0].revision) == (1, 2)
        assert after[1][-1][1] == "action_executed"
    elif mode == "atomic" or step in (1, 2):
        assert after == before
    else:  # what streamed stays, and its turn has an end
        assert texts == ["after_load", "said"]
        assert after[1][-1][1:] == (
            "turn_completed",
            {
                "agent_id": "a",
                "steps": 0,
                "turn_stop_reason": "failed",
                "error": "Boom" if step != 8 else str(StoreFull("memory:")),
            },
        )
        assert (after[0].revision, after[0].execution) == (2, "failed")


#: Steps whose failure leaves the store as it was. A stream action has stored its begin in step 4.
LEAVE_NOTHING = [*(("atomic", step) for step in (1, 2, 4, 5, 6, 8)), ("stream", 1), ("stream", 2)]


@pytest.mark.parametrize(("mode", "step"), LEAVE_NOTHING)
def test_a_step_that_fails_leaves_the_bytes_of_the_store(
    mode: str, step: int, store: Store, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SessionRuntime(store) as runtime:
        runtime.create("agent", id="s", seed={"content": "before"})
    faces = [("sync", False), ("async", True)] if COUNT.campaign else [("sync", False)]
    for face, is_async in faces:
        before = contents(url)
        run_failing(store, Recorder(step, streams=mode == "stream", is_async=is_async), face, monkeypatch)
        assert contents(url) == before
    execute(store, Recorder(None, streams=False, is_async=False), "sync")
    assert store.url == "memory:" or contents(url) != before


def run_failing(store: Store, recorder: Recorder, face: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Execute the recorder, which raises what its step does."""
    step = recorder.step
    with monkeypatch.context() as patch:
        if step == 1:
            patch.setattr(LiveSessions, "load", failing)
        if step == 8:
            store_events = StoredSession._store

            def full(session: StoredSession, events: Any, seen: int) -> None:
                if any(event.type == "action_executed" for event in events):
                    raise StoreFull("memory:")
                store_events(session, events, seen)

            patch.setattr(StoredSession, "_store", full)
        if step in (1, 2, 4, 5, 6, 8, 9):
            with pytest.raises(StoreFull if step == 8 else Boom):
                execute(store, recorder, face)
        else:
            execute(store, recorder, face)


def contents(url: str) -> Any:
    """What the medium of a store holds, but for leases and locks."""
    scheme, _, place = url.partition(":")
    place = place.partition("?")[0]
    if scheme == "jsonl":
        files = [file for file in Path(place).rglob("*") if file.is_file() and file.suffix != ".lock"]
        return {file: file.read_bytes() for file in files if file.parent.name != "leases"}
    if scheme == "sqlite":
        with closing(sqlite3.connect(place)) as database:
            found = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            return rows_of(lambda query: database.execute(query).fetchall(), [name for (name,) in found])
    if scheme == "postgresql":
        import psycopg

        with psycopg.connect(url) as connection:
            tables = connection.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = 'harn'"
            ).fetchall()
            names = [f"harn.{name}" for (name,) in tables]
            return rows_of(lambda query: connection.execute(query).fetchall(), names)  # type: ignore[arg-type]
    return None


def rows_of(select: Callable[[str], list[Any]], tables: list[str]) -> dict[str, list[str]]:
    lasting = [name for name in tables if name.rpartition(".")[2] not in ("leases", "tickets")]
    return {name: sorted(map(repr, select(f"SELECT * FROM {name}"))) for name in lasting}


def failing(sessions: LiveSessions, id: str) -> None:
    raise Boom


def test_what_the_events_say(store: Store) -> None:
    recorder = Recorder(None, streams=False, is_async=False)
    with SessionRuntime(store) as runtime:
        runtime.create("agent", id="s")
    execute(store, recorder, "sync")
    loaded, executed, saved = recorder.payloads
    assert loaded == {"session_id": "s", "revision": 1, "seq": 1, "status": "active"}
    assert executed == {
        "session_id": "s",
        "action": "act",
        "before_revision": 1,
        "after_revision": 2,
        "before_status": "active",
        "after_status": "active",
    }
    assert saved == {"session_id": "s", "revision": 2, "seq": 6, "status": "active"}
