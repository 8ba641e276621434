"""A connection: the SDK's dispatcher over a transport, in an asyncio task that serves nothing else.

The SDK works with groups of tasks, which must be left in the task that entered them. So each connection has
one, from `open` to `close`; requests are made from any other.
"""

from __future__ import annotations

import asyncio
import math
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import CONNECTION_CLOSED, METHOD_NOT_FOUND

from harnpy.mcp.server_spec import DISCONNECTED, ConnectionFault, ServerError, ServerLeft, Unanswered
from harnpy.world.threads import OfProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping

    from mcp.shared.dispatcher import CallOptions

    from harnpy.formats.dicts import Dict
    from harnpy.mcp.transports import Transport

    Serve = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
    #: Is told ``(progress, total, message)``.
    Progress = Callable[[float, float | None, str | None], None]


#: Requests that the protocol lets nobody cancel.
_BEGINNINGS = ("initialize", "server/discover")


class Connection(OfProcess):
    """``serve`` runs a coroutine beside the program.

    ``patience``: seconds that the server may take to answer, or to report progress.
    """

    def __init__(self, transport: Transport, serve: Serve, patience: float) -> None:
        self._transport = transport
        self._serve = serve
        self._patience = patience
        self._dispatcher: JSONRPCDispatcher | None = None
        self._task: asyncio.Task[None] | None = None
        self._closing = self._is_foreign = False
        self._tokens = 0
        self._told: dict[int, Progress] = {}
        self.bind()

    def forked(self) -> None:
        self._is_foreign = True  # and so is left alone

    async def open(self) -> None:
        """Raises what the transport can't be opened for."""
        ready = asyncio.get_running_loop().create_future()
        self._task = self._serve(self._live(ready))
        try:
            await ready
        except BaseException:
            await self.close()
            raise

    def leave(self) -> None:
        """Begin to end the connection, and what is behind it."""
        if self._task is not None and not (self._closing or self._is_foreign):
            self._closing = True
            self._task.cancel()

    async def close(self) -> None:
        """End the connection and what is behind it."""
        self.leave()
        # What has ended may have ended with its loop, on which nothing can be waited for any more.
        if self._task is not None and not (self._task.done() or self._is_foreign):
            await asyncio.wait([self._task])

    @property
    def ended(self) -> bool:
        return self._is_foreign or self._task is None or self._task.done() or self._transport.ended

    @property
    def interrupted(self) -> bool:
        """Return whether we ended it, and not the server; so it is in a process that was forked off."""
        was_cancelled = self._task is not None and self._task.cancelled()
        return self._is_foreign or self._transport.interrupted or was_cancelled

    async def _live(self, ready: asyncio.Future[None]) -> None:
        try:
            async with self._transport.open() as (incoming, outgoing):
                self._dispatcher = JSONRPCDispatcher(incoming, outgoing)
                await self._dispatcher.run(_answer, _pass_over, self._notified, task_status=_Ready(ready))
        except Exception as error:
            if ready.done():
                raise
            ready.set_exception(error)
        finally:
            ready.cancel()

    async def notify(self, method: str) -> None:
        assert self._dispatcher is not None
        await self._dispatcher.notify(method, None)

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
        headers: dict[str, str] | None = None,
        patience: float = math.inf,
    ) -> Dict:
        """Return the result of a request; when the caller is cancelled the server is told so.

        ``headers`` are HTTP's; less ``patience`` than the connection's may be given for one request.

        Raises `ServerError`, `ConnectionFault`, and what the transport failed with.
        """
        assert self._dispatcher is not None
        options: CallOptions = {"cancel_on_abandon": method not in _BEGINNINGS, "headers": headers or {}}
        seconds = min(patience, self._patience)
        try:
            async with asyncio.timeout(seconds) as limit:
                with self._telling(params or {}, progress, limit) as given:
                    return await self._dispatcher.send_raw_request(method, given, options)
        except TimeoutError:
            raise Unanswered(f"MCP: server did not respond to '{method}' within {seconds:g}s") from None
        except MCPError as error:
            failure = error.error.data
            if isinstance(failure, Exception):
                raise failure from None
            if error.code == CONNECTION_CLOSED and self._closing:
                raise ConnectionFault(DISCONNECTED) from None
            if error.code == CONNECTION_CLOSED and self._transport.ended:
                last = self._transport.last_words
                said = f": {last}" if last else ""
                raise ServerLeft(f"MCP: server closed connection{said}") from None
            text = f"MCP error ({error.code}): {error.error.message}"
            raise ServerError(text, error.code, failure) from None

    @contextmanager
    def _telling(
        self, params: Mapping[str, Any], progress: Progress | None, limit: asyncio.Timeout
    ) -> Iterator[Mapping[str, Any]]:
        """Return the parameters of a request whose progress is told inside the block; it moves ``limit``."""
        if progress is None:
            yield params
            return
        self._tokens += 1
        token = self._tokens
        self._told[token] = partial(self._hear, progress, limit)
        try:
            yield {**params, "_meta": {**params.get("_meta", {}), "progressToken": token}}
        finally:
            del self._told[token]

    def _hear(self, progress: Progress, limit: asyncio.Timeout, *report: Any) -> None:
        if not limit.expired():
            limit.reschedule(asyncio.get_running_loop().time() + self._patience)
        progress(*report)

    def _notified(self, method: str, params: Mapping[str, Any] | None) -> bool:
        """Tell of progress, and pass over everything else. The dispatcher has nothing left to do."""
        match params:
            case {"progressToken": int(token), "progress": int() | float() as done, **more} if (
                token in self._told
            ):
                total, message = more.get("total"), more.get("message")
                self._told[token](
                    done,
                    total if isinstance(total, int | float) else None,
                    message if isinstance(message, str) else None,
                )
        return True


