"""What agents give and what whoever sends gets. Spec: 10 §C7.1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    Message = dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """An answer, as a text or as messages, with what it took.

    ``usage`` are tokens by name, ``cost`` is in USD; both, and ``model``, are of one step. Raises ValueError
    for a text beside messages.
    """

    text: str = ""
    messages: list[Message] | None = None
    usage: dict[str, Any] | None = None
    cost: float = 0.0
    model: str | None = None
    stop_reason: str = "completed"

    def __post_init__(self) -> None:
        if self.text and self.messages is not None:
            raise ValueError("a Reply takes `text` or `messages`, not both")


class Waiting(Exception):
    """Raised by an agent whose turn ends until something outside happens, which ``external_id`` names."""

    def __init__(self, reason: str, external_id: str | None = None) -> None:
        super().__init__(reason, external_id)
        self.reason = reason
        self.external_id = external_id


#: The ``reason`` of errors that say that a request is too long for its model.
OVERFLOW: Final = "context_overflow"


class ContextOverflow(Exception):
    """Raised by an agent whose request its model has refused as too long: the window is made smaller, and the
    agent called again."""

    reason = OVERFLOW


@dataclass(frozen=True)
class TurnResult:
    """What became of a turn. ``messages`` are those of the agent, ``text`` is what the last one says."""

    status: Literal["completed", "waiting", "stopped", "failed"]
    stop_reason: str
    text: str
    messages: list[Message]
    usage: dict[str, Any] | None
    cost: float
    steps: int
    turn_id: str
    session: Any


@dataclass(frozen=True)
class RunEvent:
    """A piece of a streamed answer (``kind`` ``chunk``), or in the end its ``result``."""

    kind: Literal["chunk", "result"]
    text: str = ""
    result: TurnResult | None = None
