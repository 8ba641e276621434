"""When a request is sent again, and after which pause. Pure. Spec: 04 §21.1."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import TYPE_CHECKING

from harnpy.net.http.errors import HttpError
from harnpy.text.display import display

if TYPE_CHECKING:
    from harnpy.net.http.reading import Given

STATUSES = frozenset((408, 429, 500, 502, 503, 504))
METHODS = frozenset(("GET", "HEAD", "PUT", "DELETE", "OPTIONS"))
#: Failures without a response that may pass, as categories of 02 §19.8.
PASSING = ("timeout", "transient_network")
_SAYS_WHEN = (429, 503)
_LONGEST = 60.0
_JITTER = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """``most`` attempts after the first; ``backoff``: seconds of the first pause."""

    most: int = 0
    backoff: float = 1.0
    statuses: frozenset[int] = STATUSES
    methods: frozenset[str] = METHODS
    respects: bool = True

    def after_status(self, attempt: int, method: str, status: int) -> bool:
        """Whether to try again after the response to ``attempt``, counted from 0."""
        return self.after_failure(attempt, method) and status in self.statuses

    def after_failure(self, attempt: int, method: str) -> bool:
        """Whether to try again when ``attempt`` got no response, for a reason that may pass."""
        return attempt < self.most and method in self.methods

    def pause(self, attempt: int, chance: float) -> float:
        """Return the seconds to wait after ``attempt``; ``chance`` is from 0 to below 1."""
        # A float has no power of two for the thousandth attempt.
        base = min(self.backoff * 2.0 ** min(attempt, 64), _LONGEST)
        return min(base * (1 - _JITTER + 2 * _JITTER * chance), _LONGEST)

    def asked_for(self, status: int, retry_after: str | None, now: float) -> float | None:
        """Return the seconds that a response asks to wait, up to 60; ``now`` is in epoch seconds."""
        if not self.respects or status not in _SAYS_WHEN or retry_after is None:
            return None
        seconds = _seconds(retry_after, now)
        return None if seconds is None else min(max(seconds, 0.0), _LONGEST)


def read_retries(given: Given) -> Retries:
    """Raises `HttpError`."""
    inner = given.inner("retry")
    most = inner.count("max", default=given.count("retries", default=0))
    backoff = inner.seconds("backoff_ms", least=0)
    if backoff is None:
        backoff = given.seconds("backoff", least=0)
    statuses, methods = given.items("retry_on"), given.items("retry_methods")
    return Retries(
        most=most,
        backoff=1.0 if backoff is None else backoff,
        statuses=STATUSES if statuses is None else frozenset(map(_status, statuses)),
        methods=METHODS if methods is None else frozenset(display(each).upper() for each in methods),
        respects=given.flag("respect_retry_after", True),
    )


def _status(value: object) -> int:
    if type(value) is not int:
        raise HttpError(f"http: retry_on must be a list of statuses, got {display(value)}")
    return value


def _seconds(text: str, now: float) -> float | None:
    try:
        seconds = float(text)
        return seconds if isfinite(seconds) else None
    except ValueError:
        pass
    try:
        when = parsedate_to_datetime(text)
        # A zone of -0000, or none, would else be taken for the machine's own.
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() - now
    except (ValueError, OverflowError):
        return None