class _Ready:
    """Tells the one that opens a connection that it can be used."""

    def __init__(self, future: asyncio.Future[None]) -> None:
        self._future = future

    def started(self, value: None = None) -> None:
        with suppress(asyncio.InvalidStateError):
            self._future.set_result(value)


async def _answer(context: object, method: str, params: object) -> Dict:
    """Answer the server's request: that we are there is all that it can ask."""
    if method == "ping":
        return {}
    raise MCPError(METHOD_NOT_FOUND, f"Method not found: {method}")


async def _pass_over(context: object, method: str, params: object) -> None:
    """For notifications that `_notified` leaves, which are none."""


# A call whose progress its caller reads while it waits. Spec: 07 §15.1.


class ReportedCall:
    """``make`` returns the call, which reports to the function that it is given.

    Only the latest report is kept: a caller that is slow to read misses the ones in between.
    """

    def __init__(self, make: Callable[[Progress], Coroutine[Any, Any, Any]]) -> None:
        self._make = make
        self._call: asyncio.Task[Any] | None = None
        self._latest: Dict | None = None

    async def report(self) -> Dict | None:
        """Return ``{progress, total?, message?}`` as soon as there is news; None when the call has ended."""
        if self._call is None:
            self._news = asyncio.Event()
            self._call = asyncio.ensure_future(self._make(self._heard))
            self._call.add_done_callback(self._ended)
        await self._news.wait()
        latest, self._latest = self._latest, None
        if not self._call.done():
            self._news.clear()
        return latest

    async def result(self) -> Any:
        assert self._call is not None
        return await self._call

    def stop(self) -> None:
        """Cancel the call unless it has ended."""
        if self._call is not None:
            self._call.cancel()

    def _heard(self, progress: float, total: float | None, message: str | None) -> None:
        given = {"progress": progress, "total": total, "message": message}
        self._latest = {key: value for key, value in given.items() if value is not None}
        self._news.set()

    def _ended(self, call: asyncio.Task[Any]) -> None:
        self._news.set()
        if not call.cancelled():
            call.exception()  # nobody may be there any more who asks for it
