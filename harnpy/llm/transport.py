"""How a reply is received: in pieces or whole, within which time, up to which size. Spec: 07 §1.2, §1.8."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.reading.lenient import Options

TIMEOUT = "HARN_LLM_TIMEOUT"
_NO = ("0", "false")


@dataclass(frozen=True, slots=True)
class Transport:
    """``timeout``: seconds for the whole call; ``idle_timeout``: seconds of silence."""

    stream: bool = True
    timeout: float | None = None
    idle_timeout: float | None = None


@dataclass(frozen=True, slots=True)
class Caps:
    """The most that is received of any reply: bytes of the response, events of its stream, seconds.

    They bound what a service can do to a program, far above what replies need. ``on_bytes()`` returns what is
    raised for too many bytes instead of a `CallError`.
    """

    bytes: int = 1 << 27
    events: int = 1_000_000
    seconds: float = 3600.0
    on_bytes: Callable[[], BaseException] | None = None


def read_transport(options: Options, env: Callable[[str], str | None]) -> Transport:
    return Transport(
        options.flag("stream", (env("HARN_LLM_STREAM") or "").lower() not in _NO),
        _seconds(options.integer("timeout")) or _seconds(env(TIMEOUT)),
        _seconds(options.integer("idle_timeout")),
    )


def _seconds(given: int | str | None) -> float | None:
    """A positive number of seconds; None, which is no limit, for anything else."""
    try:
        seconds = float(given or 0)
    except ValueError:
        return None
    return seconds if 0 < seconds < inf else None
