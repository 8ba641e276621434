"""Which session is being driven right now: a stack of ids, one a task. Spec: 08 §1.1.

A loop enters its session for as long as it runs, so that everything called from inside it, however deep,
can ask for the innermost id.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class SessionStack:
    """The ids being driven in one task, innermost last."""

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
        """The stack of a task started here: it begins where this one stands."""
        return SessionStack(tuple(self.ids))
