"""When a supervised child runs again after it ended, and when it does not. Spec: 05 §17."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

NEVER: Final = "never"
ON_FAILURE: Final = "on_failure"
ALWAYS: Final = "always"
MODES = (NEVER, ON_FAILURE, ALWAYS)


class RestartPolicy:
    """Times are in ms. ``most`` restarts are allowed, any number when it is None."""

    def __init__(
        self,
        mode: str = ON_FAILURE,
        most: int | None = None,
        window: float = 60_000,
        backoff: float = 0,
        longest_backoff: float = 30_000,
        factor: float = 2.0,
        jitter: int = 0,
        circuit_open: float | None = None,
    ) -> None:
        self.mode = mode
        self.most = most
        self.window = window
        self.backoff = backoff
        self.longest_backoff = max(longest_backoff, backoff)
        self.factor = max(factor, 1.0)
        self.jitter = jitter
        self.circuit_open = circuit_open

    def restarts_after(self, failed: bool) -> bool:
        return self.mode == ALWAYS or (failed and self.mode == ON_FAILURE)

    def delay(self, child: int, restarts: int) -> int:
        """Return the ms before restart number ``restarts``, counted from 0, of the child at that index."""
        try:
            grown = self.backoff * self.factor**restarts
        except OverflowError:
            grown = self.longest_backoff
        shift = ((child + 1) * 1103 + restarts * 9176) % (self.jitter + 1)
        return int(min(grown, self.longest_backoff)) + shift


class History:
    """The restarts of a child, and the ends that caused them, by their times in seconds."""

    def __init__(self, policy: RestartPolicy) -> None:
        self._policy = policy
        self._ends: list[float] = []
        self.restarts = 0

    def is_exhausted(self, now: float) -> bool:
        """Note an end after which the child should run again; return whether it may not."""
        policy = self._policy
        if policy.most is None:
            return False
        if policy.window <= 0:
            return self.restarts >= policy.most
        self._ends = [end for end in self._ends if (now - end) * 1000 <= policy.window] + [now]
        return len(self._ends) > policy.most

    def forget(self) -> None:
        self._ends.clear()
        self.restarts = 0
