"""Who keeps a daemon, and what the two have to do with each other. Spec: 07 §12."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.agent.daemon.snapshot import DaemonSnapshot


class Owner(Protocol):
    """Who keeps a daemon running, and may have something for it."""

    #: Whether something may come at all.
    listening: bool

    def waiting(self) -> bool:
        """Whether there is something for the daemon."""

    def take(self) -> str:
        """The first of it, as a message from the user; what was taken before has been dealt with."""

    def saved(self, snapshot: DaemonSnapshot) -> None:
        """The daemon rests or has ended, and this is its state."""

    def wait(self, seconds: float) -> None:
        """Let the daemon wait, at most so long; other tasks run meanwhile. May return early."""


class Nobody:
    """The owner of a daemon that a program runs itself."""

    listening = False

    def __init__(self, sleep: Callable[[float], Any]) -> None:
        self._sleep = sleep

    def waiting(self) -> bool:
        return False

    def take(self) -> str:
        raise AssertionError("nothing is waiting")

    def saved(self, snapshot: DaemonSnapshot) -> None:
        """Nobody wants to know."""

    def wait(self, seconds: float) -> None:
        self._sleep(seconds)
