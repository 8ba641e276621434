"""The lease of a session that a runtime works on: kept for a moment, given away, lost (10 §C7.2, §C12)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from harnpy.session import EventDraft, SessionRuntime, Txn, leases
from harnpy.session.aio import AsyncSessionRuntime
from harnpy.session.leases import Leases
from harnpy.storage import Store
from harnpy.storage.errors import LeaseHeld, LeaseLost, StoreClosed
from harnpy.storage.leases import Lease
from tests.storage.conftest import STORES, Uptime, url_of
from tests.support import PATIENCE, wait_until

Opened = Callable[..., Store]
KEY = "session:s"


@pytest.fixture(params=[name for name in STORES if name != "memory"])
def url(request: pytest.FixtureRequest, tmp_path: Any) -> str:
    """The URL of an empty store that processes share."""
    return url_of(request.param, request, tmp_path)


@pytest.fixture
def runtime(opened: Opened) -> Iterator[SessionRuntime]:
    with SessionRuntime(opened()) as runtime:
        runtime.create(id="s")
        yield runtime


def say(text: str) -> Callable[[Txn], object]:
    return lambda session: session.append(EventDraft("message_added", {"role": "user", "content": text}))


def taken(store: Store) -> Lease:
    """Take the session's lease as soon as it is free, without asking for it."""
    while True:
        with suppress(LeaseHeld):
            return store.lease(KEY, "another")


class TestKept:
    def test_actions_in_a_row_take_it_once(
        self, runtime: SessionRuntime, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(leases, "IDLE", 3600)
        for number in range(5):
            runtime.execute("s", say(str(number)))
        with pytest.raises(LeaseHeld):
            runtime.store.lease(KEY)
        tokens = {held.lease.token for held in runtime._live.leases._held.values()}  # type: ignore[union-attr]
        assert len(tokens) == 1
        runtime.close()
        assert runtime.store.lease(KEY).token == tokens.pop() + 1

    def test_the_thread_ends_with_the_runtime(
        self, runtime: SessionRuntime, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(leases, "REST", 3600)
        runtime.execute("s", say("hello"))
        table = runtime._live.leases
        assert table is not None
        thread = table._thread
        assert thread is not None
        wait_until(lambda: not table._held)
        runtime.close()
        thread.join(PATIENCE)
        assert not thread.is_alive()

    def test_others_get_it_between_two_actions(
        self, runtime: SessionRuntime, opened: Opened, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(leases, "IDLE", 3600)
        with SessionRuntime(opened()) as other:
            for number in range(3):
                runtime.execute("s", say(f"a{number}"))
                other.execute("s", say(f"b{number}"))
            texts = [message["content"] for message in runtime.get("s").messages()]
        assert texts == ["a0", "b0", "a1", "b1", "a2", "b2"]

    def test_it_is_let_go_when_nothing_happens(
        self, runtime: SessionRuntime, opened: Opened, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(leases, "IDLE", 0)
        runtime.execute("s", say("a"))
        taken(opened()).release()

    def test_a_runtime_that_is_closed_waits_for_nobody(self, runtime: SessionRuntime, opened: Opened) -> None:
        lease = opened().lease(KEY, "another", wait=60)
        caught: list[BaseException] = []

        def wait() -> None:
            try:
                runtime.execute("s", say("a"))
            except StoreClosed as error:
                caught.append(error)

        waiting = threading.Thread(target=wait)
        waiting.start()
        while not lease.is_wanted():
            pass
        runtime.close()
        waiting.join()
        assert len(caught) == 1
        assert not lease.is_wanted()


def test_a_process_that_was_forked_off_has_none_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def token() -> int:
        line = (tmp_path / "store/leases/session%3As.json").read_text().splitlines()[0]
        return int(json.loads(line)["held"][1])

    monkeypatch.setattr(leases, "IDLE", 3600)
    with SessionRuntime(f"jsonl:{tmp_path}/store?durability=relaxed") as runtime:
        runtime.create(id="s")
        runtime.execute("s", say("parent"))
        first = token()
        child = os.fork()
        if not child:
            signal.alarm(60)
            try:
                runtime.execute("s", say("child"))
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        session = runtime.execute("s", say("parent"))
        assert [message["content"] for message in session.messages()] == ["parent", "child", "parent"]
        assert token() == first + 2


class TestLost:
    """``ttl`` is how often the lease is renewed, three times; the clock it ends by stands still."""

    @pytest.fixture
    def losing(self, opened: Opened, uptime: Uptime) -> Iterator[tuple[SessionRuntime, Callable[[], None]]]:
        """A runtime, and what gives the session's lease to somebody else."""
        other = opened(uptime)

        def lose() -> None:
            while True:
                uptime.passes(3600)
                with suppress(LeaseHeld):
                    other.lease(KEY, "another")
                    return

        with SessionRuntime(opened(uptime)) as runtime:
            runtime._live.leases = Leases(runtime.store, ttl=0.1)
            runtime.create(id="s")
            yield runtime, lose

    def test_the_action_is_cancelled(
        self, losing: tuple[SessionRuntime, Callable[[], None]], opened: Opened
    ) -> None:
        runtime, lose = losing

        async def act(session: Txn) -> None:
            session.append(EventDraft("turn_started", {"agent_id": "a"}))
            threading.Thread(target=lose).start()
            await asyncio.Event().wait()

        act.mode = "stream"  # type: ignore[attr-defined]
        with pytest.raises(LeaseLost, match="lease on session:s was lost to another") as lost:
            runtime.execute("s", act)
        assert isinstance(lost.value.__cause__, asyncio.CancelledError)
        # What the former owner would have written at the end, nobody has.
        with SessionRuntime(opened()) as reader:
            assert reader.get("s").events()[-1].type == "turn_started"

    def test_what_cannot_be_cancelled_writes_nothing_more(
        self, losing: tuple[SessionRuntime, Callable[[], None]]
    ) -> None:
        runtime, lose = losing

        def act(session: Txn) -> None:
            lose()
            say("late")(session)

        with pytest.raises(LeaseLost, match="lease on session:s was lost to another"):
            runtime.execute("s", act)
        assert runtime.get("s").messages() == []


def test_a_task_that_is_cancelled_waits_for_no_other_process(runtime: SessionRuntime, opened: Opened) -> None:
    lease = opened().lease(KEY, "another", wait=60)

    async def run() -> None:
        face = AsyncSessionRuntime(runtime)
        task = asyncio.create_task(face.execute("s", say("never")))
        while not lease.is_wanted():
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert not lease.is_wanted()
    lease.release()
    assert runtime.get("s").messages() == []
