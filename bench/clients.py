"""How long do the requests of good clients take while most of the others are slow or gone?

    python bench/clients.py [--rounds N] [--seconds S] [--check]

200 good clients make a request now and then, each with a token of its own. 300 others are of three kinds:
gone (they send a request and leave), slow (a body arrives byte by byte), silent (half a head and no more). A
row is the 95th percentile of the good ones' times beside the others, as a multiple of the same without them;
the median of the rounds. The server runs in a process of its own, on 127.0.0.1: an application behind
`BearerAuth` with its tokens in SQLite, and a Harn file served to MCP clients by HTTP.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import NamedTuple

from options import parser

GOOD, OTHERS = 200, 300
#: Seconds between a client's requests; how long a silent or slow client waits for the server to end it.
EVERY, LONGEST = 4.0, 60.0
#: The 95th percentile beside the others must be at most so many times that without them.
MUST = 3.0

BEARER = """
import asyncio, sys, uvicorn
from datetime import UTC, datetime, timedelta
from harnpy.eventlog import StoreEventLog
from harnpy.eventlog.bearer import BearerSessions, CreateSession
from harnpy.eventlog.http import BearerAuth
from harnpy.storage import open_store

async def app(scope, receive, send):
    while (await receive()).get("more_body"):
        pass
    await asyncio.sleep(0.005)
    body = scope["auth_principal"].encode()
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})

class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        print(self.servers[0].sockets[0].getsockname()[1], *tokens, flush=True)

sessions = BearerSessions(StoreEventLog(open_store("sqlite:" + sys.argv[1] + "/events.db")))
now = datetime.now(UTC)
day = timedelta(days=1)
made = (CreateSession(f"client {n}", now + day, created_at=now - day) for n in range(COUNT))
tokens = [str(sessions.create(each).id) for each in made]
config = uvicorn.Config(BearerAuth(app, sessions), port=0, lifespan="off", log_config=None, http="h11")
asyncio.run(Server(config).serve())
"""

MCP = """
import asyncio, sys
from functools import partial
from pathlib import Path
from harnpy import Vm, World
from harnpy.serve.mcp_http import serve_http
from harnpy.serve.site import Site
from harnpy.serve.mcp_server import serve

path = Path(sys.argv[1]) / "served.harn"
path.write_text("pub fn add(a: int, b: int) -> int { sleep(5); return a + b }")
keys = tuple(f"key-{n}" for n in range(COUNT))
site = Site("127.0.0.1", 0, keys=keys)

def announce(url):
    print(url.rpartition(":")[2].partition("/")[0], *keys, flush=True)

http = partial(serve_http, site=site, listening=World().listening, announce=announce)
asyncio.run(serve(Vm(), str(path), http))
"""


class Service(NamedTuple):
    """How a request is written, and how much of a response shows that it is the right one."""

    program: str
    head: str
    body: bytes
    right: bytes

    def request(self, token: str) -> tuple[bytes, bytes]:
        lines = self.head.format(token=token, length=len(self.body)).strip().splitlines()
        return "\r\n".join([*lines, "Connection: close", "", ""]).encode(), self.body


_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
_CALL = {"name": "add", "arguments": {"a": 40, "b": 2}, "_meta": _META}

SERVICES = {
    "behind BearerAuth": Service(
        BEARER,
        "POST / HTTP/1.1\nHost: 127.0.0.1\nAuthorization: Bearer {token}\nContent-Length: {length}",
        b"x" * 200,
        b"client",
    ),
    "mcp serve, by HTTP": Service(
        MCP,
        """
