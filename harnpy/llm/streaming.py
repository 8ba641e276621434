"""Replies piece by piece as they come. Spec: 07 §1.11.

The mock provider streams in its own way, without its queue and its log of calls.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from harnpy.llm.call import in_span
from harnpy.llm.projection import json_tokens, project
from harnpy.llm.providers.mock import NAME as MOCK
from harnpy.llm.reply import Reply
from harnpy.llm.request_messages import strings_in

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable

    from harnpy.llm.call import Models
    from harnpy.llm.request import Request


def stream_into(send: Callable[[str], bool], models: Models, request: Request) -> None:
    """Send the text of the reply as it comes, until ``send`` returns False.

    Raises `CallError`.
    """
    stream: Callable[[Request], AsyncGenerator[str]] | None
    if request.provider == MOCK:
        models.admit(request)
        words = [word for message in request.messages[-1:] for word in _text(message).split()]
        all(map(send, words))
    elif (stream := getattr(models.provider(request), "stream", None)) is not None:
        models.admit(request)
        _stream_remote(send, models, request, stream(request))
    else:
        send(models.ask(request).text)


def _stream_remote(
    send: Callable[[str], bool], models: Models, request: Request, pieces: AsyncGenerator[str]
) -> None:
    """Send the pieces, and charge them to the program by an estimate: the provider tells only texts."""
    clock = models.world.clock
    begin = clock.monotonic()
    receive = partial(_receive, send, models, request, pieces)
    recording, spans = models.recording, models.spans()
    call = receive if recording is None else partial(recording.record, request, receive)
    reply = call() if spans is None else in_span(spans, request, call)
    models.account.charge(reply, models.trace.new_call_id(), int((clock.monotonic() - begin) * 1000))


def _receive(
    send: Callable[[str], bool], models: Models, request: Request, pieces: AsyncGenerator[str]
) -> Reply:
    wait, text = models.waiting.wait, ""
    while (piece := wait(_following(pieces))) is not None:
        text += piece
        if not send(piece):
            wait(pieces.aclose())
            break
    return Reply(
        text=text,
        model=request.model,
        provider=request.provider,
        requested_model=request.model,
        input_tokens=project(request, 0.0).input_tokens,
        output_tokens=json_tokens(text),
        price=request.price,
    )


async def _following(pieces: AsyncIterator[str]) -> str | None:
    return await anext(pieces, None)


def _text(message: dict[str, Any]) -> str:
    content = message.get("content")
    blocks = content if isinstance(content, list) else [content]
    return " ".join(strings_in([block.get("text") if isinstance(block, dict) else block for block in blocks]))
