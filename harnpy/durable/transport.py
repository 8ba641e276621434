"""HTTP of a program whose run is recorded: one effect a request. Loads the client, which takes its time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx2

from harnpy.durable.journal import HTTP, NotDurable
from harnpy.durable.values import told

if TYPE_CHECKING:
    from harnpy.durable.journal import Journal


class RecordedTransport(httpx2.AsyncBaseTransport):
    """Sends single requests: redirects and cookies are the client's, and follow from responses."""

    def __init__(self, transport: httpx2.AsyncBaseTransport, journal: Journal) -> None:
        self._real = transport
        self._journal = journal

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self._journal.passes():
            return await self._real.handle_async_request(request)
        endless = "upgrade" in request.headers or "text/event-stream" in request.headers.get("accept", "")
        if endless:
            raise NotDurable(
                f"a durable run can't keep a connection to {request.url.host} open: it would not survive a "
                "restart; ask with a request of its own each time"
            )
        await request.aread()

        async def exchange() -> tuple[int, list[tuple[bytes, bytes]], bytes]:
            response = await self._real.handle_async_request(request)
            try:
                stream: Any = response.stream
                body = b"".join([piece async for piece in stream])
            finally:
                await response.aclose()
            return response.status_code, response.headers.raw, body

        asked = lambda: [request.method, told(str(request.url)), told(request.content)]  # noqa: E731
        status, headers, body = await self._journal.waited(HTTP, exchange, asked)
        return httpx2.Response(status, headers=headers, stream=httpx2.ByteStream(body), request=request)

    async def aclose(self) -> None:
        await self._real.aclose()
