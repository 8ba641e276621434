"""What moves messages to a server and back, whichever way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from mcp.shared._stream_protocols import ReadStream, WriteStream
    from mcp.shared.message import SessionMessage

    Streams = tuple[ReadStream[Any], WriteStream[SessionMessage]]


class Transport(Protocol):
    """``session`` is the server's name for the session, ``version`` the protocol's that both agreed on;
    ``ended``: nothing comes any more.
    """

    session: str | None
    version: str
    ended: bool

    def open(self) -> AbstractAsyncContextManager[Streams]:
        """Return the streams of a new connection. What fails to answer a request is its error's ``data``."""
