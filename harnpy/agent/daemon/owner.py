"""The owner of a daemon: where its events come from, and who is notified of its state. Spec: 07 §12."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.agent.daemon.daemon_snapshot import DaemonSnapshot


class Owner(Protocol):
    """Whatever keeps a daemon running."""

    #: Whether anything may ever come for the daemon.
    listening: bool

    def waiting(self) -> bool:
        """Whether something is waiting for the daemon."""

    def take(self) -> str:
        """Return the first waiting item, as a user message. What was taken before is done."""

    def saved(self, snapshot: DaemonSnapshot) -> None:
        """Receive the state of the daemon, which rests or has ended."""

    def wait(self, seconds: float) -> None:
        """Wait at most so long, while other tasks run. May return early."""


class NoOwner:
    """The owner of a daemon that a program runs itself."""

    listening = False

    def __init__(self, sleep: Callable[[float], Any]) -> None:
        self._sleep = sleep

    def waiting(self) -> bool:
        return False

    def take(self) -> str:
        raise AssertionError("nothing is waiting")

    def saved(self, snapshot: DaemonSnapshot) -> None:
        """Ignore it."""

    def wait(self, seconds: float) -> None:
        self._sleep(seconds)
