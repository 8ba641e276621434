"""A stream between who answers and who reads, each of which may be a thread or a task. Spec: 10 §C7.1.

Who answers goes on once the reader asks for more: a reader that stops is never behind. Both wait for futures
of `concurrent.futures`, which a loop can wait for, too.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future
from threading import Lock
from typing import Any


class Pipe:
    """Items in order, and an end."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._items: deque[tuple[Any, Future[None]]] = deque()
        self._reader: Future[Any] | None = None
        self._shown: Future[None] | None = None
        self._is_closed = False
        self._error: BaseException | None = None

    def put(self, item: Any) -> Future[None]:
        """Give the reader an item. The future has a result when the reader asks for the next one."""
        seen: Future[None] = Future()
        with self._lock:
            if self._is_closed:
                seen.set_result(None)
            else:
                self._items.append((item, seen))
                self._serve()
        return seen

    def get(self) -> Future[Any]:
        """Return the next item, None behind the last one, or the error that the pipe ended with."""
        with self._lock:
            self._let_go_on()
            reader: Future[Any] = Future()
            self._reader = reader
            self._serve()
        return reader

    def end(self, error: BaseException | None = None) -> None:
        """Tell the reader that no more comes."""
        with self._lock:
            self._is_closed = True
            self._error = error
            self._serve()

    def close(self) -> None:
        """Tell who answers that nobody reads any more."""
        with self._lock:
            self._is_closed = True
            self._let_go_on()
            while self._items:
                _resolve(self._items.popleft()[1])

    def _let_go_on(self) -> None:
        shown, self._shown = self._shown, None
        if shown is not None:
            _resolve(shown)

    def _serve(self) -> None:
        """Give a waiting reader what there is."""
        if self._reader is None or not (self._items or self._is_closed):
            return
        reader, self._reader = self._reader, None
        if not reader.set_running_or_notify_cancel():
            return
        if self._items:
            item, self._shown = self._items.popleft()
            reader.set_result(item)
        elif self._error is not None:
            reader.set_exception(self._error)
        else:
            reader.set_result(None)


def _resolve(seen: Future[None]) -> None:
    if seen.set_running_or_notify_cancel():  # a cancelled task has cancelled what it waits for
        seen.set_result(None)
