"""A service behind `BearerAuth`: ``service.py STORE_URL``. It says its port and ends with its stdin."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from typing import Any

import uvicorn

from harnpy.eventlog import StoreEventLog
from harnpy.eventlog.bearer import BearerSessions
from harnpy.eventlog.http import BearerAuth
from harnpy.storage import open_store


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Say who is calling."""
    if scope["type"] == "lifespan":
        return
    who = json.dumps([scope.get("auth_principal"), scope.get("auth_session_id") is not None])
    logging.getLogger("service").info(
        "%s %r", who, {key: scope[key] for key in scope if key.startswith("auth")}
    )
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "text": who})
        await send({"type": "websocket.close"})
    elif scope["path"] == "/broken":
        raise RuntimeError("the app failed")
    else:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": who.encode()})


class Server(uvicorn.Server):
    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        print(self.servers[0].sockets[0].getsockname()[1], flush=True)


async def serve(url: str) -> None:
    sessions = BearerSessions(StoreEventLog(open_store(url)))
    guarded = BearerAuth(app, sessions, static_keys={"a-static-key": "deploy"}, exempt=["/health"])
    server = Server(uvicorn.Config(guarded, port=0, lifespan="off", log_level="info"))
    running = asyncio.create_task(server.serve())
    await asyncio.to_thread(sys.stdin.read)
    server.should_exit = True
    await running


if __name__ == "__main__":
    logging.basicConfig(level=logging.DEBUG)
    asyncio.run(serve(sys.argv[1]))
