"""What does `harnpy serve` cost beside a bare handler, what do watchers hold, how soon do they see an event?

    python bench/serving.py [--rounds N] [--requests N] [--watchers N] [--sessions N] [--seconds N] [--check]

Requests of a session's window, over kept connections, beside a bare Starlette handler that returns the
same bytes: on the same server (uvicorn), each in a process of its own, in turns; a row is the median of the
rounds. Callers have a static key, or the token of a bearer session. Where other programs share the machine,
the processors' time of the servers says more than the requests a second.
Then the memory of the server with idle watchers, and the time from an event to those who watch it: so many
sessions, each with a watcher and ten messages a second, by the 95th percentile.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import NamedTuple

from options import environment, parser
from storage import Report

#: Connections at once, and events a second of a session.
CLIENTS, RATE = 16, 10
#: Of what a bare handler does in the same time; MB with 500 idle watchers; ms to the 95th percentile.
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


def token(store: str) -> str:
    """The token of a new bearer session."""
    words = ("tokens", "--store", store, "create", "bench", "--scope", "all")
    command = (sys.executable, "-m", "harnpy", *words)
    made = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment())
    return made.stdout.strip()


def harnpy(store: str) -> tuple[str, ...]:
    options = ("--store", store, "--bind", "127.0.0.1:0", "--api-key", KEY, "--grace", "0")
    return (sys.executable, "-m", "harnpy", "serve", *options)


class Connection:
    """HTTP/1.1 over one kept connection: as little of a client as will do."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: str = KEY) -> None:
        self._reader = reader
        self._writer = writer
        self._key = key

    async def ask(self, method: str, path: str, body: object = None) -> tuple[int, bytes]:
        data = b"" if body is None else json.dumps(body).encode()
        self.send(method, path, data)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head.lower())
        return int(head.split(b" ", 2)[1]), await self._reader.readexactly(int(length[1]) if length else 0)

    def send(self, method: str, path: str, data: bytes = b"", accept: str = "application/json") -> None:
        lines = [
            f"{method} {path} HTTP/1.1", "host: 127.0.0.1", f"authorization: Bearer {self._key}",
            f"accept: {accept}", "content-type: application/json", f"content-length: {len(data)}", "", "",
        ]  # fmt: skip
        self._writer.write("\r\n".join(lines).encode() + data)

    async def lines(self) -> AsyncIterator[bytes]:
        while line := await self._reader.readline():
            yield line.strip()


@asynccontextmanager
async def connected(port: int, key: str = KEY) -> AsyncIterator[Connection]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Connection(reader, writer, key)
    finally:
        writer.close()


async def create(port: int, count: int) -> None:
    seed = [{"role": ("user", "assistant")[n % 2], "content": f"Message {n}. " * 20} for n in range(MESSAGES)]
    async with connected(port) as connection:
        for number in range(count):
            status, body = await connection.ask("POST", "/v1/sessions", {"id": f"s{number}", "seed": seed})
            assert status in (201, 409), body


class Caller(NamedTuple):
    """Who asks which server, and that server's process."""

    name: str
    port: int
    pid: int
    key: str = KEY


class Speed(NamedTuple):
    rate: float
    #: Microseconds of the processors that the server has taken for a request.
    cost: float


def processor_time(pid: int) -> float:
    """Seconds that a process has had a processor."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def speed(caller: Caller, requests: int) -> Speed:
    """Have the server answer so many requests."""

    async def some(count: int) -> None:
        async with connected(caller.port, caller.key) as connection:
            for _ in range(count):
                status, _ = await connection.ask("GET", "/v1/sessions/s0/window")
                assert status == 200

    count, before, begin = requests // CLIENTS, processor_time(caller.pid), perf_counter()
    await asyncio.gather(*(some(count) for _ in range(CLIENTS)))
    took, cost = perf_counter() - begin, processor_time(caller.pid) - before
    return Speed(count * CLIENTS / took, cost / (count * CLIENTS) * 1e6)


def compare(report: Report, callers: list[Caller], rounds: int, requests: int) -> None:
    """Rows about the callers, in turns; the first one is what the others are compared with."""
    found: dict[str, list[Speed]] = {caller.name: [] for caller in callers}
    for _ in range(rounds):
        for caller in callers:
            found[caller.name].append(asyncio.run(speed(caller, requests)))
    bare, *others = found.items()
    for name, speeds in found.items():
        report.row(f"{name}, requests a second", median(each.rate for each in speeds), "")
        report.row(f"{name}, processor's time", median(each.cost for each in speeds), "µs")
    for name, speeds in others:
        pairs = [*zip(bare[1], speeds, strict=True)]
        report.row(f"{name}, rate of the bare one", median(b.rate / own.rate for b, own in pairs), "×")
        share = median(own.cost / b.cost for b, own in pairs)
        report.row(f"{name}, time of the bare one", share, "×", must=1 / SHARE)


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


async def latency(port: int, count: int, seconds: float) -> tuple[float, float]:
    """Milliseconds to the watcher of a session, 95th percentiles: from an event, and from the request that
    made it."""
    await create(port, count)
    took: list[float] = []
    came: list[float] = []
    events = int(seconds * RATE)

    async def watch(number: int, ready: asyncio.Barrier) -> None:
        async with connected(port) as connection:
            connection.send("GET", f"/v1/sessions/s{number}/events", accept="text/event-stream")
            left = events
            await asyncio.sleep(0.5)
            await ready.wait()
            async for line in connection.lines():
                said = re.search(rb'"at (\d+\.\d+)"', line)
                happened = re.search(rb'"time":"([^"]+)"', line)
                if said and happened:
                    took.append((perf_counter() - float(said[1])) * 1e3)
                    moment = datetime.fromisoformat(happened[1].decode())
                    came.append((datetime.now(UTC) - moment).total_seconds() * 1e3)
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
    return quantiles(came, n=20)[-1], quantiles(took, n=20)[-1]


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
            print(f"\na window of {MESSAGES} messages, {bytes_of_window.stat().st_size} bytes")
            with server(sys.executable, "-c", BARE, str(bytes_of_window)) as (bare, bare_pid):
                callers = [
                    Caller("bare handler", bare, bare_pid),
                    Caller("static key", port, pid),
                    Caller("bearer session", port, pid, token(store)),
                ]
                compare(report, callers, given.rounds, given.requests)
            report.row("the server with one client", held(pid), "MB")
        with server(*harnpy(store)) as (port, pid):
            watchers = asyncio.run(idle(port, pid, given.watchers))
            report.row(f"the server with {given.watchers} idle watchers", watchers, "MB", must=HELD)
        with server(*harnpy(store)) as (port, _):
            event, request = asyncio.run(latency(port, given.sessions, given.seconds))
            name = f"{given.sessions} sessions, {RATE} events a second each: p95"
            report.row(name, event, "ms", must=SOON)
            report.row("… from the request that makes the event", request, "ms")
    raise SystemExit(report.missed if given.check else 0)


if __name__ == "__main__":
    main()
