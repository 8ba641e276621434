"""The executor where a program can't look: files, interruptions, mistakes of our own (08 §7.1, §7.2)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harnpy.agent.runtime import Runtime
from harnpy.llm.call import Models
from harnpy.llm.errors import MisuseError
from harnpy.session import SessionStore
from harnpy.session.effects import Effects
from harnpy.session.errors import Interruption
from harnpy.workflow.execution.execute import execute
from tests.workflow.bench import Bench

Dict = dict[str, Any]
REDUCE = {"nodes": {"r": {"kind": "reduce"}}}


@pytest.mark.parametrize(
    ("env", "directory"),
    [
        ({}, "/work/.harn-runs"),
        ({"HARN_RUN_DIR": "runs"}, "/work/runs"),
        ({"HARN_RUN_DIR": "/runs"}, "/runs"),
    ],
)
def test_a_record_lies_in_the_run_directory(env: Dict, directory: str) -> None:
    bench = Bench(cwd="/work", **env)
    result = bench.execute(REDUCE)
    assert result["path"] == f"{directory}/{result['run']['id']}.json"
    assert list(bench.files) == [result["path"]]


def test_a_relative_path_stays_as_it_was_given() -> None:
    bench = Bench(cwd="/work")
    result = bench.execute(REDUCE, persist_path="deep/run.json")
    assert result["path"] == result["run"]["persisted_path"] == "deep/run.json"
    assert list(bench.files) == ["/work/deep/run.json"]


def test_the_record_is_on_the_disk_before_each_stage() -> None:
    bench, seen = Bench(), []

    def look(arguments: Dict) -> str:
        (text,) = bench.files.values()
        record = json.loads(text)
        seen.append(
            (record["status"], [stage["node_id"] for stage in record["stages"]], record["pending_nodes"])
        )
        return "looked"

    bench.mock({"tool_calls": [{"name": "look", "arguments": {}}]}, {"text": "<done>##DONE##</done>"})
    agent = {"tools": [{"name": "look", "description": "", "parameters": {}, "handler": look}]}
    edges = [{"from": "a", "to": "b"}]
    bench.execute({"entry": "a", "nodes": {"a": {"kind": "reduce"}, "b": agent}, "edges": edges})
    assert seen == [("running", ["a"], ["b"])]


@pytest.mark.parametrize(
    "error", [Interruption("stop"), KeyboardInterrupt(), ZeroDivisionError("our own mistake")]
)
def test_what_is_no_failure_of_the_stage_ends_the_run(error: BaseException) -> None:
    bench = Bench()

    def fail(arguments: Dict) -> str:
        raise error

    bench.mock({"tool_calls": [{"name": "look", "arguments": {}}]})
    agent = {"tools": [{"name": "look", "description": "", "parameters": {}, "handler": fail}]}
    with pytest.raises(type(error)):
        bench.execute({"nodes": {"a": agent}}, approval_policy={"auto_deny": ["x"]})
    ambient = bench.runtime.ambient()
    assert ambient.workflow is None
    assert not ambient.rules
    assert not bench.runtime.models.account.observers
    (text,) = bench.files.values()
    assert json.loads(text)["pending_nodes"] == ["a"]


def test_a_record_that_can_not_be_written_ends_the_run() -> None:
    def refuse(path: str, text: str, **how: Any) -> None:
        raise OSError(28, "No space left on device")

    effects = Effects(
        cwd=lambda: "/", env=lambda name: None, write_text=refuse, make_directory=lambda path: None
    )
    runtime = Runtime(Models(env=lambda name: None), SessionStore(effects=effects))
    with pytest.raises(MisuseError, match="failed to persist run record: No space left on device"):
        execute(runtime, "t", REDUCE, None, runtime.models.options({}))
    assert runtime.ambient().workflow is None
