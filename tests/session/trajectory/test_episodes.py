"""Episodes on every store: kept by id, listed by session, found newest first (10 §A1.16, §C6)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from harnpy.session import Episode, EventRejected, InvalidArgument, SessionRuntime
from harnpy.session.aio import AsyncSessionRuntime
from harnpy.storage import Store
from harnpy.storage.errors import StorageError
from tests.session.conftest import opened, store, url

__all__ = ["opened", "store", "url"]


def episode(id: str, session: str, minute: int, said: str, *tools: str) -> Episode:
    calls = [{"tool": tool, "args": "{}", "result": "hidden"} for tool in tools]
    end = f"2026-01-01T00:{minute:02}:00.000000Z"
    return Episode(id, session, "helper", "2026-01-01T00:00:00.000000Z", end, said, calls, 0.5, {"n": minute})


def test_kept_by_id_listed_by_session_found_newest_first(opened: Callable[..., Store]) -> None:
    runtime, other = SessionRuntime(opened()), None
    one = episode("e1", "s", 5, "The parcel is at the door.", "look_up", "ship")
    two = episode("e2", "s", 1, "The PARCEL is lost.")
    three = episode("e3", "t/ä", 9, "No parcel: it was never shipped.", "look_up")
    for each in (one, two, three):
        runtime.save_episode(each)
    if not runtime.store.url.startswith("memory:"):
        other = SessionRuntime(opened())
    reader = other or runtime
    assert reader.episodes("s") == [one, two]
    assert reader.episodes("nobody") == []
    assert reader.search_episodes("parcel") == [three, one, two]
    assert reader.search_episodes("parcel", limit=2) == [three, one]
    assert reader.search_episodes('look_up "at the"') == [one]
    assert reader.search_episodes("hidden") == []
    changed = replace(one, conclusion="The parcel has arrived.")
    reader.save_episode(changed)
    assert runtime.episodes("s") == [changed, two]
    assert runtime.search_episodes("door") == []
    assert runtime.search_episodes("arrived parcel") == [changed]
    with pytest.raises(StorageError, match="a search needs at least one word"):
        runtime.search_episodes(" ")
    assert [info.id for info in runtime.list().items] == []
    assert runtime.store.fsck().clean


def test_what_cannot_be_kept() -> None:
    with SessionRuntime("memory:") as runtime:
        with pytest.raises(InvalidArgument, match="an episode is what `distill` returns, got dict"):
            runtime.save_episode({})  # type: ignore[arg-type]
        bad = replace(episode("e", "s", 1, ""), metadata={"x": float("nan")})
        with pytest.raises(EventRejected, match="data is not JSON: NaN at /metadata/x"):
            runtime.save_episode(bad)
        kept = episode("e", "s", 1, "x")
        runtime.save_episode(kept)
        kept.metadata["n"] = 2
        assert runtime.episodes("s")[0].metadata == {"n": 1}


def test_on_a_loop() -> None:
    async def run() -> list[Any]:
        async with AsyncSessionRuntime("memory:") as face:
            await face.save_episode(episode("e", "s", 1, "said"))
            return [await face.episodes("s"), await face.search_episodes("said", limit=1)]

    assert asyncio.run(run()) == [[episode("e", "s", 1, "said")]] * 2


def test_what_is_deleted_for_good_takes_its_episodes_along(store: Store) -> None:
    runtime = SessionRuntime(store)
    runtime.create(id="s")
    runtime.save_episode(episode("e1", "s", 1, "The parcel is lost."))
    runtime.delete("s")
    assert len(runtime.episodes("s")) == 1
    runtime.delete("s", hard=True)
    assert runtime.episodes("s") == runtime.search_episodes("parcel") == []
