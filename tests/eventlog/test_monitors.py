"""What a monitor keeps, on every store. Spec: 10 §C18, 06 §28."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harnpy.eventlog import LogEvent, StoreEventLog
from harnpy.eventlog.monitors import MATCHED, Monitor, MonitorPlan
from harnpy.eventlog.waitpoints import WaitpointError
from harnpy.storage import Store

BEGIN = 1_700_000_000_000


class Clock:
    """Milliseconds that pass when a test says so."""

    ms = BEGIN

    def __call__(self) -> int:
        return self.ms


@pytest.fixture
def begin(opened: Callable[..., Store]) -> Callable[[Clock, int], Monitor]:
    """Begin the monitor "m 1", or enter it again, as another process."""
    logs: list[StoreEventLog] = []

    def monitor(clock: Clock, timeout_ms: int = 60_000) -> Monitor:
        if not logs or "memory:" not in repr(logs[0]):
            logs.append(StoreEventLog(opened()))
        return Monitor(logs[-1], "m 1", clock, MonitorPlan(timeout_ms, 1000, "ci"), f"trace_{len(logs)}")

    return monitor


def test_the_first_of_two_ends_it(begin: Callable[..., Monitor]) -> None:
    clock = Clock()
    one, other = begin(clock), begin(clock, 5)
    assert (one.topic[:8], len(one.topic)) == ("monitor-", 40)
    one.polled({"n": 1})
    clock.ms += 50_000
    assert (other.seconds_left(), other.poll_count) == (10, 0)  # it hasn't looked since
    other.polled({"n": 2})
    clock.ms += 10_000
    late = other.resolve("timed_out", pushes=3)
    assert late == {
        "wait_id": "m 1", "status": "timed_out", "source_label": "ci", "state": {"n": 2}, "poll_count": 1,
        "started_at": "2023-11-14T22:13:20.000Z", "resolved_at": "2023-11-14T22:14:20.000Z",
        "condition_value": None, "push_wake_count": 3, "trace_id": "trace_1", "replay_of_event_id": None,
        "reason": "the condition did not hold by 2023-11-14T22:14:20.000Z",
    }  # fmt: skip
    replayed = {**late, "replay_of_event_id": 4}
    assert one.resolve(MATCHED, condition_value=True) == one.recorded() == begin(clock).recorded() == replayed
    one.polled({"n": 3})
    assert [event.kind for _, event in one.log.read_range(one.topic)] == [
        "started",
        "polled",
        "polled",
        "resolved",
    ]


def test_a_state_is_kept_when_it_is_another(begin: Callable[..., Monitor]) -> None:
    clock = Clock()
    monitor = begin(clock)
    for state in (None, None, 1, 1, None):
        monitor.polled(state)
    again = begin(clock)
    assert (again.poll_count, again.state) == (5, None)
    assert again.context() == {
        "wait_id": "m 1", "source_label": "ci", "deadline_at": "2023-11-14T22:14:20.000Z",
        "poll_count": 5, "state": None,
    }  # fmt: skip
    with pytest.raises(WaitpointError, match=r"^`state` must be JSON-serializable$"):
        again.polled({1})
    polled = [event.payload["n"] for _, event in again.log.read_range(again.topic) if event.kind == "polled"]
    assert polled == [1, 3, 5]
    given_up = again.interrupted(0, "enough")
    assert (given_up["status"], given_up["resolved_at"], given_up["reason"]) == (
        "interrupted",
        None,
        "enough",
    )
    assert begin(clock).recorded() is None


def test_a_topic_that_tells_of_no_monitor(begin: Callable[..., Monitor]) -> None:
    monitor = begin(Clock())
    monitor.log.append(monitor.topic, LogEvent("polled", {"n": 1}))
    with pytest.raises(
        WaitpointError, match=r"^event 2 of topic 'monitor-\w+' tells of no monitor: it has no `"
    ):
        begin(Clock())
