"""Calls of models on a tape: what is asked, pieces of the reply as they come, the reply. Spec: 13 §1, §3."""

from __future__ import annotations

import asyncio
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from harnpy.durable.journal import MODEL, PIECE
from harnpy.durable.values import told
from harnpy.llm.reply import Reply
from harnpy.llm.request import Request
from harnpy.tape.digests import digest
from harnpy.tape.journal import given
from harnpy.tape.tapes import TapeError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from harnpy.llm.providers import Provider
    from harnpy.llm.request import Shown
    from harnpy.tape.digests import Digests
    from harnpy.tape.journal import TapeJournal
    from harnpy.workflow.engines.contract import Json, Step

#: The most messages behind the last answer that are told one by one.
_MOST_NEW: Final = 20
#: What of a request isn't told: it follows from the rest, or is no data.
_LEFT_OUT = frozenset(
    "messages system tools segment price route experiment_note retried shown search transport style".split()
)
_BARE = Request([], None, "", "")
#: The values of each part of a request that aren't worth telling.
_USUAL = {each.name: (getattr(_BARE, each.name), None) for each in fields(Request)}


def told_request(request: Request, digests: Digests) -> Json:
    """Return what tells a request from others: its model, system prompt, tools and options, the messages
    behind the model's last answer, and a digest of those before."""
    messages = request.messages
    first = len(messages)
    while first > max(len(messages) - _MOST_NEW, 0) and messages[first - 1].get("role") != "assistant":
        first -= 1
    asked: dict[str, Json] = {"model": f"{request.provider}/{request.model}", "system": told(request.system)}
    asked["messages"] = {
        "count": len(messages),
        "before": digests.of(messages[:first]),
        "new": [told(message) for message in messages[first:]],
    }
    if request.tools:
        asked["tools"] = digest(request.tools)
    for name in request.__slots__:
        value = getattr(request, name)
        if name not in _LEFT_OUT and name not in ("provider", "model") and value not in _USUAL[name]:
            asked[name] = _told(value)
    return asked


def _told(value: Any) -> Json:
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _told(getattr(value, each.name)) for each in fields(value)}
    return told(value)


class TapedProvider:
    """A provider whose calls are effects, a piece at a time where somebody watches the reply come."""

    def __init__(
        self, provider: Provider, journal: TapeJournal, *, is_own: bool, find: Callable[[Request], Provider]
    ) -> None:
        self._provider = provider
        self._journal = journal
        #: Whether it answers by what the program has told it: then it answers a replay, too.
        self._is_own = is_own
        if getattr(provider, "stream", None) is None:
            self.stream = None  # type: ignore[method-assign,assignment]
        self._find = find

    def _changed(self, request: Request) -> Request:
        """Return what is asked in place of a request, of the provider of that."""
        changed = self._journal.changed(request)
        if (changed.provider, changed.model) != (request.provider, request.model):
            if not self._is_own:
                self._provider = self._find(changed)
            # By these the caller knows what the reply costs.
            request.provider, request.model, request.price = changed.provider, changed.model, changed.price
        return changed

    async def complete(self, request: Request) -> Reply:
        """Return the reply. The pieces of one that is watched are recorded as they come."""
        rest = self._journal.rest()
        request = self._changed(request)
        if self._is_own:
            reply = await self._whole(request)
            return self._journal.at_once(
                MODEL, lambda: reply, lambda: told_request(request, self._journal.digests)
            )
        shown = request.shown
        asked = lambda: told_request(request, self._journal.digests)  # noqa: E731
        if shown is None:
            whole: Reply = await self._journal.waited(MODEL, lambda: self._whole(request), asked)
            return whole
        pieces = _Pieces(lambda collector: self._whole(replace(request, shown=collector)), rest)
        kind = MODEL
        while True:
            came = await self._journal.waited(kind, pieces.next, asked if kind == MODEL else None)
            if isinstance(came, Reply):
                return came
            shown.piece(came)
            kind = PIECE

    async def _whole(self, request: Request) -> Reply:
        known = (
            self._journal.reply_to(lambda: told_request(request, self._journal.digests))
            if not self._is_own
            else None
        )
        if known is not None:
            if request.shown is not None:
                request.shown.piece(known.text)
            return known
        answer = self._provider.complete(request)
        return _priced(answer if isinstance(answer, Reply) else await answer, request)

    def stream(self, request: Request) -> _Stream:
        """Return the pieces of the reply's text, as they come."""
        return _Stream(self._journal, request, self._begin_stream)

    def _begin_stream(self, request: Request) -> tuple[Request, Callable[[], Any], Sequence[Step] | None]:
        """Return what is asked in place of a request, what begins that stream, and what of it is known."""
        rest = self._journal.rest()
        request = self._changed(request)
        stream: Any = getattr(self._provider, "stream", None)
        return request, lambda: stream(request), rest


