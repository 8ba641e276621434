"""A worker that runs a workflow, across processes (07 §11.3, 08 §13.1)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support import Command

_BEGINS = """
let nodes = {a: {mode: "llm"}, s: {kind: "subagent"}}
let graph = {entry: "a", nodes: nodes, edges: [{from: "a", to: "s"}]}
llm_mock({text: "one"})
println(spawn_agent({task: "t", graph: graph, wait: true, options: {max_steps: 1}}).result.status)
"""
_GOES_ON = """
let before = resume_agent("WORKER")
println([before.mode, before.status])
llm_mock({text: "two"})
send_input(before, "more")
let after = wait_agent(before)
println([after.child_run_id == before.child_run_id, after.child_run_path == before.child_run_path])
println(after.result.run.stages.map({ stage -> [stage.node_id, stage.visible_text] }))
"""


def test_its_run_goes_on_where_another_process_left_it(harnpy: Command, tmp_path: Path) -> None:
    (tmp_path / "begin.harn").write_text(_BEGINS)
    assert harnpy("run", "begin.harn").stdout == "paused\n"
    [snapshot] = (tmp_path / ".harn" / "workers").iterdir()
    (tmp_path / "go_on.harn").write_text(_GOES_ON.replace("WORKER", snapshot.stem))
    went_on = harnpy("run", "go_on.harn")
    assert went_on.stdout.splitlines() == [
        "[workflow, completed]",
        "[true, true]",
        "[[a, one], [s, two]]",
    ], went_on.stderr
