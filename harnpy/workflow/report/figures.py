"""Formatting figures for people: durations, money, counts, times."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

NONE = "–"


def duration(ms: float | None) -> str:
    """Format a duration: ``84 ms``, ``1.2 s``, ``3 min 5 s``, ``2 h 4 min``."""
    if ms is None:
        return NONE
    if ms < 1000:
        return f"{ms:.0f} ms"
    if ms < 59_950:
        return f"{ms / 1000:.1f} s"
    seconds = round(ms / 1000)
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60} min"


def money(cost: float | None) -> str:
    if cost is None:
        return NONE
    return f"${cost:.2f}" if cost >= 1 or not cost else f"${cost:.4f}"


def count(number: int | None) -> str:
    return NONE if number is None else f"{number:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def plural(number: int, what: str) -> str:
    return f"{count(number)} {what}{'' if number == 1 else 's'}"


def moment(stamp: Any) -> float | None:
    """Return an RFC 3339 time as ms since 1970; None for anything else."""
    try:
        read = datetime.fromisoformat(stamp)
    except (TypeError, ValueError):
        return None
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp() * 1000


def elapsed(part: Mapping[str, Any]) -> float | None:
    """Return how long something with a start and an end took."""
    started, finished = moment(part.get("started_at")), moment(part.get("finished_at"))
    return None if started is None or finished is None else max(0.0, finished - started)


def clock(stamp: Any) -> str:
    """Format a time to the second; anything else is returned unchanged."""
    at = moment(stamp)
    if at is None:
        return str(stamp) if stamp else NONE
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
