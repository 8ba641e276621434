"""What a program is told when events don't come. Spec: 04 §21.5."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.faults import NamedFault

if TYPE_CHECKING:
    from harnpy.world.net.failed import Failed


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
