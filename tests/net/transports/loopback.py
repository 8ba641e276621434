"""A server on this machine, in a thread of its own, that does what a test says with each connection."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress

from websockets.utils import accept_key

Handle = Callable[["Connection"], Awaitable[None]]


class Connection:
    """``head``: the request's lines, in lower case. ``number``: of the connection, from 0."""

    def __init__(
        self, number: int, head: list[str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.number = number
        self.head = [line.lower() for line in head]
        self._written = head
        self.reader = reader
        self.writer = writer

    @property
    def last_id(self) -> str | None:
        line = next((line for line in self.head if line.startswith("last-event-id:")), None)
        return None if line is None else line.partition(":")[2].strip()

    async def answer(self, status: str = "200 OK", *headers: str, body: bytes | None = None) -> None:
        """Send a head; without a ``body`` chunks follow, by `chunk`."""
        rest = ["Transfer-Encoding: chunked"] if body is None else [f"Content-Length: {len(body)}"]
        # Else a client could send its next request here while this is being closed.
        rest.append("Connection: close")
        lines = [f"HTTP/1.1 {status}", *(headers or ["Content-Type: text/event-stream"]), *rest, "", ""]
        self.writer.write("\r\n".join(lines).encode() + (body or b""))
        await self.writer.drain()

    async def chunk(self, data: bytes) -> None:
        """Send a piece of the body; an empty one ends it."""
        self.writer.write(b"%x\r\n%s\r\n" % (len(data), data))
        await self.writer.drain()

    async def switch(self) -> None:
        """Agree to speak WebSocket."""
        keys = (
            line.partition(": ")[2] for line in self._written if line.lower().startswith("sec-websocket-key")
        )
        lines = [
            "HTTP/1.1 101 Switching Protocols",
            "Upgrade: WebSocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Accept: {accept_key(next(keys))}",
        ]
        self.writer.write("\r\n".join([*lines, "", ""]).encode())

    def break_off(self) -> None:
        self.writer.transport.abort()


@contextmanager
def served(handle: Handle) -> Iterator[str]:
    """The server's host and port; each connection is handled once, and closed then."""
    loop, started, numbers = asyncio.new_event_loop(), threading.Event(), iter(range(1 << 30))
    address, stopping = "", False

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            await handle(Connection(next(numbers), head, reader, writer))
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client has left, or the test has ended
        finally:
            if stopping:
                writer.transport.abort()
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def run() -> None:
        nonlocal address, stopping
        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        address = "{}:{}".format(*server.sockets[0].getsockname())
        started.set()
        with suppress(asyncio.CancelledError):
            await server.serve_forever()
        stopping = True
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    serving = None

    def work() -> None:
        nonlocal serving
        asyncio.set_event_loop(loop)
        serving = loop.create_task(run())
        loop.run_until_complete(serving)
        loop.close()

    thread = threading.Thread(target=work)
    thread.start()
    started.wait(10)
    try:
        yield address
    finally:
        assert serving is not None
        loop.call_soon_threadsafe(serving.cancel)
        thread.join(10)
