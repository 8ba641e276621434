"""Replies piece by piece as they come. Spec: 07 §1.11.

The mock provider streams in its own way, without its queue and its log of calls.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from harnpy.faults import paced
from harnpy.formats.text_size import text_tokens
from harnpy.llm.account import project
from harnpy.llm.call import in_span
from harnpy.llm.errors import BudgetSpent
from harnpy.llm.providers.mock import MOCK_NAME as MOCK
from harnpy.llm.reply import Reply
from harnpy.llm.request_messages import strings_in

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from harnpy.llm.call import Models
    from harnpy.llm.request import Request


def stream_into(
    send: Callable[[str], bool],
    models: Models,
    request: Request,
    offer: Callable[[str], bool] = lambda piece: False,
) -> None:
    """Send the text of the reply as it comes, until ``send`` returns False.

    ``offer`` sends a piece without waiting, where it can: pieces that come together cost one wait, not one
    each. Raises `CallError`.
    """
    stream: Callable[[Request], AsyncGenerator[str]] | None
    if request.provider == MOCK:
        models.admit(request)
        words = [word for message in request.messages[-1:] for word in paced(_text(message).split())]
        all(map(send, paced(words)))
    elif (stream := getattr(models.provider(request), "stream", None)) is not None:
        models.admit(request)
        _stream_remote(send, models, request, stream(request), offer)
    else:
        send(models.ask(request).text)


def _stream_remote(
    send: Callable[[str], bool],
    models: Models,
    request: Request,
    pieces: AsyncGenerator[str],
    offer: Callable[[str], bool],
) -> None:
    """Send the pieces, and charge what came of the reply, also when nobody wants more or the call ends."""
    clock = models.world.clock
    begin = clock.monotonic()
    segment = request.segment or models.segment()
    call_id = models.trace.new_call_id()
    if segment is not None:
        segment.request(request, call_id)
    came = _Came(pieces, request)

    def charge(reply: Reply) -> None:
        ms = int((clock.monotonic() - begin) * 1000)
        if segment is not None:
            segment.response(reply, ms)
        models.account.charge(reply, call_id, ms)

    receive = partial(_receive, send, offer, models, came)
    recording, spans = models.recording, models.spans()
    call = receive if recording is None else partial(recording.record, request, receive)
    try:
        reply = call() if spans is None else in_span(spans, request, call)
    except BaseException:
        # Whatever ended it, the service has counted what it sent.
        with suppress(BudgetSpent):
            if came.anything:
                charge(came.reply())
        raise
    charge(reply)


def _receive(send: Callable[[str], bool], offer: Callable[[str], bool], models: Models, came: _Came) -> Reply:
    wait = models.waiting.wait
    while (piece := wait(came.offered(offer))) is not None:
        if not send(piece):
            wait(came.pieces.aclose())
            break
    return came.reply()


class _Came:
    """The part of a reply that has come."""

    def __init__(self, pieces: AsyncGenerator[str], request: Request) -> None:
        self.pieces = pieces
        self.text: list[str] = []
        self._request = request
        self._so_far: Callable[[], Reply] = getattr(pieces, "so_far", self._said)

    async def offered(self, offer: Callable[[str], bool]) -> str | None:
        """Return the next piece that ``offer`` doesn't take; None at the end."""
        async for piece in self.pieces:
            self.text.append(piece)
            if not offer(piece):
                return piece
        return None

    @property
    def anything(self) -> bool:
        known = self._so_far()
        return bool(self.text or known.input_tokens or known.output_tokens)

    def reply(self) -> Reply:
        """The reply up to now. Tokens are estimated where the service hasn't told them, or not to the end."""
        request, known = self._request, self._so_far()
        told = known.stop_reason is not None and known.output_tokens > 0
        estimate = text_tokens(known.text) + text_tokens(known.thinking or "")
        return replace(
            known,
            price=request.price,
            input_tokens=known.input_tokens or project(request, 0.0).input_tokens,
            output_tokens=known.output_tokens if told else max(known.output_tokens, estimate),
        )

    def _said(self) -> Reply:
        """Return what is known of a provider's stream that is only text."""
        request = self._request
        return Reply("".join(self.text), request.model, request.provider, request.model, 0, 0)


def _text(message: dict[str, Any]) -> str:
    content = message.get("content")
    blocks = content if isinstance(content, list) else [content]
    return " ".join(strings_in([block.get("text") if isinstance(block, dict) else block for block in blocks]))
