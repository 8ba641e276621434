"""Resizes by a runtime: once an action, before the save; its settings; what it tells. Spec: 10 §C7, §C8."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harnpy.session import SessionRuntime, Txn
from harnpy.session import events as kinds
from harnpy.session.aio import AsyncSessionRuntime
from harnpy.session.resize_policy import ResizePolicy
from harnpy.storage import Store
from tests.session.shapes import said

TALK = [said("user", f"message {number}") for number in range(4)]


def told(runtime: SessionRuntime) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name in ("session_resized", "session_saved"):
        runtime.events.on(
            name, lambda name, data: found.append((name, data.get("strategy", data.get("seq"))))
        )
    return found


def test_an_action_is_resized_once_with_its_save(store: Store) -> None:
    runtime = SessionRuntime(store, settings={"session.max_length": 80})
    session = runtime.create(id="s")
    heard = told(runtime)

    def act(txn: Txn) -> None:
        for message in TALK:
            txn.add_history(message)
        assert txn.length == 4, "not before the end"

    runtime.execute("s", act)
    assert session.messages() == TALK[2:]
    assert session.history() == TALK
    assert session.revision == 2
    types = [event.type for event in session.events(1)]
    cut = [kinds.COMPACTION_STARTED, kinds.COMPACTION_TRIGGERED]
    assert types == [kinds.MESSAGE_ADDED] * 4 + cut + [kinds.ACTION_EXECUTED]
    assert heard == [("session_resized", "simple_cut"), ("session_saved", session.seq)]
    seq = session.seq
    runtime.execute("s", lambda txn: txn.set_memo("tea"))
    assert session.seq == seq + 2, "the history is as it was"


def test_a_direct_change_is_resized_at_once(store: Store) -> None:
    runtime = SessionRuntime(store, settings={"max_length": 80})
    session, other = runtime.create(id="s"), runtime.create(id="o")
    heard = told(runtime)
    session.add_history(TALK)
    assert session.messages() == TALK[2:]
    assert heard == [("session_resized", "simple_cut")]
    runtime.settings["max_length"] = 40
    session.append_user("message 5")
    assert session.messages() == [said("user", "message 5")]
    session.set("settings.max_length", 10**4)
    for each in (session, other):
        each.set_history(TALK)
    assert (session.length, other.length) == (4, 1)
    assert runtime.open("s").settings["max_length"] == 10**4


def test_a_failing_strategy(store: Store) -> None:
    """An action goes on without it, unless the window is over the hard limit."""

    async def fails(*_: Any) -> Any:
        await asyncio.sleep(0)
        raise ValueError("no")

    policy = ResizePolicy().strategy("mine", fails).on_analyze(lambda *_: "mine")
    runtime = SessionRuntime(store, resize=policy)
    session = runtime.create(id="s")
    errors: list[Any] = []
    runtime.events.on("session_resized", lambda _, data: errors.append(data["error"]))
    with pytest.warns(UserWarning, match="could not be resized: no$"):
        runtime.execute("s", lambda txn: txn.add_history(TALK))
    assert (session.messages(), session.revision, errors) == (TALK, 2, ["no"])
    policy.hard_limit_tokens = 1
    with pytest.raises(ValueError, match=r"^no$"):
        runtime.execute("s", lambda txn: txn.add_history(TALK))
    assert (session.messages(), session.revision, errors) == (TALK, 2, ["no", "no"])


def test_async_handlers_in_the_async_face(store: Store) -> None:
    async def halve(full: Any, window: Any, memo: Any, settings: Any) -> Any:
        await asyncio.sleep(0)
        return None, window[len(window) // 2 :], {"said": len(full)}

    policy = ResizePolicy().strategy("halve", halve)
    policy.on_analyze(lambda full, window, *_: "halve" if len(window) > 3 else None)
    runtime = SessionRuntime(store, resize=policy)

    async def main() -> None:
        face = AsyncSessionRuntime(runtime)
        session = await face.create(id="s")
        await face.execute("s", lambda txn: txn.add_history(TALK))
        assert (await session.messages(), session.memo) == (TALK[2:], {"said": 4})
        await session.add_history([*TALK])
        assert (await session.messages(), session.memo) == (TALK[1:], {"said": 8})

    asyncio.run(main())
    runtime.close()
