"""States that functions make of a session's log. Spec: 10 §A1.6, §C3."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.session.events import Event


class Reduction:
    """The state that ``fn(state, event)`` makes of all events, beginning with an empty dict.

    Calling it gives a shallow copy. The events since the last call are read when it is called, so it costs an
    append nothing.
    """

    def __init__(self, fn: Callable[[Any, Event], Any], read: Callable[[int], list[Event]]) -> None:
        self._fn = fn
        self._read = read
        #: The number of the last event taken in, and the state there.
        self._reached: tuple[int, Any] = 0, {}

    def __call__(self) -> Any:
        seq, state = self._reached
        for event in self._read(seq):
            seq, state = event.seq, self._fn(state, event)
        self._reached = seq, state
        return copy(state)
