"""Messages between the two sides: a length, then a msgpack list of a kind and its contents.

| to the child                                  |                                                   |
|-----------------------------------------------|---------------------------------------------------|
| begin, settings                               | the first message                                 |
| run, source, options; call, function, args    | one at a time                                     |
| cancel                                        | end what runs                                     |
| answer, number, value; refusal, number, error | to a question                                     |

| to the embedder                               |                                                   |
|-----------------------------------------------|---------------------------------------------------|
| out, text; err, text; event, dict             | what a program writes, what its agents do         |
| ask, number, whom, name, args                 | a question, answered while the program waits      |
| done, value; failed, error; cancelled         | the end of a run or call                          |

Both sides are harnpy: what crosses is checked where it leaves. Programs make values, not messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from harnpy.isolation.values import refuse_deep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: The most bytes of one message: what one side sends can't fill the memory of the other.
MOST = 1 << 26
_HEAD = 4


class ProtocolError(Exception):
    """The other side said what this protocol doesn't know."""


def frame(message: tuple[Any, ...], enc_hook: Callable[[Any], Any] | None = None) -> bytes:
    """A message as bytes. Raises what `enc_hook` raises, and ValueError when it is too long or too deep."""
    refuse_deep(message)
    body = msgspec.msgpack.encode(message, enc_hook=enc_hook)
    if len(body) > MOST:
        raise ValueError(f"{len(body)} bytes are too many to cross: at most {MOST} do")
    return len(body).to_bytes(_HEAD, "big") + body


class Frames:
    """Finds the messages in what is received."""

    def __init__(self, ext_hook: Callable[[int, memoryview], Any] | None = None) -> None:
        self._ext_hook = ext_hook
        self._received = bytearray()

    def feed(self, data: bytes) -> Iterator[list[Any]]:
        """The messages that are complete with ``data``. Raises ProtocolError."""
        self._received += data
        while len(self._received) >= _HEAD:
            end = _HEAD + int.from_bytes(self._received[:_HEAD], "big")
            if end > _HEAD + MOST:
                raise ProtocolError("a message is too long")
            if len(self._received) < end:
                return
            body = bytes(self._received[_HEAD:end])
            del self._received[:end]
            yield self._message(body)

    def _message(self, body: bytes) -> list[Any]:
        try:
            message = msgspec.msgpack.decode(body, ext_hook=self._ext_hook)
        except (msgspec.DecodeError, RecursionError, ValueError, TypeError) as error:
            raise ProtocolError(str(error)) from None
        if not isinstance(message, list) or not message or not isinstance(message[0], str):
            raise ProtocolError("a message is no list with a kind")
        return message
