"""Pooled greenlets while they wait for their next task. Spec: 05 §1."""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType

from greenlet import greenlet

from harnpy import Vm


def _frames(worker: greenlet) -> Iterator[FrameType]:
    frame = worker.gr_frame
    while frame is not None:
        yield frame
        frame = frame.f_back


def test_a_worker_that_waits_refers_to_no_greenlet() -> None:
    """A traceback may keep its frame until after the thread's end, when greenlet lets go of its own."""
    vm = Vm()
    held: list[dict[str, object]] = []

    def look() -> None:
        held.extend(frame.f_locals for worker in vm.tasks.pool for frame in _frames(worker))

    vm.register("look() -> nil", look)
    vm.run_source("await(spawn { 1 })\nlook()")
    assert any("task" in names for names in held)
    assert not [name for names in held for name, value in names.items() if isinstance(value, greenlet)]
