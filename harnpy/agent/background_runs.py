"""What workers and daemons need to run in the background of a program, and to wait for one another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from harnpy.faults import MisuseError

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
