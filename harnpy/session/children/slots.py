"""How many children run at once: first come, first served. Spec: 10 §A1.15."""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Use = Callable[[], object]


class Slots:
    """``limit`` of them; None: as many as anybody wants. Who waits for one costs no thread."""

    def __init__(self, limit: int | None) -> None:
        self._free = limit
        self._waiting: deque[Use] = deque()
        self._lock = Lock()

    def take(self, use: Use) -> None:
        """Call ``use()`` once there is a slot for it, now or when somebody gives one."""
        with self._lock:
            if self._free == 0:
                self._waiting.append(use)
                return
            if self._free is not None:
                self._free -= 1
        use()

    def give(self) -> None:
        """Give a slot to whoever has waited longest."""
        with self._lock:
            if self._free is None:
                return
            if not self._waiting:
                self._free += 1
                return
            use = self._waiting.popleft()
        use()

    def leave(self, use: Use) -> bool:
        """Wait no more. Return False if that has its slot, or never asked for one."""
        with self._lock:
            if use not in self._waiting:
                return False
            self._waiting.remove(use)
            return True
