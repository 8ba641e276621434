"""Reading a stream that may keep its reader waiting, for at most some time."""

from __future__ import annotations

from threading import Event, Thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Reading:
    """A call that reads, in a thread of its own, which nothing can interrupt: it may outlast who asked."""

    def __init__(self, read: Callable[[], str]) -> None:
        self._read = read
        self._text = ""
        self._error: BaseException | None = None
        self._done = Event()
        Thread(target=self._run, name="harnpy input", daemon=True).start()

    def _run(self) -> None:
        try:
            self._text = self._read()
        except BaseException as error:
            self._error = error
        self._done.set()

    def text(self, seconds: float | None) -> str:
        """What was read. Raises TimeoutError when it is not there after ``seconds``."""
        if not self._done.wait(seconds):
            raise TimeoutError
        if self._error is not None:
            raise self._error
        return self._text
