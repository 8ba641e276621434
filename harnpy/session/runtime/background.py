"""Compactions that nobody waits for: one at a time for each session. Spec: 10 §A1.17, §C7."""

from __future__ import annotations

from concurrent.futures import Future
from threading import Lock, Thread, current_thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.session.resize.report import ResizeReport

    Result = Future[ResizeReport | None]
    Compact = Callable[[str, str | None], ResizeReport | None]

#: Seconds that one may take.
LIMIT = 300.0


class Compactions:
    """What is asked for while one runs is one more when that is over, with the strategy asked for last."""

    def __init__(self, compact: Compact) -> None:
        self._compact = compact
        self._lock = Lock()
        self._next: dict[str, tuple[str | None, Result] | None] = {}
        self._threads: set[Thread] = set()

    def ask(self, id: str, strategy: str | None) -> Result:
        """Have a session compacted, and return what becomes of it. Until that begins it can be cancelled."""
        with self._lock:
            if id in self._next:
                waiting = self._next[id]
                future: Result = Future() if waiting is None or waiting[1].cancelled() else waiting[1]
                self._next[id] = strategy, future
                return future
            future = Future()
            self._next[id] = None
            thread = Thread(
                target=self._work, args=(id, strategy, future), name=f"compaction of {id}", daemon=True
            )
            self._threads.add(thread)
            thread.start()
            return future

    def close(self) -> None:
        """Wait for those that run; what waits behind them is cancelled."""
        with self._lock:
            for id, waiting in self._next.items():
                if waiting is not None:
                    waiting[1].cancel()
                    self._next[id] = None
            threads = list(self._threads)
        for thread in threads:
            thread.join()

    def _work(self, id: str, strategy: str | None, future: Result) -> None:
        asked: tuple[str | None, Result] | None = strategy, future
        while asked is not None:
            strategy, future = asked
            if future.set_running_or_notify_cancel():
                self._settle(future, id, strategy)
            with self._lock:
                asked = self._next.pop(id)
                if asked is not None:
                    self._next[id] = None
                else:
                    self._threads.discard(current_thread())

    def _settle(self, future: Result, id: str, strategy: str | None) -> None:
        try:
            report = self._compact(id, strategy)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(report)
