"""The sessions that a task drives, one inside the other: a stack of ids. Spec: 08 §1.1.

A loop enters its session for as long as it runs, so that everything called from inside it can ask for the
innermost id.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class SessionStack:
    """The ids that one task drives, innermost last."""

    __slots__ = ("ids",)

    def __init__(self, ids: tuple[str, ...] = ()) -> None:
        self.ids = list(ids)

    def current(self) -> str | None:
        return self.ids[-1] if self.ids else None

    @contextmanager
    def enter(self, id: str) -> Iterator[None]:
        """Drive ``id`` inside the block. A blank id isn't pushed."""
        if not id.strip():
            yield
            return
        self.ids.append(id)
        try:
            yield
        finally:
            self.ids.pop()

    def branch(self) -> SessionStack:
        """Return the stack of a task that starts here: a copy."""
        return SessionStack(tuple(self.ids))
