"""Stages of a durable run that wait for people. Spec: 10 §C18, §C19.1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harnpy.session import SessionRuntime
from harnpy.workflow.engines.contract import Step
from tests.counts import COUNT
from tests.durable.processes import FILE_TOOLS, Model, Record, empty, job, process, timeless

Dict = dict[str, Any]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("hello")


def asked_twice() -> Dict:
    """A map of two loops: each calls a tool that has to be approved, between two that needn't be."""
    node = {
        "kind": "map",
        "tools": FILE_TOOLS,
        "done_sentinel": "##DONE##",
        "model_policy": {"tool_format": "native"},
        "map_policy": {"items": ["a", "b"]},
        "approval_policy": {"require_approval": ["read_file"]},
    }
    return {"id": "g", "entry": "m", "nodes": {"m": node, "last": {}}, "edges": [{"from": "m", "to": "last"}]}


def answered(text: str, count: int) -> Dict:
    name = {1: "list_directory", 3: "read_file"}.get(count)
    if name is None or ("<workflow_context>" in text and "Map item" not in text):
        return {"text": f"{text[:5]} ##DONE##"}
    call = {"id": f"c{count}", "name": name, "arguments": {"path": "." if count == 1 else "a.txt"}}
    return {"text": "I look.", "tool_calls": [call]}


def test_an_approval_waits_for_a_waitpoint_and_survives_restarts() -> None:
    store, steps, model = empty(), list[Step](), Model(answered)
    first = Record(steps)
    assert process(store, first, job(asked_twice()), model) is None
    assert [step.key for step in steps] == ["begin"]
    again = Record(steps)
    assert process(store, again, job(asked_twice()), model) is None
    assert again.waited == first.waited  # the same waitpoint, so the engine keeps its deadline
    asked = len(model.asked)
    last = Record(steps)
    last.answers = {"value": {"approved": True, "reason": "fine"}, "by": "ann"}
    found = process(store, last, job(asked_twice()), model)
    assert [step.key.partition(":")[0] for step in steps] == ["begin", "wait", "wait", "stage", "stage"]
    assert found["stages"][0]["branch"] == "mapped"
    assert asked <= 4
    assert len(model.asked) == 7  # three for each item, one for the last stage
    entries = found["metadata"]["hitl"]
    assert [entry["status"] for entry in entries] == ["approved", "approved"]
    assert [response["reviewer"] for entry in entries for response in entry["responses"]] == ["ann", "ann"]
    with SessionRuntime(store) as runtime:
        for info in runtime.list().items:
            types = [event.type for event in runtime.get(info.id).events()]
            assert types.count("turn_started") == types.count("turn_completed") == 1
            assert types.count("approval_requested") == types.count("approval_resolved")
    resumed = timeless(process(store, Record(steps), job(asked_twice()), model))
    assert resumed == timeless(found)
    assert len(model.asked) == 7


@pytest.mark.parametrize("value", [False, {"approved": False, "reason": "no"}])
def test_what_nobody_allows_isnt_done(value: Any) -> None:
    record = Record([])
    record.answers = {"value": value}
    found = process(empty(), record, job(asked_twice()), Model(answered))
    assert found["stages"][0]["branch"] == "mapped"
    results = [recording for recording in found["tool_recordings"] if recording["tool_name"] == "read_file"]
    assert [result["is_rejected"] for result in results] == [True, True]


def test_killed_while_it_catches_up_after_a_wait() -> None:
    expected = None
    for lives in range(1, 40, 3 if COUNT.campaign else 9):
        store, steps, model = empty(), list[Step](), Model(answered)
        for each in (lives, 10_000):
            record = Record(steps)
            record.answers = {"value": True}
            found = process(store, record, job(asked_twice()), model, each)
        assert len(model.asked) <= 8
        expected = expected or timeless(found)
        assert timeless(found) == expected
