"""Failures of a program's requests, streams of events and WebSockets. Spec: 04 §21.1, §21.5."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.faults import Fault, NamedFault

if TYPE_CHECKING:
    from harnpy.world.connections import Failed


class HttpError(Fault):
    """A request that can't be made as it was asked for."""


class RequestFailed(HttpError):
    """A request that got no complete response; ``category`` is the one that its message suggests."""

    def __init__(self, category: str, detail: str) -> None:
        super().__init__(f"http: request failed: {detail}")
        self.category = category


class SseError(NamedFault):
    """Events can't be received, or not from here."""


class Broken(SseError):
    """A connection wasn't opened, or broke; ``category`` is one of 02 §19.8."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed.text)
        self.category = failed.category


class Refused(SseError):
    """The response of a server has no events. ``status`` is its status."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class WebSocketError(NamedFault):
    """A WebSocket can't be opened, or a message can't be sent or received."""
