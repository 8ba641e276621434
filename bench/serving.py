"""What does `harnpy serve` cost beside a bare handler, what do watchers hold, how soon do they see an event?

    python bench/serving.py [--rounds N] [--requests N] [--watchers N] [--sessions N] [--seconds N] [--check]

Requests of a session's window, over kept connections, beside a bare Starlette handler that returns the
same bytes: on the same server (uvicorn), each in a process of its own, in turns; a row is the median of the
rounds.
Then the memory of the server with idle watchers, and the time from an event to those who watch it: so many
sessions, each with a watcher and ten messages a second, by the 95th percentile.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

from options import environment, parser
from storage import Report

#: Connections at once, and events a second of a session.
CLIENTS, RATE = 16, 10
#: Of a bare handler's requests; MB with 500 idle watchers; ms to the 95th percentile.
SHARE, HELD, SOON = 0.7, 300, 100
KEY = "bench"
MESSAGES = 40

BARE = """
import sys, uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

body = open(sys.argv[1], "rb").read()

async def window(request):
    return Response(body, media_type="application/json")

app = Starlette(routes=[Route("/v1/sessions/{id}/window", window)])
config = uvicorn.Config(app, port=0, log_config=None, lifespan="off")
server = uvicorn.Server(config)
bound = server._log_started_message
server._log_started_message = lambda listeners: print(
    f"at http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/", file=sys.stderr, flush=True
)
server.run()
"""


@contextmanager
def server(*command: str) -> Iterator[tuple[int, int]]:
    """A server in a process of its own: its port and its process."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment())
    try:
        assert process.stderr is not None
        for line in process.stderr:
            found = re.search(r"at https?://[\d.]+:(\d+)/", line)
            if found:
                yield int(found[1]), process.pid
                return
        raise SystemExit("the server did not begin")
    finally:
        process.terminate()
        process.communicate()


def harnpy(store: str) -> tuple[str, ...]:
    options = ("--store", store, "--bind", "127.0.0.1:0", "--api-key", KEY, "--grace", "0")
    return (sys.executable, "-m", "harnpy", "serve", *options)


class Connection:
    """HTTP/1.1 over one kept connection: as little of a client as will do."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def ask(self, method: str, path: str, body: object = None) -> tuple[int, bytes]:
        data = b"" if body is None else json.dumps(body).encode()
        self.send(method, path, data)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head.lower())
        return int(head.split(b" ", 2)[1]), await self._reader.readexactly(int(length[1]) if length else 0)

    def send(self, method: str, path: str, data: bytes = b"", accept: str = "application/json") -> None:
        lines = [
            f"{method} {path} HTTP/1.1", "host: 127.0.0.1", f"authorization: Bearer {KEY}",
            f"accept: {accept}", "content-type: application/json", f"content-length: {len(data)}", "", "",
        ]  # fmt: skip
        self._writer.write("\r\n".join(lines).encode() + data)

    async def lines(self) -> AsyncIterator[bytes]:
        while line := await self._reader.readline():
            yield line.strip()


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[Connection]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Connection(reader, writer)
    finally:
        writer.close()


async def create(port: int, count: int) -> None:
    seed = [{"role": ("user", "assistant")[n % 2], "content": f"Message {n}. " * 20} for n in range(MESSAGES)]
    async with connected(port) as connection:
        for number in range(count):
            status, body = await connection.ask("POST", "/v1/sessions", {"id": f"s{number}", "seed": seed})
            assert status in (201, 409), body


async def rate(port: int, requests: int) -> float:
    """Requests a second."""

    async def some(count: int) -> None:
        async with connected(port) as connection:
            for _ in range(count):
                status, _ = await connection.ask("GET", "/v1/sessions/s0/window")
                assert status == 200

    begin = perf_counter()
    await asyncio.gather(*(some(requests // CLIENTS) for _ in range(CLIENTS)))
    return requests // CLIENTS * CLIENTS / (perf_counter() - begin)


async def window(port: int) -> bytes:
    async with connected(port) as connection:
        return (await connection.ask("GET", "/v1/sessions/s0/window"))[1]


def held(pid: int) -> float:
    """MB of a process."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1000 if found else 0.0


