"""How long something may take. Spec: 10 §A1.17, §C7."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING

from harnpy.session.errors import ExecutionTimeout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.session.runtime.calling import Caller


@contextmanager
def within(seconds: float | None, call: Caller, session_id: str) -> Iterator[None]:
    """Stop what ``call`` calls once it has taken so long; None: never. Raises `ExecutionTimeout` then.

    What is async is cancelled; what isn't ends when it next asks whether it should.
    """
    if seconds is None:
        yield
        return
    limit = _Limit(call)
    timer = Timer(seconds, limit.stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    except asyncio.CancelledError as error:
        if limit.is_over:
            raise ExecutionTimeout(session_id, seconds) from error
        raise
    finally:
        timer.cancel()


class _Limit:
    def __init__(self, call: Caller) -> None:
        self._call = call
        self.is_over = False

    def stop(self) -> None:
        self.is_over = True
        self._call.stop()
