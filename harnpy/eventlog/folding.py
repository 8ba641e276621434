"""What the events of a topic come to, and changing it by whoever has read all of them. Spec: 10 §C18."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from harnpy.eventlog.errors import TopicMoved
from harnpy.eventlog.waitpoint_records import WaitpointError
from harnpy.world.locks import RLock

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.eventlog.contract import EventLog
    from harnpy.eventlog.log_events import LogEvent


class TopicFold(ABC):
    """A topic, as far as it was read. ``version`` is the last event that was. Any thread may call."""

    #: What the topic is about.
    about: ClassVar[str]

    def __init__(self, log: EventLog, topic: str) -> None:
        self.log = log
        self.topic = topic
        self.version = 0
        self._lock = RLock()

    @abstractmethod
    def _fold(self, number: int, kind: str, payload: Any) -> None:
        """Take one more event into account."""

    def read(self) -> None:
        """Take notice of what was written since."""
        with self._lock:
            for number, event in self.log.read_range(self.topic, self.version):
                self._take(number, event)

    def change(self, draft: Callable[[], LogEvent | None]) -> bool:
        """Append what ``draft`` says, None for nothing, and return whether it did.

        It is asked again when somebody else was quicker.
        """
        with self._lock:
            while (event := draft()) is not None:
                try:
                    number = self.log.append(self.topic, event, self.version)
                except TopicMoved:
                    self.read()
                else:
                    self._take(number, event)
                    return True
            return False

    def _take(self, number: int, event: LogEvent) -> None:
        if number <= self.version:
            return  # a listener of the log has read it while it was appended
        try:
            self._fold(number, event.kind, event.payload)
        except (KeyError, TypeError, AttributeError) as error:
            where = f"event {number} of topic '{self.topic}'"
            raise WaitpointError(f"{where} tells of no {self.about}: {error!r}") from None
        self.version = number
