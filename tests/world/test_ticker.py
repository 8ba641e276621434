"""Ticks come from a thread of their own, and none comes after `stop`."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest

from harnpy.world import threads
from harnpy.world.threads import Ticker
from tests.support import PATIENCE, wait_until


def test_ticks_come_again_and_again_until_it_is_stopped() -> None:
    threads = {*sys._current_frames()}
    ticks: list[int] = []
    third = threading.Event()

    def tick() -> None:
        ticks.append(len(ticks))
        if len(ticks) == 3:
            third.set()

    running = Ticker(0.001, tick)
    assert third.wait(PATIENCE)
    running.stop()
    before = len(ticks)
    wait_until(lambda: sys._current_frames().keys() <= threads)
    assert len(ticks) == before


def test_stopping_waits_for_a_tick_that_is_under_way() -> None:
    began, go_on, done = threading.Event(), threading.Event(), threading.Event()

    def tick() -> None:
        began.set()
        assert go_on.wait(PATIENCE)
        done.set()

    running = Ticker(0.001, tick)
    assert began.wait(PATIENCE)
    stopping = threading.Thread(target=running.stop)
    stopping.start()
    assert stopping.is_alive()
    go_on.set()
    stopping.join(PATIENCE)
    assert done.is_set()


def test_without_memory_for_a_thread_it_is_an_error_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "start_new_thread", refuse)
    with pytest.raises(MemoryError):
        Ticker(1, lambda: None)
