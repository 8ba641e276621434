"""Programs of the system that agents and workflows run."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Finished(NamedTuple):
    """A program that ran: ``status`` is -1 when a signal ended it."""

    stdout: str
    stderr: str
    status: int


class RunProgram(Protocol):
    def __call__(self, argv: Sequence[str], cwd: str | None, env: Mapping[str, str]) -> Finished:
        """Run a program without input to its end. Raises OSError when it can't be started.

        ``cwd`` may be relative to the program's; None is where the task works. ``env`` adds to the task's.
        """
