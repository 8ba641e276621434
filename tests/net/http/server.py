"""A server on loopback that behaves badly, path by path, and notes what reaches it."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import struct
import zlib
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Condition, Thread
from urllib.parse import unquote

import brotli

Behaviour = Callable[["Server", asyncio.StreamWriter, str], Awaitable[None]]

BOMB = gzip.compress(bytes(1 << 26))
BROTLI_BOMB = brotli.compress(bytes(1 << 26), quality=5)


class Server:
    """``requests`` are the heads that arrived, ``opened`` and ``closed`` count connections."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.bodies: list[bytes] = []
        self.opened = self.closed = 0
        self.elsewhere = ""
        self.url = ""
        self.failed_once = False
        self.may_go, self.drips, self.dripped = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._ends = Condition()
        self._running = set[asyncio.Task[None] | None]()

    def wait_for_end(self, count: int) -> None:
        """Return when so many connections have ended."""
        with self._ends:
            assert self._ends.wait_for(lambda: self.closed >= count, timeout=20)

    def header(self, name: str, at: int = -1) -> str | None:
        """A header of a request."""
        lines = (line.partition(": ") for line in self.requests[at].split("\r\n")[1:])
        return next((value for key, _, value in lines if key.lower() == name), None)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        self._running.add(asyncio.current_task())  # asyncio itself doesn't keep a task that waits for ever
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                self.requests.append(head)
                length = self.header("content-length")
                self.bodies.append(await reader.readexactly(int(length)) if length else b"")
                method, target, _ = head.split(maxsplit=2)
                path, _, rest = target.removeprefix("http://far.test").partition("?")
                await BEHAVIOURS["/refused" if method == "CONNECT" else path](self, writer, rest)
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            pass
        finally:
            writer.close()
            with self._ends:
                self.closed += 1
                self._ends.notify_all()


def plain(text: str) -> Behaviour:
    """A behaviour that sends ``text``; `\n` ends a line of the head."""
    data = text.replace("\n", "\r\n").encode("latin-1")

    async def behave(server: Server, writer: asyncio.StreamWriter, rest: str) -> None:
        writer.write(data)
        await writer.drain()

    return behave


def then_closed(text: str) -> Behaviour:
    sent = plain(text)

    async def behave(server: Server, writer: asyncio.StreamWriter, rest: str) -> None:
        await sent(server, writer, rest)
        raise ConnectionError

    return behave


async def ok(server: Server, writer: asyncio.StreamWriter, rest: str) -> None:
    body = rest.encode() or b"ok"
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


async def redirect(server: Server, writer: asyncio.StreamWriter, rest: str) -> None:
    """To the place that the query names; `elsewhere` is another origin."""
    to = rest.replace("elsewhere", server.elsewhere).replace("%3A", ":").replace("%2F", "/")
    writer.write(f"HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 4\r\n\r\naway".encode())


async def drip(server: Server, writer: asyncio.StreamWriter, rest: str) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    server.drips.set()
    try:
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.005)
    finally:
        server.dripped.set()


async def dripping(server: Server, writer: asyncio.StreamWriter, rest: str) -> None:
    """Responds when somebody has asked for `/drip` or `/silent`."""
    await server.drips.wait()
    await ok(server, writer, rest)


async def ended(server: Server, writer: asyncio.StreamWriter, rest: str) -> None:
    """Responds when nobody receives `/drip` any more."""
    await server.dripped.wait()
    await ok(server, writer, rest)


async def silent(server: Server, writer: asyncio.StreamWriter, rest: str) -> None:
    server.drips.set()
    await asyncio.Event().wait()


async def endless(server: Server, writer: asyncio.StreamWriter, rest: str) -> None:
    head = "HTTP/1.1 200 OK\r\n" + ("Transfer-Encoding: chunked\r\n" if rest else "") + "\r\n"
    writer.write(head.encode())
    piece = b"x" * 65536
    while True:
        writer.write(b"10000\r\n" + piece + b"\r\n" if rest else piece)
        await writer.drain()


async def endless_redirect(server: Server, writer: asyncio.StreamWriter, rest: str) -> None:
    writer.write(b"HTTP/1.1 302 Found\r\nLocation: /ok\r\nTransfer-Encoding: chunked\r\n\r\n")
    with suppress(ConnectionError):
        while True:
            writer.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")
            await writer.drain()
    raise ConnectionError


def encoded(coding: str, body: bytes) -> Behaviour:
    async def behave(server: Server, writer: asyncio.StreamWriter, rest: str) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()

    return behave


def reset(writer: asyncio.StreamWriter) -> None:
    """End a connection without saying so."""
    raw = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
    raise ConnectionError


async def reset_at_once(server: Server, writer: asyncio.StreamWriter, rest: str) -> None:
    reset(writer)


async def reset_in_body(server: Server, writer: asyncio.StreamWriter, rest: str) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf")
    await writer.drain()
    await asyncio.sleep(0.02)
    reset(writer)


async def reset_once(server: Server, writer: asyncio.StreamWriter, rest: str) -> None:
    if not server.failed_once:
        server.failed_once = True
        reset(writer)
    await ok(server, writer, rest)


async def cookies(server: Server, writer: asyncio.StreamWriter, rest: str) -> None:
    """Sets the cookie that the query has; the body is what it was sent."""
    body = (server.header("cookie") or "none").encode()
    head = f"HTTP/1.1 200 OK\r\nSet-Cookie: {unquote(rest)}; Path=/\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)


