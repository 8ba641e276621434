"""One live session, with what isn't in its log. Spec: 08 §1.1, §1.7."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.reading.dicts import Dict
    from harnpy.session.kept.hold import Hold
    from harnpy.session.log import Session
    from harnpy.session.sink import Sink

    Subscriber = Callable[[Dict], Any]


class Follower(Protocol):
    """A running loop that keeps its own copy of a session's conversation in step."""

    id: str
    summarize: Callable[[str], str] | None

    def arrive(self, message: Dict) -> None:
        """A message was injected into the session."""

    def overtaken(self) -> None:
        """Somebody else compacted the session."""


class Resident:
    """A live session, with what isn't in its log."""

    __slots__ = ("child_ids", "closing", "followers", "hold", "session", "sink", "subscribers")

    def __init__(self, session: Session, sink: Sink | None) -> None:
        self.session = session
        self.hold: Hold | None = None  # on the lease of a session that is kept, while loops drive it
        self.sink = sink
        self.child_ids: dict[str, None] = {}  # ordered and unique
        self.subscribers: list[Subscriber] = []
        self.followers: list[Follower] = []
        self.closing = False

    def let_go(self) -> None:
        """Give the session's lease back, if this process has it."""
        hold, self.hold = self.hold, None
        if hold is not None:
            hold.release()
