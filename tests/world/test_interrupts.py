"""A signal wakes a loop that waits, whichever thread receives it."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from harnpy.world.threads import Wakeful
from tests.support import PATIENCE


@contextmanager
def handled_by(handler: Callable[..., object]) -> Iterator[None]:
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, before)


def raised_elsewhere() -> None:
    """Raise a signal in another thread, most likely when this one waits."""

    def send() -> None:
        time.sleep(0.05)
        signal.raise_signal(signal.SIGUSR1)

    threading.Thread(target=send).start()


def test_a_signal_that_another_thread_receives_wakes_the_loop() -> None:
    loop = asyncio.new_event_loop()
    wakeful = Wakeful(loop)
    came, late = loop.create_future(), []
    patience = loop.call_later(PATIENCE, late.append, "woken by the timer")
    with handled_by(lambda *_: came.set_result(None)):
        raised_elsewhere()
        loop.run_until_complete(came)
    patience.cancel()
    wakeful.close()
    loop.close()
    assert late == []


def test_who_was_told_of_signals_before_still_is() -> None:
    outer, inner = asyncio.new_event_loop(), asyncio.new_event_loop()
    told, came = outer.create_future(), inner.create_future()
    first = Wakeful(outer)
    second = Wakeful(inner)
    with handled_by(lambda *_: came.set_result(None)):
        raised_elsewhere()
        inner.run_until_complete(came)
        inner.run_until_complete(asyncio.sleep(0))
    second.close()
    outer.call_later(PATIENCE, told.set_result, "nothing")
    outer.add_reader(first._reader, lambda: told.done() or told.set_result(first._reader.recv(8)))
    assert outer.run_until_complete(told) == bytes([signal.SIGUSR1])
    first.close()
    assert signal.set_wakeup_fd(-1) == -1
    outer.close()
    inner.close()


def test_threads_that_hear_no_signals_may_wait_too() -> None:
    done = []

    def wait() -> None:
        loop = asyncio.new_event_loop()
        wakeful = Wakeful(loop)
        loop.run_until_complete(asyncio.sleep(0))
        wakeful.close()
        loop.close()
        done.append(True)

    thread = threading.Thread(target=wait)
    thread.start()
    thread.join()
    assert done == [True]
