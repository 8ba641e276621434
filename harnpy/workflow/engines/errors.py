"""The errors of durable runs, as one tree with stable codes. Spec: 10 §C11, §C19.

RunError [run]
├─ RunNotFound [not_found]      .run
├─ QueueNotFound [not_found]    .queue, .known
├─ RunExists [exists]           .run
├─ RunFailed [failed]           .run, .cause: what the run ended with, as text
├─ RunCancelled [cancelled]     .run, .reason
└─ ReplayDiverged [diverged]    .run, .asked, .recorded, .step
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from harnpy.faults import MisuseError
from harnpy.formats.suggestions import hint

if TYPE_CHECKING:
    from collections.abc import Collection


class RunError(MisuseError):
    """An engine could not do what was asked. What is stored has not changed."""

    code: ClassVar[str] = "run"


class RunNotFound(RunError):
    """There is no run of that id."""

    code = "not_found"

    def __init__(self, run: str) -> None:
        super().__init__(f"unknown run '{run}': `harnpy runs list` shows those that there are")
        self.run = run


class QueueNotFound(RunError):
    """Nobody has made a queue of that name. ``options`` are those of the command that makes it."""

    code = "not_found"

    def __init__(self, queue: str, known: Collection[str] = (), options: str = "") -> None:
        near = f"{hint(queue, known)}; " if known else ""
        super().__init__(
            f"unknown queue '{queue}': {near}`harnpy worker{options} --queue {queue}` makes it, and so does "
            f"engine.queue('{queue}')"
        )
        self.queue = queue
        self.known = known


def unended(run: str) -> RunError:
    """Return the error for a run that can't be deleted yet."""
    return RunError(f"run '{run}' hasn't ended: `harnpy runs cancel {run}` ends it")


class RunExists(RunError):
    """The id belongs to a run of another job."""

    code = "exists"

    def __init__(self, run: str) -> None:
        super().__init__(f"run '{run}' exists already, and is of another job: take another id")
        self.run = run


class RunFailed(RunError):
    """The run ended with an error, ``cause``."""

    code = "failed"

    def __init__(self, run: str, cause: str) -> None:
        super().__init__(f"run '{run}' failed: {cause}")
        self.run = run
        self.cause = cause


class RunCancelled(RunError):
    """The run was cancelled."""

    code = "cancelled"

    def __init__(self, run: str, reason: str = "") -> None:
        super().__init__(f"run '{run}' was cancelled" + (f": {reason}" if reason else ""))
        self.run = run
        self.reason = reason


class ReplayDiverged(RunError):
    """The job asks for something else than its record has at that step: the program has changed."""

    code = "diverged"

    def __init__(self, run: str, asked: str, recorded: str | None, step: int) -> None:
        found = f"its record has {recorded} at step {step}" if recorded else f"its record ends at step {step}"
        super().__init__(f"run '{run}' asked for {asked}, {found}")
        self.run = run
        self.asked = asked
        self.recorded = recorded
        self.step = step
