"""What a program is told when a WebSocket doesn't do what it was asked for. Spec: 04 §21.5."""

from __future__ import annotations

from harnpy.faults import NamedFault


class WebSocketError(NamedFault):
    """A WebSocket can't be opened, or a message can't be sent or received."""
