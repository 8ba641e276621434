"""Sessions on asyncio: watches, observers, branches, artifacts (10 §C2, §C10)."""

from __future__ import annotations

import asyncio
from pathlib import Path

from harnpy.session import drafts, messages
from harnpy.session.aio import AsyncSessionRuntime
from harnpy.session.artifacts import Artifact, FileArtifactStore
from harnpy.storage import Store


def test_a_watch_is_an_async_iterator(store: Store) -> None:
    async def run() -> None:
        async with AsyncSessionRuntime(store) as runtime:
            session = await runtime.create(id="s")
            async with session.watch(after=0, types=["message_added"]) as watch:
                assert session.has_watchers
                assert await watch.next(timeout=0) is None
                waiting = asyncio.create_task(anext(watch))
                await asyncio.sleep(0)
                waiting.cancel()
                await session.append(drafts.user("a"), drafts.user("b"))
                found = [await anext(watch), await watch.next(timeout=30)]
                assert [event and event.data["content"] for event in found] == ["a", "b"]
                assert (await watch.next(timeout=0), watch.dropped) == (None, 0)
            assert watch.closed
            assert [event async for event in watch] == []
            assert not session.has_watchers

    asyncio.run(run())


def test_a_loop_ends_although_somebody_watches() -> None:
    async def run() -> None:
        runtime = AsyncSessionRuntime("memory:")
        watch = (await runtime.create(id="s")).watch()
        waiting = asyncio.create_task(watch.next())
        await asyncio.sleep(0)
        assert not waiting.done()

    asyncio.run(run())


def test_what_else_a_session_does(tmp_path: Path) -> None:
    async def run() -> None:
        async with AsyncSessionRuntime("memory:") as runtime:
            session = await runtime.create(id="s", seed=[messages.user("a")])
            seen: list[str] = []
            state = session.attach_reducer(lambda state, event: {"last": event.type})
            stop = session.observe(lambda event: seen.append(event.type))
            first = (await session.events(types=["message_added"]))[0]
            await session.append_user("b")
            await session.move_leaf(first.id, "gone")
            stop()
            assert seen == ["message_added", "leaf_moved", "branch_summary"]
            assert (await state(), session.state) == ({"last": "branch_summary"},) * 2
            assert [event.seq for event in await session.branch(first.id)] == [1, 2]
            assert (await session.info()).seq == 5
            await session.wait_started("x")
            assert session.is_waiting
            kept = await session.store_artifact(FileArtifactStore(str(tmp_path)), Artifact(id="a"), b"body")
            assert kept.size == 4
            assert await session.tool_fence("k") == "execute"
            assert await session.resize("trim", keep_last=1) is not None
            assert (session.context_window, await session.turns()) == (await session.messages(), [])
            child = await runtime.create(id="c", parent=session)
            assert (await child.info()).parent_id == "s"
            text = await runtime.export("s")
            found = await runtime.import_(text, "jsonl", id="again")
            assert found is not None
            assert await found.history() == await session.history()

    asyncio.run(run())
