"""A clock for programs that never end by themselves."""

from __future__ import annotations

import time

#: So that half a second of a program's time costs a test a fortieth of a second.
SPEED = 20


class CpuClock:
    """Runs `SPEED` times as fast as this process computes; sleeping takes no time."""

    def __init__(self) -> None:
        self.slept = 0.0

    def now(self) -> float:
        return 1_700_000_000 + self.monotonic()

    def monotonic(self) -> float:
        return time.process_time() * SPEED + self.slept

    def sleep(self, seconds: float | None) -> None:
        assert seconds is not None, "everybody waits for somebody, and nobody comes"
        self.slept += seconds
