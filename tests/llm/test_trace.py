"""What a program remembers of its calls has an end; their sums have none. Spec: 07 §9.4."""

from __future__ import annotations

from harnpy.llm.account import MOST_EVENTS, Trace


def test_the_newest_events_are_kept_and_all_are_counted() -> None:
    trace = Trace()
    for number in range(MOST_EVENTS + 5):
        trace.record("tool_execution", duration_ms=2, iteration=number)
    assert [event["iteration"] for event in trace.events] == list(range(5, MOST_EVENTS + 5))
    assert trace.summary()["tool_executions"] == MOST_EVENTS + 5
    assert trace.summary()["total_tool_duration_ms"] == 2 * (MOST_EVENTS + 5)
