"""Streams of the HTTP API: over connections that break, nothing lost or doubled. Spec: 11 §1.4.

`Following` is where a stream stands, whoever carries it, and `Pieces` the text of an answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

import httpx2
import msgspec

from harnpy.client.attempts import Attempts, Server, not_harnpy
from harnpy.client.errors import ApiError
from harnpy.client.types import Chunk, Event, Reply, Turn
from harnpy.formats.json import refuse_depth
from harnpy.net.sse import Decoder, EventTooLong

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from harnpy.client.api_calls import Call

Item = TypeVar("Item", bound=Reply)

#: Seconds without a sign of life after which a connection counts as broken: the server gives one every 15.
_SILENCE = 45.0
#: Bytes of the longest event: sessions may hold files.
_LONGEST = 1 << 28
_GONE = "gone"


class Following(Generic[Item]):
    """A stream that is followed. ``types`` are those of what it brings, by the names of its events.

    ``over``: nothing more comes.
    """

    def __init__(
        self,
        call: Call[Any],
        server: Server,
        types: Mapping[str, type[Item]],
        met: bool,
        after: int | None = None,
    ) -> None:
        self.attempts = Attempts(call, server, met)
        self.over = False
        self._call = call
        self._server = server
        self._types = types
        self._last = after
        self._decoder = Decoder(_LONGEST)
        self._was_open = False

    def request(self) -> dict[str, Any]:
        """Return the request of the next connection, as arguments of a client of httpx2."""
        self._decoder = Decoder(_LONGEST)
        request = self.attempts.request()
        request["headers"].update({"accept": "text/event-stream", "accept-encoding": "identity"})
        if self._last is not None:
            request["headers"]["last-event-id"] = str(self._last)
        request["timeout"] = httpx2.Timeout(self._server.timeout, read=_SILENCE)
        return request

    def opened(self, response: httpx2.Response) -> bool:
        """Return whether a response is the stream. Raise `ApiError` for one that is something else."""
        status = response.status_code
        # What was watched may have been deleted before there was another connection.
        if status == 204 or (status == 404 and self._was_open and self._call.method == "GET"):
            self.over = True
            return True
        if not response.is_success:
            return False
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            raise not_harnpy(response, self._server)
        self._was_open = True
        return True

    def feed(self, data: bytes) -> Iterator[Item]:
        """Yield what ``data`` completes. Raise `ApiError` for what no harnpy server sends."""
        self.attempts.came(news=False)
        try:
            for event in self._decoder.feed(data):
                if event.event == _GONE:
                    self.over = True
                    return
                kind = self._types.get(event.event)
                if kind is None:
                    continue
                refuse_depth(event.data)
                item = msgspec.json.decode(event.data, type=kind)
                if event.id is not None and not isinstance(item, Chunk | Turn):
                    number = int(event.id)
                    if self._last is not None and number <= self._last:
                        continue
                    self._last = number
                self.attempts.came()
                yield item
        except (msgspec.MsgspecError, ValueError, EventTooLong):
            raise ApiError(200, "not_harnpy", f"{self._server.url} sends events that can't be read") from None


class Pieces:
    """The answer of the turn ``key`` as it grows: each piece of its text once, over reconnects and steps."""

    def __init__(self, key: str | None) -> None:
        self._key = key
        self._turn: int | None = None
        self._shown = ""

    def of(self, item: Reply) -> str:
        """Return the text that an item adds."""
        if isinstance(item, Event):
            # A server marks the turns that it has begun.
            if item.type == "turn_started" and item.data.get("key") in (self._key, f"serve:{self._key}"):
                self._turn = item.seq
            if item.type != "message_added" or item.data.get("role") != "assistant" or self._is_foreign(item):
                return ""
            shown, self._shown = self._shown, ""
            whole = text_of(item.data.get("content"))
            return whole[len(shown) :] if whole.startswith(shown) else ""
        if not isinstance(item, Chunk) or self._is_foreign(item):
            return ""
        if item.start and item.text.startswith(self._shown):
            piece = item.text[len(self._shown) :]
        else:  # the next piece, or an answer that was begun anew
            piece = item.text
        self._shown = item.text if item.start else self._shown + piece
        return piece

    def _is_foreign(self, item: Event | Chunk) -> bool:
        return self._turn is None or item.turn != self._turn


def text_of(content: Any) -> str:
    """Return the text of a message's content, which is a text or blocks."""
    from harnpy.formats.media import TEXTS

    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    blocks = (block for block in content if isinstance(block, dict) and block.get("type") in TEXTS)
    return "".join(text for block in blocks if isinstance(text := block.get("text"), str))
