"""All stores keep the same log, whatever is done to it. Spec: 08 §15.2."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.eventlog import LogEvent, StoreEventLog
from harnpy.storage import open_store
from tests.counts import COUNT
from tests.storage.conftest import STORES

#: A payload, as JSON has it.
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)
EVENTS = st.builds(
    LogEvent, st.text(max_size=5), VALUES, st.dictionaries(st.text(max_size=3), st.text(), max_size=2)
)
NUMBERS = st.integers(0, 12)
STEPS = st.one_of(
    st.tuples(st.just("append"), EVENTS),
    st.tuples(st.just("compact"), NUMBERS),
    st.tuples(st.just("read_range"), NUMBERS, NUMBERS),
    st.tuples(st.just("ack"), st.just("c"), NUMBERS),
    st.tuples(st.just("consumer_cursor"), st.just("c")),
    st.tuples(st.just("latest")),
    st.tuples(st.just("verify_topic")),
)


def done(log: StoreEventLog, step: tuple[Any, ...]) -> Any:
    name, *arguments = step
    result = getattr(log, name)("t", *arguments)
    return result[:3] if name == "compact" else result


@settings(max_examples=COUNT.examples(8), deadline=None)
@given(st.lists(STEPS, max_size=15))
def test_every_store_answers_alike(steps: list[tuple[Any, ...]]) -> None:
    with TemporaryDirectory() as directory:
        logs = [
            StoreEventLog(open_store(STORES[name].format(directory=Path(directory) / name)), now=lambda: 1.5)
            for name in ("memory", "jsonl", "sqlite")
        ]
        for step in [*steps, ("read_range",), ("latest",), ("verify_topic",)]:
            first, *others = (done(log, step) for log in logs)
            assert others == [first, first], step
            if step[0] == "verify_topic":
                assert first == []
        for log in logs:
            log.close()
