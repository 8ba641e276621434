"""The streams of events that one program has open. Spec: 04 §21.5."""

from __future__ import annotations

from asyncio import timeout
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from harnpy.net.http.clients import Clients
from harnpy.net.http.handles import Handles
from harnpy.net.http.targets import check_header
from harnpy.net.sse.decoding import Event
from harnpy.net.sse.errors import Broken, Refused
from harnpy.net.sse.reconnecting import Opened, Source
from harnpy.net.transports.inbox import Inbox, Script

if TYPE_CHECKING:
    from harnpy.net.http.replies import Response
    from harnpy.net.http.request import Request
    from harnpy.net.sse.reconnecting import Reconnecting
    from harnpy.net.transports.inbox import Start
    from harnpy.net.transports.mocks import Mocks
    from harnpy.world.http import Http
    from harnpy.world.net.egress import Egress

SURFACE = "sse_connect"
_MEDIA_TYPE = "text/event-stream"


class Asked(NamedTuple):
    """What a program asks for. ``most``: bytes of an event; ``last_id``: of the event to go on after."""

    request: Request
    most: int
    last_id: str | None
    reconnecting: Reconnecting


class EventStreams(Handles[Inbox[Opened | Event] | Script[Opened | Event]]):
    """The open streams, by their handles."""

    def __init__(self, http: Http, egress: Egress, mocks: Mocks, start: Start) -> None:
        super().__init__("sse", "stream")
        self._clients = Clients(http)
        self._egress = egress
        self._mocks = mocks
        self._start = start

    async def aclose(self) -> None:
        for stream in self:
            await stream.aclose()
        self.clear()
        await self._clients.aclose()

    def mocked(self, asked: Asked) -> str | None:
        """Return the handle of a mocked stream; None when no mock is there for it. Raises `EgressBlocked`."""
        request = asked.request
        self._egress.admit(SURFACE, request.canonical)
        events = self._mocks.events.find(request.url, request.canonical)
        if events is None:
            return None
        self._mocks.note_connect(SURFACE, request.url, request.headers, method=request.method)
        return self.add(Script([Opened(), *events]))

    async def open(self, asked: Asked) -> str:
        """Return the handle of a stream whose first connection is open.

        Raises `Refused`, `Broken`, `EgressBlocked`, and what the permission to send does.
        """

        async def connect(last_id: str | None) -> Response:
            return await self._connected(asked.request, last_id)

        response = await connect(asked.last_id)
        source = Source(connect, asked.most, asked.reconnecting, asked.last_id)
        return self.add(Inbox(source.items(response), _size, asked.most, self._start))

    async def _connected(self, request: Request, last_id: str | None) -> Response:
        from harnpy.world.net.exchange import exchange
        from harnpy.world.net.failed import Failed, too_slow

        if last_id is not None:
            check_header("last-event-id", last_id)
            request = replace(request, headers=(*request.headers, ("last-event-id", last_id)))
        client = self._clients.of(request.settings)
        try:
            async with timeout(request.whole):
                response = await exchange(client, SURFACE, request)
        except TimeoutError:
            problem: Exception = Broken(too_slow("timeout_ms"))
        except Failed as error:
            problem = Broken(error)
        else:
            refusal = _refusal(response)
            if refusal is None:
                return response
            await response.aclose()
            problem = refusal
        raise problem


def _refusal(response: Response) -> Refused | None:
    status, headers = response.status, response.headers
    if status != 200:
        return Refused(status, f"the server answered with status {status}, not with events")
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _MEDIA_TYPE:
        return Refused(status, f"expected a response of type {_MEDIA_TYPE}, got `{kind}`")
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        return Refused(status, f"the events are encoded as {encoding}, which nobody asked for")
    return None


def _size(item: Opened | Event) -> int:
    return 0 if isinstance(item, Opened) else len(item.data)