POST /mcp HTTP/1.1
Host: 127.0.0.1
Authorization: Bearer {token}
MCP-Protocol-Version: 2026-07-28
Mcp-Method: tools/call
Mcp-Name: add
Content-Type: application/json
Accept: application/json, text/event-stream
Content-Length: {length}
""",
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": _CALL}).encode(),
        b"42",
    ),
}

Visit = Callable[[int, tuple[bytes, bytes]], Awaitable[None]]


class Times:
    """What the requests of good clients take; those that are still running count as if they ended now."""

    def __init__(self) -> None:
        self.ended: list[float] = []
        self._running: set[float] = set()

    async def good(self, port: int, request: tuple[bytes, bytes], right: bytes) -> None:
        begin = perf_counter()
        self._running.add(begin)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"".join(request))
        answer = await reader.read()
        writer.close()
        if not answer.startswith(b"HTTP/1.1 200 ") or right not in answer:
            raise AssertionError(f"the request went wrong: {answer!r}")
        self._running.discard(begin)
        self.ended.append(perf_counter() - begin)

    def p95(self) -> float:
        now = perf_counter()
        return quantiles([*self.ended, *(now - begin for begin in self._running)], n=20)[-1]


async def gone(port: int, request: tuple[bytes, bytes]) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"".join(request))
    await writer.drain()
    await asyncio.sleep(0)
    writer.transport.abort()


async def slow(port: int, request: tuple[bytes, bytes]) -> None:
    head, body = request
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head)
    for byte in body:
        writer.write(bytes((byte,)))
        await writer.drain()
        await asyncio.sleep(LONGEST / len(body))
    writer.close()


async def silent(port: int, request: tuple[bytes, bytes]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request[0][:20])
    async with asyncio.timeout(LONGEST):
        await reader.read()
    writer.close()


async def visits(port: int, visit: Visit, request: tuple[bytes, bytes], first: float) -> None:
    """Make a visit every so often, from a client's first one on, until this is cancelled."""
    await asyncio.sleep(first)
    while True:
        begin = perf_counter()
        # The server ends the connections of slow clients; they try again.
        with suppress(ConnectionError):
            await visit(port, request)
        await asyncio.sleep(max(0.0, EVERY - (perf_counter() - begin)))


async def p95(port: int, service: Service, tokens: list[str], others: int, seconds: float) -> float:
    """Return the 95th percentile of the good clients' times beside so many others."""
    times = Times()
    kinds = [*[partial(times.good, right=service.right)] * GOOD, *([gone, slow, silent] * OTHERS)[:others]]
    running = [
        asyncio.create_task(visits(port, kind, service.request(token), EVERY * n / len(kinds)))
        for n, (kind, token) in enumerate(zip(kinds, tokens, strict=False))
    ]
    # Each has come once before anything is measured.
    await asyncio.sleep(EVERY)
    times.ended.clear()
    done, _ = await asyncio.wait(running, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    found = times.p95()
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    for task in done:
        task.result()
    return found


def measured(service: Service, rounds: int, seconds: float) -> tuple[float, float]:
    """Return the percentile alone, in seconds, and how many times it is beside the others."""
    program = service.program.replace("COUNT", str(GOOD + OTHERS))
    with (
        tempfile.TemporaryDirectory() as directory,
        subprocess.Popen(
            [sys.executable, "-c", program, directory], stdout=subprocess.PIPE, text=True
        ) as process,
    ):
        try:
            assert process.stdout is not None
            port, *tokens = process.stdout.readline().split()
            run = partial(p95, int(port), service, tokens, seconds=seconds)
            pairs = [(asyncio.run(run(others=0)), asyncio.run(run(others=OTHERS))) for _ in range(rounds)]
        finally:
            process.kill()
    return median(alone for alone, _ in pairs), median(beside / alone for alone, beside in pairs)


def main() -> int:
    options = parser(__doc__, 3)
    options.add_argument(
        "--seconds", type=float, default=8.0, help="how long each half of a round is measured"
    )
    given = options.parse_args()
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[1])
    missed = False
    print(f"p95 of {GOOD} good clients beside {OTHERS} that are slow or gone")
    for name, service in SERVICES.items():
        alone, ratio = measured(service, given.rounds, given.seconds)
        missed |= ratio > MUST
        print(f"{name:20} alone {alone * 1000:6.1f} ms   beside {ratio:5.2f} x   must {MUST:.1f} x")
    return int(missed and given.check)


if __name__ == "__main__":
    sys.exit(main())
