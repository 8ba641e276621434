"""What sessions need from the world outside, in one place: time, ids, text of a value, a place for warnings.

The defaults are the real ones, for use as a library. A VM hands in its host's, so that a run can be
mocked, recorded and replayed.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def uuid7() -> str:
    """A UUIDv7 as text. Imports `uuid6` on the first call: it costs more than all of a short program."""
    from uuid6 import uuid7 as mint

    return str(mint())


def warn(topic: str, message: str) -> None:
    import logging

    logging.getLogger(topic).warning("%s", message)


class Effects:
    """``now() -> epoch seconds``, ``new_id() -> UUIDv7 text``, ``show(value) -> its display text``,
    ``warn(topic, message)``, ``cwd() -> absolute directory``."""

    __slots__ = ("cwd", "new_id", "now", "show", "warn")

    def __init__(
        self,
        now: Callable[[], float] = time.time,
        new_id: Callable[[], str] = uuid7,
        show: Callable[[Any], str] = str,
        warn: Callable[[str, str], None] = warn,
        cwd: Callable[[], str] = os.getcwd,
    ) -> None:
        self.now = now
        self.new_id = new_id
        self.show = show
        self.warn = warn
        self.cwd = cwd


def rfc3339(seconds: float, digits: int = 3) -> str:
    """Epoch seconds as RFC 3339 in UTC with that many decimals, e.g. ``2026-01-31T09:15:02.114Z``."""
    unit = 10**digits
    whole, fraction = divmod(round(seconds * unit), unit)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{fraction:0{digits}d}Z"
