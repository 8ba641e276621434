"""Waits for waitpoints against a model of them: long random runs of two processes. Spec: 10 §C18."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from harnpy.eventlog import MemoryEventLog
from harnpy.eventlog.waitpoints import Waiting, Waitpoints
from tests.counts import COUNT

POINTS = ["a", "b", "c d"]
#: What each wait is for, and whether for all of it.
WAITS = {"w1": (["a"], True), "w2": (["c d", "a"], True), "w3": (["b", "c d"], False), "w4": (POINTS, True)}
ids, waits, processes = st.sampled_from(POINTS), st.sampled_from(sorted(WAITS)), st.sampled_from([0, 1])


class Machine(RuleBasedStateMachine):
    """``ends`` and ``deadlines`` are of waits, ``points`` the status and value of each waitpoint."""

    @initialize()
    def begin(self) -> None:
        self.log, self.time = MemoryEventLog(), 1_700_000_000.0
        self.processes = [Waitpoints(self.log, now=lambda: self.time) for _ in range(2)]
        self.points: dict[str, tuple[str, Any]] = {}
        self.deadlines: dict[str, float | None] = {}
        self.ends: dict[str, str] = {}
        self.open: dict[tuple[int, str], Waiting] = {}

    @rule(process=processes, id=ids, value=st.integers(), create=st.booleans())
    def complete(self, process: int, id: str, value: int, create: bool) -> None:
        if id in self.points or create:
            self.end(self.processes[process].complete(id, value, create=create), id, ("completed", value))

    @rule(process=processes, id=ids)
    def cancel(self, process: int, id: str) -> None:
        if id in self.points:
            self.end(self.processes[process].cancel(id), id, ("cancelled", None))

    def end(self, done: Any, id: str, wanted: tuple[str, Any]) -> None:
        before = self.points.get(id, ("open", None))
        assert done.changed == (before[0] == "open")
        self.points[id] = wanted if done.changed else before
        assert (done.waitpoint.status, done.waitpoint.value) == self.points[id]

    @rule(process=processes, wait=waits, timeout=st.sampled_from([None, 0, 5, 60]))
    def enter(self, process: int, wait: str, timeout: int | None) -> None:
        names, every = WAITS[wait]
        order = names if process else names[::-1]
        entered = self.processes[process].enter(order, wait_id=wait, timeout=timeout, all=every)
        self.open[process, wait] = entered
        self.deadlines.setdefault(wait, None if timeout is None else self.time + timeout)
        for id in names:
            self.points.setdefault(id, ("open", None))

    @rule(process=processes, wait=waits)
    def look(self, process: int, wait: str) -> None:
        if (process, wait) in self.open:
            result = self.open[process, wait].look()
            wanted = self.ends.get(wait) or self.due(wait)
            assert (result and result.status) == wanted
            if result is not None:
                self.ends[wait] = result.status
                assert {(point.id, point.status, point.value) for point in result.waitpoints} == {
                    (id, *self.points[id]) for id in WAITS[wait][0]
                }

    def due(self, wait: str) -> str | None:
        names, every = WAITS[wait]
        statuses = {self.points[id][0] for id in names}
        if (statuses if every else statuses & {"completed"}) == {"completed"}:
            return "completed"
        if (statuses & {"cancelled"} if every else statuses) == {"cancelled"}:
            return "cancelled"
        deadline = self.deadlines[wait]
        return "timed_out" if deadline is not None and self.time >= deadline else None

    @rule(seconds=st.sampled_from([1, 5, 60]))
    def time_passes(self, seconds: int) -> None:
        self.time += seconds

    @invariant()
    def topics_are_whole(self) -> None:
        for topic in self.log.topics():
            assert self.log.verify_topic(topic) == []
            events = [event for _, event in self.log.read_range(topic)]
            ends = [event.kind for event in events if event.kind in ("completed", "cancelled")]
            waited = [(e.kind, e.payload["wait_id"]) for e in events if e.kind.startswith("wait_")]
            assert (len(ends) <= 1, len(waited)) == (True, len(set(waited)))


TestWaitpoints = Machine.TestCase
TestWaitpoints.settings = settings(max_examples=COUNT.examples(12), stateful_step_count=30, deadline=None)
