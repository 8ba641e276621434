"""Doing several things at the same time, in the background too, and waiting, wherever agents run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from harnpy.faults import Interruption, MisuseError
from harnpy.llm.waiting import Blocking, Waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from harnpy.agent.context import AgentContext

    Calls = Sequence[Callable[[], Any]]


class Attempt(NamedTuple):
    """The outcome of one of several calls: its result, or the error that it raised."""

    position: int
    result: Any
    error: BaseException | None


class Tasks(Waiting, Protocol):
    """Tasks of a program. Where there are none, calls are made one after the other."""

    def together(self, calls: Calls) -> list[Any]:
        """Make the calls at the same time and return their results in order."""

    def as_they_end(self, calls: Calls, limit: int) -> Generator[Attempt, None, None]:
        """Make at most ``limit`` calls at a time and yield each attempt as it ends.

        Closing the iterator ends the calls that still run, and begins no others.
        """

    def when_idle(self, act: Callable[[], None]) -> None:
        """Act once the program has nothing to do but to wait."""


class OneTask(Blocking):
    """For users without tasks."""

    def together(self, calls: Calls) -> list[Any]:
        return [call() for call in calls]

    def as_they_end(self, calls: Calls, limit: int) -> Generator[Attempt, None, None]:
        return in_turn(calls, limit)

    def when_idle(self, act: Callable[[], None]) -> None:
        act()


def in_turn(calls: Calls, limit: int) -> Generator[Attempt, None, None]:
    """Make one call after the other, as `Tasks.as_they_end` does where nothing waits."""
    return (attempt(position, call) for position, call in enumerate(calls))


def attempt(position: int, call: Callable[[], Any]) -> Attempt:
    try:
        return Attempt(position, call(), None)
    except (Exception, Interruption) as error:
        return Attempt(position, None, error)


class Activity(Protocol):
    """A run in the background."""

    @property
    def ended(self) -> bool: ...

    def abort(self) -> None:
        """End it at once."""

    def collect(self) -> None:
        """Show its output where the caller prints."""


class Bell(Protocol):
    """A bell: tasks wait until somebody rings it."""

    def wait(self, outside: tuple[str, str] | None = None, seconds: float | None = None) -> None:
        """Wait, at most ``seconds``; may return early. ``outside`` describes what is awaited if no run can
        bring it about, and how to do so."""

    def ring(self) -> None: ...


class Background(Protocol):
    """Starts runs in the background."""

    def start(self, body: Any, context: AgentContext) -> Activity: ...

    def bell(self) -> Bell: ...


def id_of_handle(handle: Any, handle_kind: str, id_kind: str) -> str:
    """Return the id in a handle: the id itself, or a dict with it. Raises `MisuseError`."""
    id = handle
    if isinstance(handle, dict):
        id = handle.get("id")
        if id is None:
            raise MisuseError(f"{handle_kind} handle dict is missing an id field")
    if not isinstance(id, str):
        raise MisuseError(f"expected {handle_kind} handle or {id_kind} id")
    return id
