"""The runtime on asyncio: the same calls as coroutines, and what a cancellation leaves (10 §C7.2)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from harnpy.session import EventDraft, Session, SessionBusy, SessionNotFound, SessionRuntime, Txn
from harnpy.session.aio import AsyncSession, AsyncSessionRuntime
from harnpy.storage import Store


def said(text: str) -> EventDraft:
    return EventDraft("message_added", {"role": "user", "content": text})


async def texts(session: AsyncSession) -> list[str]:
    return [message["content"] for message in await session.messages()]


def test_the_calls_are_those_of_the_sync_runtime(store: Store) -> None:
    async def run() -> None:
        async with AsyncSessionRuntime(store) as runtime:
            session = await runtime.create("helper", id="s", seed={"content": "a"}, metadata={"k": 1})
            await session.append(said("b"))
            await session.set_memo("m")
            child = await session.fork("c", at=2, label="l")
            assert (await texts(child), child.metadata) == (["a"], {})
            assert (session.id, session.revision, session.memo) == ("s", 3, "m")
            assert await runtime.exists("s")
            assert (await runtime.open("s")).session is session.session
            assert [info.id for info in await runtime.lineage("c")] == ["s", "c"]
            assert [info.id for info in await runtime.children("s")] == ["c"]
            assert {info.id for info in (await runtime.list()).items} == {"s", "c"}
            assert [hit.seq for hit in await runtime.search("b", "s")] == [4]
            stored = await runtime.create(AsyncSession(Session("alone")))
            assert stored.revision == 1
            await runtime.delete("c")
            assert (await runtime.info("c")).status == "deleted"
            assert await runtime.evict("c")
            with pytest.raises(SessionNotFound):
                await runtime.get("no")

    asyncio.run(run())


def test_each_method_of_a_session_is_there() -> None:
    for name in vars(AsyncSession):
        if not name.startswith("_") and name != "session":
            assert hasattr(Session, name), name


def test_actions_on_one_session_wait_for_each_other_and_others_go_on(store: Store) -> None:
    async def run() -> None:
        async with AsyncSessionRuntime(store) as runtime:
            await runtime.create(id="s")

            async def add(session: Txn) -> None:
                count = session.get("metadata.n", 0)
                await asyncio.sleep(0)
                session.set("metadata.n", count + 1)

            await asyncio.gather(*(runtime.execute("s", add) for _ in range(10)))
            assert (await runtime.get("s")).metadata == {"n": 10}

    asyncio.run(run())


def test_an_action_inside_an_action_of_the_same_session_is_refused() -> None:
    async def run() -> None:
        async with AsyncSessionRuntime("memory:") as runtime:
            await runtime.create(id="s")

            async def again(session: Txn) -> None:
                await runtime.execute("s", lambda session: None)

            with pytest.raises(SessionBusy):
                await runtime.execute("s", again)

    asyncio.run(run())


def test_an_async_call_inside_another_one_of_the_sync_runtime_is_refused() -> None:
    with SessionRuntime("memory:") as runtime:
        runtime.create(id="s")
        runtime.create(id="t")

        async def act(session: Txn) -> None:
            session.set_memo(1)

        async def outer(session: Txn) -> None:
            runtime.execute("t", act)

        with pytest.raises(SessionBusy, match=r"use harnpy\.session\.aio"):
            runtime.execute("s", outer)
        assert runtime.execute("t", act).memo == 1


class Slow:
    """An action that writes, tells so, and waits until it is cancelled."""

    name = "slow"

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.waits = asyncio.Event()
        self.left = False

    async def __call__(self, txn: Txn) -> None:
        if self.mode == "stream":
            turn = txn.append(EventDraft("turn_started", {"agent_id": "a"}))[0]
            call = {"id": "c", "function": {"name": "f", "arguments": "{}"}}
            data = {"role": "assistant", "content": "", "tool_calls": [call]}
            txn.append(EventDraft("message_added", data, turn=turn))
        else:
            txn.append(said("never"))
        self.waits.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.left = True


def cancelled(store: Store, mode: str, follow: Callable[[AsyncSessionRuntime], Any]) -> None:
    async def run() -> None:
        async with AsyncSessionRuntime(store) as runtime:
            await runtime.create(id="s")
            slow = Slow(mode)
            task = asyncio.create_task(runtime.execute("s", slow))
            await slow.waits.wait()
            waiting = asyncio.create_task(runtime.execute("s", lambda session: session.set_memo(1)))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert slow.left
            await waiting
            await follow(runtime)

    asyncio.run(run())


def test_a_cancelled_atomic_action_stores_nothing(store: Store) -> None:
    async def follow(runtime: AsyncSessionRuntime) -> None:
        session = await runtime.get("s")
        assert (await texts(session), session.memo, session.revision) == ([], 1, 2)

    cancelled(store, "atomic", follow)


def test_an_action_that_is_cancelled_in_the_last_hook_before_the_save_stores_nothing() -> None:
    async def run() -> None:
        loop, reached = asyncio.get_running_loop(), asyncio.Event()

        def hook(stage: str, session: Txn) -> None:
            if session.memo != "new" or stage != "before_save":
                return
            loop.call_soon_threadsafe(reached.set)
            while True:  # a hook that takes no notice of being cancelled, and ends behind that
                try:
                    session.caller.check()
                except asyncio.CancelledError:
                    return

        async with AsyncSessionRuntime("memory:", hooks=hook) as runtime:
            session = await runtime.create(id="s")
            task = asyncio.create_task(runtime.execute("s", lambda txn: txn.set_memo("new")))
            await reached.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (session.revision, session.memo) == (1, None)

    asyncio.run(run())


def test_the_turn_of_a_cancelled_stream_ends(store: Store) -> None:
    async def follow(runtime: AsyncSessionRuntime) -> None:
        events = await (await runtime.get("s")).events()
        kinds = [event.type for event in events]
        assert kinds[1:6] == [
            "turn_started", "message_added", "tool_completed", "message_added", "turn_completed",
        ]  # fmt: skip
        assert events[5].data["turn_stop_reason"] == "cancelled"

    cancelled(store, "stream", follow)


def test_who_is_cancelled_while_waiting_leaves_the_queue() -> None:
    async def run() -> None:
        async with AsyncSessionRuntime("memory:") as runtime:
            await runtime.create(id="s")
            slow = Slow("atomic")
            task = asyncio.create_task(runtime.execute("s", slow))
            await slow.waits.wait()
            waiting = asyncio.create_task(runtime.execute("s", lambda session: session.set_memo(1)))
            while not runtime.runtime._live.lanes.waiting("s"):
                await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            task.cancel()
            await asyncio.wait([task])
            assert (await runtime.get("s")).revision == 1

    asyncio.run(run())
