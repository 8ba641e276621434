"""Pooled greenlets: what they hold, how often they switch, and the memory that one takes. Spec: 05 §1."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest
from greenlet import greenlet, settrace

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


def test_a_worker_that_waits_keeps_nothing_of_a_task_that_was_cancelled() -> None:
    """Found by a program: a permit that the cancelled task had captured was never free again."""
    assert Vm().run_source("""
        fn f() {
          let permit = sync_mutex_acquire("m")
          let t = spawn { sleep(1h)\n type_of(permit) }
          sleep(1)
          cancel(t)
        }
        f()
        return sync_mutex_acquire("m", 0) != nil
    """)


@pytest.mark.parametrize(
    ("source", "switches"),
    [
        # Once to the first task; the others begin on the stack that it has left. And back.
        ("parallel 100 { i -> i }", 2),
        # To each and back.
        ("for i in 0 to 100 exclusive { await(spawn { i }) }", 200),
    ],
)
def test_tasks_switch_no_more_than_they_must(source: str, switches: int) -> None:
    vm, events = Vm(), list[str]()

    def stop() -> None:
        settrace(before)

    def count(event: str, ends: tuple[greenlet, greenlet]) -> None:
        events.append(event)

    vm.register("stop() -> nil", stop)
    before = settrace(count)
    try:
        vm.run_source(f"{source}\nstop()")
    finally:
        settrace(before)
    assert events == ["switch"] * switches


def test_idle_workers_end_by_returning() -> None:
    """One that is dropped is thrown an exception, which takes longer than all of a small task's life."""
    vm, events, workers = Vm(), list[str](), list[greenlet]()

    def count(event: str, ends: tuple[greenlet, greenlet]) -> None:
        events.append(event)

    vm.register("keep() -> nil", lambda: workers.extend(vm.tasks.pool))
    before = settrace(count)
    try:
        vm.run_source("""
            parallel 3 { _ -> sleep(1) }
            let t = spawn { sleep(1h) }
            sleep(1)
            cancel(t)
            keep()
        """)
    finally:
        settrace(before)
    assert events.count("throw") == 1  # the one that was cancelled
    assert len(workers) == 3
    assert all(worker.dead for worker in workers)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_task_that_waits_takes_one_page_for_its_frames() -> None:
    vm, count, pages = Vm(), 2_000, list[int]()
    vm.register(
        "measure() -> nil", lambda: pages.append(int(Path("/proc/self/statm").read_text().split()[1]))
    )
    vm.run_source(f"""
        let go = channel("go")
        measure()
        parallel {count + 1} {{ i ->
          if i < {count} {{ receive(go) }} else {{ measure()\n close_channel(go) }}
        }}
    """)
    before, after = pages
    # Beside that page it has a copy of its C stack, 1.5 KB, and the objects of a task.
    assert (after - before) / count < 2.5
