"""HTTP of a program whose run is recorded: one effect a request. Loads the client, which takes its time."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import httpx2

from harnpy.durable.journal import HTTP, NotDurable
from harnpy.durable.values import told
from harnpy.world.http_client import AT_END

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.durable.journal import Journal
    from harnpy.workflow.engines.contract import Json

#: The media type of streams of events.
EVENTS: Final = "text/event-stream"


class RecordedTransport(httpx2.AsyncBaseTransport):
    """Sends single requests: redirects and cookies are the client's, and follow from responses."""

    def __init__(self, transport: httpx2.AsyncBaseTransport, journal: Journal) -> None:
        self._real = transport
        self._journal = journal

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self._journal.passes():
            return await self._real.handle_async_request(request)
        if is_upgrade(request) or takes_events(request):
            raise NotDurable(
                f"a durable run can't keep a connection to {request.url.host} open: it would not survive a "
                "restart; ask with a request of its own each time"
            )
        return await self._whole(request)

    async def _whole(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()

        async def exchange() -> tuple[int, list[tuple[bytes, bytes]], bytes]:
            with noting_ends():
                response = await self._real.handle_async_request(request)
                return response.status_code, response.headers.raw, await whole_body(response)

        with showing_ends():
            status, headers, body = await self._journal.waited(HTTP, exchange, lambda: told_request(request))
        return httpx2.Response(status, headers=headers, stream=httpx2.ByteStream(body), request=request)

    async def aclose(self) -> None:
        await self._real.aclose()


def is_upgrade(request: httpx2.Request) -> bool:
    """Return whether the connection is to become another than HTTP's: a WebSocket."""
    return "upgrade" in request.headers


def takes_events(request: httpx2.Request) -> bool:
    """Return whether the response may be a stream of events."""
    return EVENTS in request.headers.get("accept", "")


def told_request(request: httpx2.Request) -> Json:
    """Return what a request is told by, which was read."""
    return [request.method, told(str(request.url)), told(request.content)]


async def whole_body(response: httpx2.Response) -> bytes:
    """Return the body of a response that a transport gave, and close it."""
    try:
        stream: Any = response.stream
        return b"".join([piece async for piece in stream])
    finally:
        await response.aclose()


# Whether a connection had ended tells a response that was cut off from one that is malformed
# (`harnpy.world.http_client.failure`). It is known to the task that reads, which is another one outside.


@contextmanager
def noting_ends() -> Iterator[None]:
    """A block outside that reads from a connection: its failures say whether that had ended."""
    try:
        yield
    except httpx2.RemoteProtocolError as error:
        error.at_end = AT_END.get()  # type: ignore[attr-defined]
        raise


@contextmanager
def showing_ends() -> Iterator[None]:
    """A block of the program that waits for such a one, and knows it, too."""
    try:
        yield
    except httpx2.RemoteProtocolError as error:
        AT_END.set(getattr(error, "at_end", False))
        raise
