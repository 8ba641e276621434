"""Topics in memory. Spec: 08 §15.2."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy.eventlog.contract import LogEvent
from harnpy.eventlog.errors import InvalidTopic
from harnpy.eventlog.topics import chain_problems, memory_log


@given(st.lists(st.sampled_from(["a", "b"]), max_size=20), st.integers(0, 20), st.integers(0, 5))
def test_ids_count_without_gaps_and_reads_begin_behind_an_id(
    topics: list[str], after: int, limit: int
) -> None:
    log = memory_log(lambda: 1.5)
    given_ids = [(topic, log.append(topic, LogEvent("k", i))) for i, topic in enumerate(topics)]
    for topic in ("a", "b"):
        ids = [id for name, id in given_ids if name == topic]
        assert ids == list(range(1, len(ids) + 1))
        assert [id for id, _ in log.read_range(topic, after, limit)] == ids[after : after + limit]
        assert log.latest(topic) == (len(ids) or None)
        assert log.verify_topic(topic) == []
    assert log.topics() == sorted(set(topics))


def test_a_time_is_kept_or_set() -> None:
    log = memory_log(lambda: 1.5)
    log.append("a", LogEvent("k"))
    log.append("a", LogEvent("k", occurred_at_ms=7))
    assert [event.occurred_at_ms for _, event in log.read_range("a")] == [1500, 7]


def test_a_changed_event_breaks_the_chain_there_and_a_dropped_one_behind() -> None:
    log = memory_log(lambda: 0.0)
    for i in range(4):
        log.append("a", LogEvent("k", i))
    events = log.read_range("a")
    id, second = events[1]
    forged = [events[0], (id, second._replace(payload="forged")), *events[2:]]
    assert chain_problems("a", forged) == ["event 2: record hash mismatch"]
    assert chain_problems("a", [events[0], *events[2:]]) == ["event 3: previous hash mismatch"]
    assert chain_problems("a", events[1:]) == ["event 2: previous hash mismatch"]


@pytest.mark.parametrize(
    ("topic", "message"),
    [("", "topic cannot be empty"), ("a/b", "topic 'a/b' contains unsupported characters")],
)
def test_topics_have_names(topic: str, message: str) -> None:
    log = memory_log(lambda: 0.0)
    for attempt in (lambda: log.append(topic, LogEvent("k")), lambda: log.read_range(topic)):
        with pytest.raises(InvalidTopic, match=f"^{message}$"):
            attempt()
