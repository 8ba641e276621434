"""Processes that run tests. They end with the command, and only the command receives Ctrl+C."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from typing import Any

from harnpy.cli import INTERRUPTED
from harnpy.cli.process import end_children

_SAFE_PATH = "PYTHONSAFEPATH"


@contextmanager
def worker_processes(count: int) -> Iterator[Callable[..., Iterator[Any]]]:
    """Yield an ordered `map` over that many processes; they end with the block, however that is left."""
    inherited = os.environ.get(_SAFE_PATH)
    with _safe_path(inherited):
        pool = ProcessPoolExecutor(count, get_context("spawn"), _begin, (inherited,))

    def ordered(work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        with _interrupts_held(), _safe_path(inherited):
            return pool.map(work, items)

    try:
        yield ordered
    except BaseException:
        for process in active_children():
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Receive Ctrl+C after the block. The processes that start in it inherit that, and don't receive it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _safe_path(inherited: str | None) -> Iterator[None]:
    """Let interpreters that start in the block import no module of the working directory."""
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        _set_safe_path(inherited)


def _set_safe_path(value: str | None) -> None:
    if value is None:
        os.environ.pop(_SAFE_PATH, None)
    else:
        os.environ[_SAFE_PATH] = value


def _begin(safe_path: str | None) -> None:
    """In a worker: ignore Ctrl+C, in a way that programs which it starts do not inherit."""
    _set_safe_path(safe_path)
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    signal.signal(signal.SIGTERM, _end)


def _end(*_: object) -> None:
    end_children()
    os._exit(INTERRUPTED)
