"""Messages of WebSockets. Spec: 04 §21.5."""

from __future__ import annotations

from typing import NamedTuple


class Message(NamedTuple):
    """``type``: text (``data`` is UTF-8), binary, ping, pong or close; only a close has a code, perhaps."""

    type: str
    data: bytes = b""
    code: int | None = None
    reason: str = ""
