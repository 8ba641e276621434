"""The options of a loop that rests. Spec: 07 §12."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harnpy.reading.lenient import Options


@dataclass(frozen=True, slots=True)
class DaemonOptions:
    """``path`` is where snapshots go; ``watchdog_attempts`` 0 means no watchdog."""

    path: str | None
    resume_path: str | None
    wake_interval_ms: int | None
    watch_paths: list[str]
    consolidates: bool
    watchdog_attempts: int


def read_daemon(options: Options) -> DaemonOptions | None:
    """Return how the loop rests; None when it doesn't."""
    if not options.flag("daemon"):
        return None
    resume_path = _path(options, "resume_path")
    interval = options.integer("wake_interval_ms")
    return DaemonOptions(
        path=_path(options, "persist_path") or resume_path,
        resume_path=resume_path,
        wake_interval_ms=None if interval is None else max(0, interval),
        watch_paths=list(dict.fromkeys(options.strings("watch_paths") or ())),
        consolidates=options.value("consolidate_on_idle") is True,
        watchdog_attempts=options.count("idle_watchdog_attempts", 0),
    )


def _path(options: Options, key: str) -> str | None:
    path = options.string(key)
    return path if path and path.strip() else None