async def pieces(server: Server, writer: asyncio.StreamWriter, rest: str) -> None:
    """As many pieces as the query says, of 1000 bytes each; each begins with its number."""
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for number in range(int(rest)):
        writer.write(b"3e8\r\n" + b"%-1000d" % number + b"\r\n")
        await writer.drain()
    writer.write(b"0\r\n\r\n")


async def silent_body(server: Server, writer: asyncio.StreamWriter, rest: str) -> None:
    """No byte of the body ever comes."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
    await asyncio.Event().wait()


async def later(server: Server, writer: asyncio.StreamWriter, rest: str) -> None:
    """The body comes when `/go` has been asked for."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
    await server.may_go.wait()
    writer.write(b"all of it")


async def go(server: Server, writer: asyncio.StreamWriter, rest: str) -> None:
    server.may_go.set()
    await ok(server, writer, rest)


BEHAVIOURS: dict[str, Behaviour] = {
    "/ok": ok,
    "/redirect": redirect,
    "/loop": plain("HTTP/1.1 301 Moved\nLocation: /loop\nContent-Length: 0\n\n"),
    "/drip": drip,
    "/silent": silent,
    "/endless": endless,
    "/endless-redirect": endless_redirect,
    "/short": then_closed("HTTP/1.1 200 OK\nContent-Length: 100\n\nshort"),
    "/long": then_closed("HTTP/1.1 200 OK\nContent-Length: 4\n\nlonger than it says"),
    "/two-lengths": then_closed("HTTP/1.1 200 OK\nContent-Length: 4\nContent-Length: 5\n\nabcde"),
    "/bad-length": then_closed("HTTP/1.1 200 OK\nContent-Length: -1\n\n"),
    "/bad-chunk": then_closed("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\nzz\n12\n"),
    "/cut-chunk": then_closed("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n10\n12"),
    "/both": then_closed("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\nContent-Length: 3\n\n2\nab\n0\n\n"),
    "/no-http": then_closed("SSH-2.0-OpenSSH_9\n\n"),
    "/bad-header": then_closed("HTTP/1.1 200 OK\nno colon\n\n"),
    "/huge-head": then_closed(f"HTTP/1.1 200 OK\nX: {'x' * 300_000}\n\n"),
    "/nothing": then_closed(""),
    "/bomb": encoded("gzip", BOMB),
    "/double-bomb": encoded("gzip, gzip", gzip.compress(BOMB)),
    "/brotli-bomb": encoded("br", BROTLI_BOMB),
    "/not-gzip": encoded("gzip", b"not gzip at all"),
    "/gzip": encoded("gzip", gzip.compress("grüße".encode())),
    "/members": encoded("gzip", gzip.compress("grü".encode()) + gzip.compress("ße".encode())),
    "/x-gzip": encoded("X-GZip", gzip.compress("grüße".encode())),
    "/deflate": encoded("deflate", zlib.compress("grüße".encode())),
    "/raw-deflate": encoded("deflate", zlib.compress("grüße".encode(), wbits=-15)),
    "/gzip-of-brotli": encoded("br, gzip", gzip.compress(brotli.compress("grüße".encode()))),
    "/packed-nothing": encoded("gzip", b""),
    "/cut-gzip": encoded("gzip", gzip.compress(b"greetings")[:-9]),
    "/cut-members": encoded("gzip", gzip.compress(b"a") + gzip.compress(b"b")[:-1]),
    "/cut-deflate": encoded("deflate", zlib.compress(b"greetings")[:-5]),
    "/cut-brotli": encoded("br", brotli.compress(b"greetings")[:-2]),
    "/no-text": encoded("identity", b"\xef\xbb\xbfa\xffb"),
    "/empty": plain("HTTP/1.1 204 No Content\nX-A: 1\nx-a: 2\nSet-Cookie: a=1\nSet-Cookie: b=2\n\n"),
    "/hints": plain("HTTP/1.1 103 Early Hints\nLink: x\n\nHTTP/1.1 200 OK\nContent-Length: 2\n\nok"),
    "/reset": reset_at_once,
    "/reset-in-body": reset_in_body,
    "/reset-once": reset_once,
    "/cookies": cookies,
    "/pieces": pieces,
    "/dripping": dripping,
    "/ended": ended,
    "/silent-body": silent_body,
    "/later": later,
    "/go": go,
    "/refused": plain("HTTP/1.1 403 Forbidden\nContent-Length: 0\n\n"),
}


@contextmanager
def serving(tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    """A server in a thread of its own; ``elsewhere`` is a second address of it."""
    server, loop, servers = Server(), asyncio.new_event_loop(), list[asyncio.Server]()
    loop.set_exception_handler(lambda loop, context: None)  # resets are meant

    async def start(host: str) -> str:
        listening = await asyncio.start_server(server.serve, host, 0, ssl=tls)
        servers.append(listening)
        return f"{'https' if tls else 'http'}://{host}:{listening.sockets[0].getsockname()[1]}"

    async def stop() -> None:
        """End what clients have left waiting."""
        for listening in servers:
            listening.close()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        for listening in servers:
            await listening.wait_closed()
        await asyncio.sleep(0)

    server.url = loop.run_until_complete(start("127.0.0.1"))
    server.elsewhere = loop.run_until_complete(start("127.0.0.2"))
    thread = Thread(target=loop.run_forever)
    thread.start()
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(stop())
        loop.close()
