"""A workflow that is killed between its last record and its exit doesn't run again. Issue 30."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import Command

#: Always resumes; killed the first time, when the record says that the run is completed.
PROGRAM = """
let steps = {entry: "a", nodes: {a: {kind: "reduce"}, b: {kind: "reduce"}}, edges: [{from: "a", to: "b"}]}
let first = !file_exists("run.json")
let place = if first { {persist_path: "run.json"} } else { {resume_path: "run.json"} }
let done = workflow_execute("t", steps, nil, place)
if first { exec("sh", "-c", "kill -9 $PPID") }
println("${done.status} ${done.run.stages.map({ stage -> stage.node_id })}")
"""


def test_a_script_that_always_resumes_runs_each_stage_once(harnpy: Command, tmp_path: Path) -> None:
    (tmp_path / "program.harn").write_text(PROGRAM)
    assert harnpy("run", "program.harn").returncode == -9
    record = (tmp_path / "run.json").read_text()
    for _ in range(2):
        assert harnpy("run", "program.harn").stdout == "completed [a, b]\n"
    assert (tmp_path / "run.json").read_text() == record