async def idle(port: int, pid: int, count: int) -> float:
    """MB of the server while so many watch a session each."""
    await create(port, count)

    async def watch(number: int, ready: asyncio.Barrier, over: asyncio.Event) -> None:
        async with connected(port) as connection:
            connection.send("GET", f"/v1/sessions/s{number}/events", accept="text/event-stream")
            async for line in connection.lines():
                if line.startswith(b"HTTP/1.1 200"):
                    break
            await ready.wait()
            await over.wait()

    ready, over = asyncio.Barrier(count + 1), asyncio.Event()
    watching = [asyncio.create_task(watch(number, ready, over)) for number in range(count)]
    await ready.wait()
    await asyncio.sleep(1)
    found = held(pid)
    over.set()
    await asyncio.gather(*watching)
    return found


async def latency(port: int, count: int, seconds: float) -> float:
    """Milliseconds from a message to the watcher of its session, 95th percentile."""
    await create(port, count)
    took: list[float] = []
    events = int(seconds * RATE)

    async def watch(number: int, ready: asyncio.Barrier) -> None:
        async with connected(port) as connection:
            connection.send("GET", f"/v1/sessions/s{number}/events", accept="text/event-stream")
            left = events
            await asyncio.sleep(0.5)
            await ready.wait()
            async for line in connection.lines():
                said = re.search(rb'"at (\d+\.\d+)"', line)
                if said:
                    took.append((perf_counter() - float(said[1])) * 1e3)
                    left -= 1
                    if not left:
                        return

    async def speak(number: int, ready: asyncio.Barrier) -> None:
        async with connected(port) as connection:
            await ready.wait()
            await asyncio.sleep(number / count / RATE)
            for _ in range(events):
                begin = perf_counter()
                body = {"content": f"at {begin:.6f}", "role": "user"}
                status, answer = await connection.ask("POST", f"/v1/sessions/s{number}/inject", body)
                assert status == 201, answer
                await asyncio.sleep(max(0.0, 1 / RATE - (perf_counter() - begin)))

    ready = asyncio.Barrier(2 * count)
    await asyncio.gather(*(each(number, ready) for number in range(count) for each in (watch, speak)))
    return quantiles(took, n=20)[-1]


def main() -> None:
    options = parser(__doc__, 3)
    options.add_argument("--requests", type=int, default=4000)
    options.add_argument("--watchers", type=int, default=500)
    options.add_argument("--sessions", type=int, default=50)
    options.add_argument("--seconds", type=float, default=10)
    given = options.parse_args()
    report = Report()
    with tempfile.TemporaryDirectory() as directory:
        store, bytes_of_window = f"sqlite:{directory}/s.db", Path(directory, "window.json")
        with server(*harnpy(store)) as (port, pid):
            asyncio.run(create(port, 1))
            bytes_of_window.write_bytes(asyncio.run(window(port)))
            with server(sys.executable, "-c", BARE, str(bytes_of_window)) as (bare, _):
                rates: dict[int, list[float]] = {bare: [], port: []}
                for _ in range(given.rounds):
                    for place, found in rates.items():
                        found.append(asyncio.run(rate(place, given.requests)))
            share = median(b / a for a, b in zip(rates[bare], rates[port], strict=True))
            print(f"\na window of {MESSAGES} messages, {bytes_of_window.stat().st_size} bytes")
            report.row("a bare Starlette handler, requests a second", median(rates[bare]), "")
            report.row("harnpy serve, requests a second", median(rates[port]), "")
            report.row("the bare handler's, so many times ours", 1 / share, "×", must=1 / SHARE)
            report.row("the server with one client", held(pid), "MB")
        with server(*harnpy(store)) as (port, pid):
            watchers = asyncio.run(idle(port, pid, given.watchers))
            report.row(f"the server with {given.watchers} idle watchers", watchers, "MB", must=HELD)
        with server(*harnpy(store)) as (port, _):
            soon = asyncio.run(latency(port, given.sessions, given.seconds))
            name = f"{given.sessions} sessions, {RATE} events a second each: p95"
            report.row(name, soon, "ms", must=SOON)
    raise SystemExit(report.missed if given.check else 0)


if __name__ == "__main__":
    main()
