"""The effects that rules restrict: what a program may have the world do. Spec: 07 §8.5."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Protocol

    class Guard(Protocol):
        """The rules in force at the moment of a call; a ``target`` is a path, a program, a URL or a name."""

        def look(self) -> object:
            """Raise when what the program waits for comes too late: between two looks at a pipe."""

        def in_force(self) -> bool:
            """Return whether anything is restricted."""

        def refuses(self, effect: str, target: str) -> str | None:
            """Return why the effect is not allowed; None when it is."""

        def require(self, effect: str, target: str) -> None:
            """Raise unless the effect is allowed."""

        def refuses_place(self, effect: str, path: str, named: str) -> str | None:
            """Return why an effect may not be there.

            ``path`` is absolute and free of links, ``named`` the absolute path that led to it.
            """

        def require_place(self, effect: str, path: str, named: str) -> None:
            """Raise unless an effect may be there."""

        def held(self) -> Guard:
            """A guard with the rules of this moment."""


READ, LIST, WRITE, DELETE = "read", "list", "write", "delete"
PROCESS, NETWORK, ENVIRONMENT = "process", "network", "environment"
MODEL, PERSON, STATE = "model", "person", "state"

#: How messages speak of each effect on a target.
_SHOWN = {
    READ: "reading '{}'",
    LIST: "looking up '{}'",
    WRITE: "writing '{}'",
    DELETE: "deleting '{}'",
    PROCESS: "running '{}'",
    NETWORK: "connecting to '{}'",
    ENVIRONMENT: "reading the variable '{}'",
    MODEL: "calling a model of '{}'",
    PERSON: "asking a person",
    STATE: "keeping '{}'",
}

EFFECTS = frozenset(_SHOWN)


def described(effect: str, target: str) -> str:
    """Return what would be done, for messages: ``writing 'notes.txt'``."""
    return _SHOWN[effect].format(target)


def without(granted: Iterable[str]) -> frozenset[str]:
    """Return the effects that aren't ``granted``. Raises ValueError for a name that is none."""
    if isinstance(granted, str):
        raise ValueError(f"capabilities are a collection of names, not the string {granted!r}")
    granted = frozenset(granted)
    unknown = sorted(granted - EFFECTS)
    if unknown:
        raise ValueError(f"unknown capability {unknown[0]!r}: there are {', '.join(_SHOWN)}")
    return EFFECTS - granted
