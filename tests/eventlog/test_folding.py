"""Folds of topics: each event once, in order. Spec: 10 §C18."""

from __future__ import annotations

from typing import Any

from harnpy.eventlog import MemoryEventLog
from harnpy.eventlog.contract import LogEvent
from harnpy.eventlog.waitpoints import TopicFold


class Kinds(TopicFold):
    about = "kind"

    def __init__(self, log: Any) -> None:
        super().__init__(log, "topic")
        self.seen: list[tuple[int, str]] = []

    def _fold(self, number: int, kind: str, payload: Any) -> None:
        self.seen.append((number, kind))


def test_an_event_that_a_listener_has_read_is_folded_once() -> None:
    log = MemoryEventLog()
    fold = Kinds(log)

    log.listeners.append(lambda topic: fold.read())
    assert fold.change(lambda: LogEvent("a", {}))
    assert (fold.seen, fold.version) == ([(1, "a")], 1)
