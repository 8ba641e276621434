"""What a tool shows while it runs: the pieces of its result, as they come.

Spec: 07 §6.7 step 11, 10 §C16.1.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

from harnpy.session.events import TOOL_OUTPUT_DELTA
from harnpy.text.display import display

if TYPE_CHECKING:
    from harnpy.agent.loop.tool_calls import CheckedCall
    from harnpy.agent.tasks import Tasks
    from harnpy.session.turns.conversation import Conversation

#: Seconds between two pieces that are stored: at most four a second.
_PAUSE = 0.25


def in_pieces(result: Any, tasks: Tasks) -> Iterator[Any] | None:
    """Return the pieces of a result that comes in pieces: an iterator, asynchronous or not; else None."""
    if isinstance(result, Iterator):
        return result
    return _awaited(result, tasks) if isinstance(result, AsyncIterator) else None


def _awaited(pieces: AsyncIterator[Any], tasks: Tasks) -> Iterator[Any]:
    while True:
        try:
            piece = tasks.wait(pieces.__anext__())
        except StopAsyncIteration:
            return
        yield piece


class ShownOutput:
    """The output of one call. What the log doesn't have yet when it ends is in the call's own end."""

    def __init__(self, conversation: Conversation, checked: CheckedCall) -> None:
        self._conversation = conversation
        self._tool, self._id = checked.name, checked.call.get("id")
        self._clock = conversation.world.clock.monotonic

    def read(self, pieces: Iterator[Any]) -> str:
        """Return the whole text."""
        texts: list[str] = []
        stored, due = 0, self._clock()
        for piece in pieces:
            texts.append(display(piece))
            now = self._clock()
            if now >= due:
                self._store("".join(texts[stored:]))
                stored, due = len(texts), now + _PAUSE
        return "".join(texts)

    def _store(self, delta: str) -> None:
        if delta:
            shown = {"tool": self._tool, "id": self._id, "delta": delta}
            self._conversation.fact(TOOL_OUTPUT_DELTA, shown)
            self._conversation.store()
