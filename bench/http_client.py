"""What does a request of a program cost, beside the same request in Python?

    python bench/http_client.py [--rounds N] [--requests N]

A server on loopback answers at once. `http_get` in a loop of a Harn program, beside a loop over `httpx2` on
one client, which harnpy uses itself: what is measured is what harnpy adds. Rounds take turns; a row is the
median. The last row is a mock, without a network.
"""

from __future__ import annotations

import asyncio
from statistics import median
from threading import Event, Thread
from time import perf_counter

import httpx2
from options import parser

from harnpy import Vm

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

LOOP = """
pipeline main(task) {
  MOCK
  http_get("URL")
  let begin = monotonic_ms()
  for i in 1 to COUNT { http_get("URL") }
  return monotonic_ms() - begin
}
"""


def serve(found: list[str], started: Event) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(ANSWER)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        found.append(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
        started.set()
        await server.serve_forever()

    asyncio.run(run())


def harn(url: str, count: int, mock: str = "") -> float:
    text = LOOP.replace("URL", url).replace("COUNT", str(count)).replace("MOCK", mock)
    return float(Vm().run_source(text)) / count


def python(url: str, count: int) -> float:
    async def run() -> float:
        async with httpx2.AsyncClient() as client:
            await client.get(url)
            begin = perf_counter()
            for _ in range(count):
                await client.get(url)
            return (perf_counter() - begin) * 1000 / count

    return asyncio.run(run())


def main() -> None:
    options = parser(__doc__, rounds=5)
    options.add_argument("--requests", type=int, default=1000)
    given = options.parse_args()
    found: list[str] = []
    started = Event()
    Thread(target=serve, args=(found, started), daemon=True).start()
    started.wait()
    url = found[0]
    mock = f'http_mock("GET", "{url}", {{body: "ok"}})'
    rounds = [
        (python(url, given.requests), harn(url, given.requests), harn(url, given.requests, mock))
        for _ in range(given.rounds)
    ]
    ours, own, mocked = (median(column) for column in zip(*rounds, strict=True))
    print(f"httpx2      {ours:6.3f} ms a request")
    print(f"http_get    {own:6.3f} ms, {own / ours:.2f} × httpx2")
    print(f"  mocked    {mocked:6.3f} ms")


if __name__ == "__main__":
    main()
