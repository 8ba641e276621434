"""What a session's log tells whoever asks. Spec: 10 §A1.6, §C3."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from harnpy.session import events as kinds
from harnpy.session.parts.reading import Reading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harnpy.session.events import Event
    from harnpy.session.kept.info import SessionInfo
    from harnpy.session.parts.reductions import Reduction
    from harnpy.session.turns.turn_info import TurnInfo
    from harnpy.session.views import View

    Message = dict[str, Any]

State = TypeVar("State")

_WAITS = frozenset({kinds.WAIT_STARTED, kinds.APPROVAL_REQUESTED})
_GOES_ON = frozenset({kinds.WAIT_RESOLVED, kinds.APPROVAL_RESOLVED, kinds.APPROVAL_CANCELED})
_MESSAGES = frozenset({kinds.MESSAGE_ADDED})


class ModelSettings(NamedTuple):
    """What later turns use. ``model`` None is the default one, ``tools`` None those that nobody chose."""

    model: Any = None
    thinking: str = "off"
    tools: list[str] | None = None


class Questions(Reading):
    """The part of a `Session` that answers."""

    __slots__ = ()

    view: View
    reduction: Reduction | None

    @property
    def revision(self) -> int:
        raise NotImplementedError

    def get(self, key: str, default: Any = None) -> Any:
        raise NotImplementedError

    @property
    def info(self) -> SessionInfo:
        """The session as lists show it."""
        from harnpy.session.kept.info import info_of_log

        return info_of_log(self.origin, self.read(), self.revision)

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for an approval or for something outside."""
        last = next(self.stream.read(types=_WAITS | _GOES_ON, reverse=True, limit=1), None)
        return last is not None and last.type in _WAITS

    @property
    def total_cost(self) -> float:
        """What all events have cost, in USD."""
        return float(sum(event.cost for event in self.stream.read()))

    @property
    def model_settings(self) -> ModelSettings:
        """The model, how much it thinks, and its tools, as they were chosen last."""
        return ModelSettings(self.get("model"), self.get("thinking", "off"), self.get("tools"))

    def last_event(self) -> Event | None:
        """Return the last event, as this session's."""
        last = self.stream.last()
        return None if last is None else self.event(last.seq)

    def last_message(self) -> Message | None:
        """Return the last message that was ever added."""
        return next(self._newest(), None)

    def last_assistant_message(self) -> Message | None:
        """Return the last message of an assistant that says something and calls no tool."""
        return next((message for message in self._newest() if _answers(message)), None)

    def reduce(self, fn: Callable[[State, Event], State], init: State) -> State:
        """Return the state that ``fn(state, event)`` makes of all events, beginning with ``init``."""
        return reduce(fn, self.read(), init)

    @property
    def state(self) -> Any:
        """What the reducer makes of the log that was attached last; an empty dict without any."""
        return {} if self.reduction is None else self.reduction()

    def turns(self) -> list[TurnInfo]:
        """Return the turns that the conversation consists of, oldest first."""
        from harnpy.session.turns.turn_info import turns_of

        return turns_of(self.read(), self.view.turns.items())

    def _newest(self) -> Iterator[Message]:
        return (event.body for event in self.stream.read(types=_MESSAGES, reverse=True))


def _answers(message: Message) -> bool:
    if message.get("role") != "assistant" or message.get("tool_calls"):
        return False
    content = message.get("content")
    if isinstance(content, list):
        kinds_of_parts = {part.get("type") for part in content if isinstance(part, dict)}
        return bool(content) and "tool_use" not in kinds_of_parts
    said = any(isinstance(text, str) and text.strip() for text in (content, message.get("reasoning")))
    return said or bool(message.get("thinking_blocks"))
