"""A node's `retry_policy` in a durable run: each attempt is a step. Spec: 08 §6.1, §7.4, 10 §C19.1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harnpy.llm.errors import CallError
from harnpy.workflow.engines.contract import Step
from harnpy.workflow.engines.errors import RunCancelled
from tests.clock import simulated_time
from tests.counts import COUNT
from tests.durable.processes import Model, Record, empty, job, process, timeless

Dict = dict[str, Any]

KEYS = ["begin", "stage:a:1", "stage:a:1:attempt:2", "stage:a:1:attempt:3", "stage:b:2"]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def graph(**policy: Any) -> Dict:
    policy = {"attempts": 4, "backoff": 2_000, **policy}
    edges = [{"from": "a", "to": "b"}]
    return {"id": "g", "entry": "a", "nodes": {"a": {"retry_policy": policy}, "b": {}}, "edges": edges}


class Failing(Model):
    """Fails so many times, with that error; of all the processes of a run."""

    def __init__(self, times: int, category: str = "overloaded", retry_after: float | None = None) -> None:
        super().__init__(self._fails)
        self._left = times
        self._error = category, retry_after

    def _fails(self, text: str, count: int) -> Any:
        self._left -= 1
        category, after = self._error
        return CallError(category, "busy", after) if self._left >= 0 else {"text": "done"}


def test_each_attempt_is_recorded_and_none_is_made_again() -> None:
    with simulated_time() as clock:
        steps: list[Step] = []
        begin = clock.passed
        found = process(empty(), Record(steps), job(graph()), Failing(2))
        assert 6 <= clock.passed - begin < 8  # 2 s and 4 s
        assert [step.key for step in steps] == KEYS
        [stage, _] = found["stages"]
        tried = [(each["attempt"], each["status"], each["error"]) for each in stage["attempts"]]
        assert tried == [(1, "failed", "busy"), (2, "failed", "busy"), (3, "completed", None)]
        assert stage["started_at"] == stage["attempts"][0]["started_at"] < stage["attempts"][2]["started_at"]
        assert stage["usage"]["call_count"] == 1
        for number in range(1, len(KEYS)):
            store, left, model = empty(), list[Step](), Failing(2)
            process(store, Record(left, dies_after=number), job(graph()), model)
            record = Record(left)
            assert timeless(process(store, record, job(graph()), model)) == timeless(found)
            assert record.ran == KEYS[number + 1 :]
            assert len(model.asked) == 4


def test_a_pause_goes_on_where_it_was() -> None:
    with simulated_time() as clock:
        for later, paused in ((0.0, 2.0), (1.5, 0.5), (60.0, 0.0)):
            store, steps, model = empty(), list[Step](), Failing(1)
            process(store, Record(steps, dies_after=1), job(graph()), model)
            clock.sleep(later)
            begin = clock.passed
            process(store, Record(steps), job(graph()), model)
            assert paused - 0.3 <= clock.passed - begin <= paused + 0.3


def test_a_service_that_asks_for_time_gets_it() -> None:
    with simulated_time() as clock:
        begin = clock.passed
        process(empty(), Record([]), job(graph()), Failing(1, retry_after=9))
        assert 9 <= clock.passed - begin < 10


@pytest.mark.parametrize(
    ("policy", "category", "attempts"),
    [
        ({}, "timeout", 4),
        ({}, "auth", 1),
        ({"on": ["auth"]}, "auth", 4),
        ({"on": ["auth"]}, "timeout", 1),
        ({"attempts": 2}, "server_error", 2),
        ({"attempts": 1}, "server_error", 1),
    ],
)
def test_which_errors_and_how_often(policy: Dict, category: str, attempts: int) -> None:
    with simulated_time():
        model = Failing(attempts, category)
        found = process(empty(), Record([]), job(graph(**policy)), model)
        [stage, after] = found["stages"]
        assert len(stage["attempts"]) == attempts
        assert (stage["branch"], after["branch"]) == ("error", "success")


def test_a_stage_that_is_to_be_tried_again_may_be_edited() -> None:
    with simulated_time():
        store, steps, model = empty(), list[Step](), Failing(1)
        process(store, Record(steps, dies_after=1), job(graph()), model)
        edited = graph()
        edited["nodes"]["a"]["system"] = "Other."
        found = process(store, Record(steps), job(edited), model)
        assert found["stages"][0]["metadata"]["system_prompt"] == "Other."
        assert [each["status"] for each in found["stages"][0]["attempts"]] == ["failed", "completed"]


def test_a_loop_that_failed_is_tried_again_in_its_session() -> None:
    """The model is asked again with what the failed turn has left."""
    looped = graph(backoff=0)
    looped["nodes"]["a"] |= {"mode": "agent", "done_sentinel": "done"}
    with simulated_time():
        for lives in range(1, 30, 2 if COUNT.campaign else 7):
            store, steps, model = empty(), list[Step](), Failing(4)  # a loop asks three times
            process(store, Record(steps), job(looped), model, lives)
            found = process(store, Record(steps), job(looped), model)
            assert found["stages"][0]["branch"] == "success"
            assert len(model.asked) <= 7


class Cancelled(Record):
    """A run that is cancelled as soon as it has its first attempt."""

    def step(self, key: str, work: Any) -> Any:
        output = super().step(key, work)
        if key == "stage:a:1":
            for call in self.ends:
                call()
        return output

    def check(self) -> None:
        raise RunCancelled(self.run_id, "enough")


def test_a_pause_can_be_cancelled() -> None:
    with simulated_time() as clock:
        begin, record = clock.passed, Cancelled([])
        with pytest.raises(RunCancelled, match="enough"):
            process(empty(), record, job(graph(backoff=600_000)), Failing(1))
        assert clock.passed - begin < 1
        assert record.ran == KEYS[:2]
