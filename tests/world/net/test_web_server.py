"""Listening: what is left when whoever began it is stopped."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
import uvicorn

from harnpy.world.connections import Place
from harnpy.world.web_server import listen


async def application(scope: Any, receive: Any, send: Any) -> None:
    raise AssertionError("nobody sends a request")


def test_who_is_cancelled_before_it_listens_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    bound: list[socket.socket] = []
    startup = uvicorn.Server.startup

    async def run() -> None:
        reached = asyncio.Event()

        async def never_up(self: uvicorn.Server, sockets: list[socket.socket] | None = None) -> None:
            await startup(self, sockets)
            bound.extend(sockets or ())
            reached.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(uvicorn.Server, "startup", never_up)
        listening = asyncio.ensure_future(listen(application, Place("127.0.0.1", 0)))
        await reached.wait()
        listening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await listening
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())
    assert [each.fileno() for each in bound] == [-1]
