"""The executor where a program can't look: files, interruptions, mistakes of our own (08 §7.1, §7.2)."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from harnpy.agent.runtime import Runtime
from harnpy.faults import Interruption, MisuseError
from harnpy.session import SessionStore
from harnpy.workflow.execution.execute import execute
from harnpy.workflow.records.record_files import load_run
from harnpy.workflow.records.record_lines import parsed, unfolded
from harnpy.world import World
from tests.support import ROOT, Popen, wait_until
from tests.workflow.workbench import Bench
from tests.worlds import models_with, world_with

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
        record = unfolded(parsed(text))
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
    context = bench.runtime.context()
    assert context.workflow is None
    assert not context.rules
    assert not bench.runtime.models.account.observers
    (text,) = bench.files.values()
    assert json.loads(text)["pending_nodes"] == ["a"]
    assert json.loads(text)["status"] == "running"


def test_a_record_that_can_not_be_written_ends_the_run(tmp_path: Path) -> None:
    def refuse(path: str, text: str, **how: Any) -> None:
        raise OSError(28, "No space left on device")

    world = world_with(cwd=lambda: str(tmp_path), get=lambda name: None, write_text=refuse)
    runtime = Runtime(models_with(), SessionStore(world=world))
    with pytest.raises(MisuseError, match=r"failed to persist run record: .*json: No space left on device"):
        execute(runtime, "t", REDUCE, None, runtime.models.options({}))
    assert runtime.context().workflow is None


ENDLESS = """
let stage = {kind: "verify", verify: {command: "sleep 0.002"}}
let nodes = {a: stage, b: stage}
let g = {entry: "a", nodes: nodes, edges: [{from: "a", to: "b"}, {from: "b", to: "a"}]}
workflow_execute("t", g, nil, {persist_path: "run.json", resume_path: RESUME, max_steps: 100000})
"""


def test_a_killed_run_goes_on_from_its_last_stage(popen: Popen, tmp_path: Path) -> None:
    """Killed again and again, at any moment, it loses no stage that was complete and does none twice."""
    program, record = tmp_path / "p.harn", tmp_path / "run.json"
    seen = 0
    for pause in (0.0, 0.003, 0.01, 0.017, 0.03):
        program.write_text(ENDLESS.replace("RESUME", '"run.json"' if seen else "nil"))
        with popen(
            [sys.executable, "-m", "harnpy", "run", "p.harn"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        ) as process:
            wait_until(lambda seen=seen: len(stages_of(record)) >= seen + 3)
            time.sleep(pause)
            process.send_signal(signal.SIGKILL)
        run, stages = load_run(str(record), World()), stages_of(record)
        assert stages == [f"{run['id']}:{'ab'[place % 2]}:{place + 1}" for place in range(len(stages))]
        assert run["pending_nodes"] == ["ab"[len(stages) % 2]]
        assert len(stages) >= seen + 3
        seen = len(stages)


def stages_of(record: Path) -> list[str]:
    return [stage["id"] for stage in parsed(record.read_text())["stages"]] if record.exists() else []
