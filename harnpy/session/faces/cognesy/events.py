"""Events of the runtime as classes, for `EventDispatcher.add_listener`. Spec: 10 §A3.3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from harnpy.session.faces.cognesy.values import SessionStatus
from harnpy.session.runtime import bus
from harnpy.session.runtime.bus import EventBus

if TYPE_CHECKING:
    from collections.abc import Callable

    Data = dict[str, Any]


@dataclass(frozen=True)
class SessionEvent:
    """What is told of a session."""

    called: ClassVar[str]
    session_id: str

    @classmethod
    def of(cls, data: Data) -> SessionEvent:
        """Return the event with the data of harnpy's."""
        raise NotImplementedError


@dataclass(frozen=True)
class _Stood(SessionEvent):
    version: int
    status: SessionStatus

    @classmethod
    def of(cls, data: Data) -> SessionEvent:
        return cls(data["session_id"], data["revision"], SessionStatus(data["status"]))


class SessionLoaded(_Stood):
    """A session was loaded."""

    called = bus.LOADED


class SessionSaved(_Stood):
    """A session is stored."""

    called = bus.SAVED


@dataclass(frozen=True)
class SessionActionExecuted(SessionEvent):
    """An action has run, and is about to be stored. ``after_version`` is what the save will make."""

    called = bus.EXECUTED
    action: str
    before_version: int
    after_version: int
    before_status: SessionStatus
    after_status: SessionStatus

    @classmethod
    def of(cls, data: Data) -> SessionEvent:
        return cls(
            data["session_id"],
            data["action"],
            data["before_revision"],
            data["after_revision"],
            SessionStatus(data["before_status"]),
            SessionStatus(data["after_status"]),
        )


@dataclass(frozen=True)
class _Failed(SessionEvent):
    error: str
    error_type: str

    @classmethod
    def of(cls, data: Data) -> SessionEvent:
        return cls(data["session_id"], data["error"], data["error_type"])


class SessionLoadFailed(_Failed):
    """A session couldn't be loaded; the exception goes on to the caller."""

    called = bus.LOAD_FAILED


class SessionSaveFailed(_Failed):
    """A session couldn't be stored; the exception goes on to the caller."""

    called = bus.SAVE_FAILED


Told = TypeVar("Told", bound=SessionEvent)


class EventDispatcher(EventBus):
    """Listeners by the class of the event. One that fails is logged and changes nothing."""

    def __init__(self, name: str = "") -> None:
        super().__init__()
        self.name = name
        self._agents: list[Callable[[Data], Any]] = []

    def add_listener(self, event: type[Told], listener: Callable[[Told], Any]) -> Callable[[], None]:
        """Call ``listener`` with each event of that class. Return what ends that."""
        return self.on(event.called, lambda name, data: listener(event.of(data)))  # type: ignore[arg-type]

    def add_agent_listener(self, listener: Callable[[Data], Any]) -> None:
        """Call ``listener`` with each event of agent loops (07 §9)."""
        self._agents.append(listener)

    def agent_event(self, event: Data) -> None:
        """Tell of an event of an agent loop."""
        for listener in self._agents:
            listener(event)
