"""A door in front of an application that says whom it was called by, and requests to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, NamedTuple

from harnpy.eventlog.bearer import BearerSessions, CreateSession, utc_now
from harnpy.eventlog.contract import EventLog
from harnpy.eventlog.topics import memory_log
from harnpy.serve.door import Door
from harnpy.serve.site import Site

HOST = "127.0.0.1:4721"
ORIGIN = f"http://{HOST}"


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def code(self) -> str:
        """The code of its error."""
        return json.loads(self.body)["error"]["code"]


async def hello(scope: Any, receive: Any, send: Any) -> None:
    """Read the body and answer with the caller."""
    size = 0
    while True:
        message = await receive()
        size += len(message.get("body", b""))
        if not message.get("more_body"):
            break
    caller = scope.get("harnpy.caller")
    body = f"{caller and caller.principal} {size}".encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


class Asked:
    """A door and the sessions that it knows. To be made in a loop."""

    def __init__(
        self, app: Any = hello, site: Site | None = None, log: EventLog | None = None, **options: Any
    ) -> None:
        self.log = memory_log() if log is None else log
        self.sessions = BearerSessions(self.log)
        self.site = Site("127.0.0.1", 4721) if site is None else site
        self.door = Door(app, self.site, self.sessions, **options)

    def token(self, principal: str, **attributes: Any) -> str:
        request = CreateSession(principal, utc_now() + timedelta(days=1), attributes=attributes)
        return str(self.sessions.create(request).id)

    async def ask(self, method: str, target: str, *parts: bytes, http: Any = None, **headers: str) -> Reply:
        """Send a request; headers by their names with `_`. ``host`` is the server's unless given."""
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        scope = request(method, target, {"host": HOST, **headers})
        await (http or self.door)(scope, arriving(parts), send)
        body = b"".join(message.get("body", b"") for message in sent[1:])
        found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return Reply(sent[0]["status"], found, body)


def request(method: str, target: str, headers: dict[str, str]) -> dict[str, Any]:
    path, _, query = target.partition("?")
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {
        "type": "http",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": pairs,
        "client": ("127.0.0.1", 5),
        "server": ("127.0.0.1", 4721),
    }


def arriving(parts: tuple[bytes, ...]) -> Any:
    """A body that arrives in parts, and a client that stays."""

    def messages() -> Iterator[dict[str, Any]]:
        for number, part in enumerate(parts or (b"",), 1):
            yield {"type": "http.request", "body": part, "more_body": number < len(parts)}

    left = messages()

    async def receive() -> Any:
        message = next(left, None)
        if message is None:
            await asyncio.get_running_loop().create_future()
        return message

    return receive
