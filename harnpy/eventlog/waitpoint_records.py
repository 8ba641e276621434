"""What a waitpoint is, what a wait came to, and how asking for either goes wrong. Spec: 06 §28, 10 §C18.

Times are RFC 3339 texts in UTC, with milliseconds.
"""

from __future__ import annotations

import re
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.eventlog.errors import LogSerdeError
from harnpy.eventlog.log_events import canonical
from harnpy.faults import NamedMisuse
from harnpy.reading.dicts import detached
from harnpy.world.clock import milliseconds, rfc3339

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

OPEN, COMPLETED, CANCELLED = "open", "completed", "cancelled"
TIMED_OUT, INTERRUPTED = "timed_out", "interrupted"

_PLAIN = re.compile(r"[A-Za-z0-9._-]{1,128}")
_DIGITS = 32


class WaitpointError(NamedMisuse):
    """What was asked of waitpoints or monitors can't be done. Nothing was written."""


class UnknownWaitpoint(WaitpointError):
    """``id`` names no waitpoint; ``verb`` is what should have been done to it."""

    def __init__(self, verb: str, id: str) -> None:
        super().__init__(f"waitpoint.{verb}: unknown waitpoint '{id}'")
        self.verb = verb
        self.id = id

    def message_from(self, builtin: str) -> str:
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.verb, self.id)


class Waitpoint(NamedTuple):
    """Something that happens at most once: it is ``open``, then ``completed`` or ``cancelled``."""

    id: str
    status: str = OPEN
    created_at: str | None = None
    completed_at: str | None = None
    cancelled_at: str | None = None
    completed_by: str | None = None
    cancelled_by: str | None = None
    value: Any = None
    #: Why it was cancelled.
    reason: str | None = None
    metadata: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        return self._asdict()


class Changed(NamedTuple):
    """A waitpoint, and whether it was this call that made it what it is."""

    waitpoint: Waitpoint
    changed: bool

    def to_dict(self) -> dict[str, Any]:
        return {**self.waitpoint.to_dict(), "changed": self.changed}


class WaitResult(NamedTuple):
    """What a wait came to. ``status``: ``completed``, ``cancelled``, ``timed_out`` or ``interrupted``.

    ``waitpoints`` are as they were when it was looked at, in the order in which they were given;
    ``resolved_at`` is None for a wait that was interrupted: it can be entered again.
    """

    wait_id: str
    waitpoint_ids: Sequence[str]
    status: str
    started_at: str
    resolved_at: str | None
    deadline_at: str | None
    waitpoints: Sequence[Waitpoint]

    def to_dict(self) -> dict[str, Any]:
        points = [point.to_dict() for point in self.waitpoints]
        return {**self._asdict(), "waitpoint_ids": list(self.waitpoint_ids), "waitpoints": points}


def topic_of(family: str, id: str) -> str:
    """Return the topic of something by its id. Ids that a topic's name can't hold are there by their hash."""
    if _PLAIN.fullmatch(id):
        return f"{family}.{id}"
    return f"{family}-{sha256(id.encode('utf-8', 'surrogatepass')).hexdigest()[:_DIGITS]}"


def checked_id(id: Any, what: str = "id") -> str:
    """Return the id. Raises `WaitpointError` for what is no text, or blank."""
    if not isinstance(id, str) or not id.strip():
        raise WaitpointError(f"`{what}` must be a non-empty string")
    return id


def checked_json(value: Any, what: str) -> Any:
    """Return a copy of a JSON value. Raises `WaitpointError` for any other."""
    try:
        canonical(value)
    except LogSerdeError:
        raise WaitpointError(f"`{what}` must be JSON-serializable") from None
    return detached(value)


def moment_text(ms: int) -> str:
    """Return a time, in milliseconds since 1970, as records have it."""
    return rfc3339(ms / 1000)


def moment_ms(text: str) -> int:
    """Return what `moment_text` was made of."""
    return milliseconds(datetime.fromisoformat(text).timestamp())