def _priced(reply: Reply, request: Request) -> Reply:
    """Return a reply with its price, so that the tape tells what the call has cost."""
    if reply.price is None:
        reply.price = request.price
    return reply


class _Rest:
    """What a tape has of a reply whose first pieces the records hold: its call isn't made again."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._left = iter(steps)

    def next(self) -> Any:
        """Return what came next, or raise it."""
        step = next(self._left, None)
        if step is None:
            raise TapeError("the tape was cut off within a model's reply: branch at that call, or before it")
        return given(step)


class Unmade:
    """A provider of a replay, which asks nobody, and needs no SDK. ``streams``: whether it has a `stream`."""

    def __init__(self, streams: bool) -> None:
        self.stream = self.complete if streams else None

    def complete(self, request: Request) -> Reply:
        """Never called: a replay has its replies from the tape."""
        raise AssertionError(f"{request.provider} is asked in a replay")


class _Pieces:
    """What comes of a call, in the loop outside: the pieces that are shown, then the reply."""

    def __init__(self, call: Callable[[Shown], Awaitable[Reply]], rest: Sequence[Step] | None = None) -> None:
        self._call = call
        self._rest = None if rest is None else _Rest(rest)
        self._came: asyncio.Queue[str] = asyncio.Queue()
        self._answer: asyncio.Future[Reply] | None = None

    # It is what is told of the reply, in the place of whoever watches it in the program.
    reports = True

    def began(self, request: Request) -> None:
        """Nothing is to be done: the program knows."""

    def piece(self, text: str) -> None:
        """Take the next piece."""
        self._came.put_nowait(text)

    def tell(self) -> None:
        """Nothing is to be done: pieces are given out one by one."""

    def ended(self, reply: Reply) -> None:
        """Nothing is to be done: the reply is what the call returns."""

    async def next(self) -> str | Reply:
        """Return the next piece, or the reply behind the last one."""
        if self._rest is not None:
            known: str | Reply = self._rest.next()
            return known
        if self._answer is None:
            self._answer = asyncio.ensure_future(self._call(self))
        piece = asyncio.ensure_future(self._came.get())
        first: list[asyncio.Future[Any]] = [piece, self._answer]
        try:
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            if not piece.done():
                return await self._answer
            return piece.result()
        except asyncio.CancelledError:
            self._answer.cancel()
            raise
        finally:
            piece.cancel()


class _Stream:
    """The pieces of a reply's text."""

    def __init__(
        self,
        journal: TapeJournal,
        request: Request,
        begin: Callable[[Request], tuple[Request, Callable[[], Any], Sequence[Step] | None]],
    ) -> None:
        self._journal = journal
        self._request = request
        self._prepare = begin
        self._rest: _Rest | None = None
        self._real: Any = None
        self._kind = MODEL
        self._known = Reply("", "", "", "", 0, 0)
        self._text: list[str] = []

    def __aiter__(self) -> _Stream:
        return self

    async def __anext__(self) -> str:
        kind, self._kind = self._kind, PIECE
        if kind == MODEL:  # only now it is known which call it is
            self._request, self._begin, rest = self._prepare(self._request)
            self._rest = None if rest is None else _Rest(rest)
        asked = None if kind == PIECE else lambda: told_request(self._request, self._journal.digests)
        piece, known = await self._journal.waited(kind, self._next, asked)
        if known is not None:
            self._known = known
        if piece is None:
            raise StopAsyncIteration
        self._text.append(piece)
        return piece

    async def _next(self) -> tuple[str | None, Reply | None]:
        if self._rest is not None:
            known: tuple[str | None, Reply | None] = self._rest.next()
            return known
        if self._real is None:
            self._real = self._begin()
        try:
            return await anext(self._real), None
        except StopAsyncIteration:
            return None, self._real_so_far()

    async def aclose(self) -> None:
        """End the call; what is known of it by then is recorded."""
        known: Reply | None = await self._journal.waited(PIECE, self._close)
        self._known = known or self._known

    async def _close(self) -> Reply | None:
        if self._real is None:
            return None
        await self._real.aclose()
        return self._real_so_far()

    def _real_so_far(self) -> Reply | None:
        so_far = getattr(self._real, "so_far", None)
        return None if so_far is None else _priced(so_far(), self._request)

    def so_far(self) -> Reply:
        """Return the reply up to the last piece."""
        request = self._request
        known = self._known
        if known.requested_model:
            return known
        return Reply("".join(self._text), request.model, request.provider, request.model, 0, 0)
