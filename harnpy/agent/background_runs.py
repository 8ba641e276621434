"""What workers and daemons need to run in the background of a program, and to wait for one another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from harnpy.agent.context import AgentContext


class Activity(Protocol):
    """A run in the background."""

    @property
    def ended(self) -> bool: ...

    def abort(self) -> None:
        """End it at once."""

    def collect(self) -> None:
        """Show its output where the caller prints."""


class Bell(Protocol):
    """Where tasks wait until somebody rings."""

    def wait(self, outside: tuple[str, str] | None = None, seconds: float | None = None) -> None:
        """Wait, at most ``seconds``; may return early. ``outside`` describes what is awaited if no run can
        bring it about, and how to do so."""

    def ring(self) -> None: ...


class Background(Protocol):
    """Starts runs in the background."""

    def start(self, body: Any, context: AgentContext) -> Activity: ...

    def bell(self) -> Bell: ...
