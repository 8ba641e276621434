"""`harnpy runs` and `harnpy replay`. Spec: 09 §8.1–8.2."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harnpy.workflow.records import record_files
from tests.support import Command
from tests.worlds import world_with

Dict = dict[str, Any]
Save = Callable[..., str]

STAGES = [
    {
        "id": "s1", "node_id": "plan", "kind": "stage", "status": "completed", "outcome": "success",
        "branch": "success", "visible_text": "all well", "verification": {"ok": True, "kind": "none"},
        "artifacts": [{"data": {"trace": {"iterations": 2, "llm_calls": 3}, "tools": {"calls": ["look"]}}}],
    },
    {
        "id": "s2", "node_id": "help", "kind": "subagent", "status": "failed", "outcome": "error",
        "metadata": {"worker": {"id": "w1", "name": "helper", "child_run_path": "c.json"}},
    },
]  # fmt: skip
RUN = {
    "id": "run-1", "workflow_id": "w", "workflow_name": "Demo", "status": "completed", "task": "do it",
    "stages": STAGES, "transcript": {"events": [{}, {}]}, "pending_nodes": ["x", "y"],
    "transitions": [{"to_node_id": "plan"}, {"from_node_id": "plan", "to_node_id": "help", "branch": "go"}],
    "metadata": {"parent_worker_id": "w0", "parent_stage_id": "s0", "delegated": True},
    "hitl_questions": [{"prompt": "?"}], "artifacts": [{}], "checkpoints": [{}],
    "usage": {"total_cost": 0.01234}, "started_at": "2026-01-01T00:00:00.000Z",
    "finished_at": "2026-01-01T00:00:02.500Z",
}  # fmt: skip


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Save a record and answer its file's name."""

    def save(name: str, **changes: Any) -> str:
        record_files.save_run({**RUN, **changes}, world_with(cwd=lambda: str(tmp_path)), name)
        return name

    return save


def test_inspect_shows_a_run(harnpy: Command, save: Save) -> None:
    done = harnpy("runs", "inspect", save("r.json"))
    assert done.stdout == (
        "Run: run-1\nWorkflow: Demo\nStatus: completed\nTask: do it\nStages: 2\nArtifacts: 1\n"
        "Transitions: 2\nCheckpoints: 1\nHITL questions: 1\nCost: $0.0123\n"
        "Planner rounds: 1\nWorkers: 1\nAction graph: 4 nodes / 3 edges\n"
        "Transcript pointers: 1\n"
        "Parent worker: w0\nParent stage: s0\nDelegated: true\n"
        "Pending nodes: x, y\nReplay fixture: embedded\n"
        "- plan [stage] status=completed outcome=success branch=success\n"
        "- help [subagent] status=failed outcome=error worker=helper\n"
        "  worker_id: w1\n  child_run_path: c.json\n"
        "planner plan: iterations=2 llm_calls=3 tools=look\n"
        "transcript run transcript: run.transcript\n"
    )
    assert (done.stderr, done.returncode) == ("", 0)


def test_inspect_of_a_bare_record(harnpy: Command, write: Callable[[str, str], str]) -> None:
    done = harnpy(
        "runs", "inspect", write("r.json", '{"id": "r", "workflow_id": "w", "stages": [{"node_id": "n"}]}')
    )
    assert done.stdout == (
        "Run: r\nWorkflow: w\nStages: 1\nAction graph: 2 nodes / 1 edge\nReplay fixture: derived\n- n\n"
    )


def test_inspect_shows_what_there_is_without_zeros_and_gaps(
    harnpy: Command, write: Callable[[str, str], str], tmp_path: Path
) -> None:
    """Spec: 09 §8.1."""
    ends = '[{from: "a", to: "b"}, {from: "a", to: "b"}]'
    flow = f'{{nodes: {{a: {{kind: "fork"}}, b: {{kind: "reduce"}}}}, edges: {ends}}}'
    path = write("flow.harn", f'workflow_execute("", {flow}, nil, {{persist_path: "r.json"}})')
    assert harnpy("run", path).returncode == 0
    lines = harnpy("runs", "inspect", "r.json").stdout
    assert not re.search(r"\b0\b|missing|[-:=]\s*(-|\[\])?$|=-", lines.partition("\n")[2], re.MULTILINE)
    assert harnpy("runs", "inspect", "r.json", "--html", "r.html").returncode == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    body = re.sub(r"<(style|script|details).*?</\1>", "", page, flags=re.DOTALL)
    body = re.sub(r'<p class="scale">.*?</p>', "", body)  # an axis begins at 0
    text = re.sub(r"<[^>]+>", "|", body)
    assert not re.search(r"\|\s*(0|\$0\.00|0 tokens|–|-|No .*|\(missing\))\s*\|", text)
    assert "Tokens" not in text
    assert "Cost" not in text
    assert "usage" in json.loads(harnpy("runs", "show", "r.json", "--json").stdout)


def test_a_run_is_found_by_its_id(harnpy: Command, save: Save) -> None:
    named = harnpy("runs", "inspect", save(".harn-runs/run-1.json"))
    for command in (("runs", "inspect", "run-1"), ("runs", "diff", "run-1", "run-1"), ("replay", "run-1")):
        assert harnpy(*command).returncode == 0
    assert harnpy("runs", "inspect", "run-1").stdout == named.stdout
    save("run-1", id="run-2")
    assert harnpy("runs", "inspect", "run-1").stdout.startswith("Run: run-2\n"), "a file goes before an id"


def test_inspect_says_what_a_stage_raised(harnpy: Command, save: Save) -> None:
    stage = {**STAGES[0], "status": "failed", "branch": "error", "metadata": {"error": "no\nmodel"}}
    lines = harnpy("runs", "inspect", save("r.json", stages=[stage])).stdout.splitlines()
    place = lines.index("- plan [stage] status=failed outcome=success branch=error")
    assert lines[place + 1] == "  error: no model"


def test_inspect_compares_from_the_baseline_to_the_run(harnpy: Command, save: Save) -> None:
    changed = [{**STAGES[0], "status": "failed"}, {"id": "s3", "node_id": "new"}]
    calls = [{"tool_name": "look", "args_hash": "a1", "result": "x"}]
    save("base.json")
    save("r.json", id="run-2", status="failed", stages=changed, tool_recordings=calls, artifacts=[])
    done = harnpy("runs", "inspect", "r.json", "--compare", "base.json")
    assert done.stdout.partition("Diff: ")[2] == (
        "run-1 -> run-2 [completed -> failed]\nIdentical: false\n"
        "Stage diffs: 3\nTool diffs: 1\nObservability diffs: 4\n"
        "Transition delta: 0\nArtifact delta: -1\nCheckpoint delta: 0\n"
        "- help [removed]\n  stage missing from right run\n"
        "- new [added]\n  stage missing from left run\n"
        "- plan [changed]\n  status: completed -> failed\n"
        "- tool look a1 [changed]\n  result: - -> x\n"
        "- worker_lineage helper [changed]\n  entries: 1 -> 0\n"
        "- planner_rounds plan [changed]\n  status: completed -> failed\n"
        "- verification plan [changed]\n  status: completed -> failed\n"
        "- action_graph shape [changed]\n  nodes/edges: 4/3 -> 3/2\n"
    )
    assert done.returncode == 0


def test_a_run_is_identical_to_itself(harnpy: Command, save: Save) -> None:
    save("a.json")
    assert "Identical: true\n" in harnpy("runs", "inspect", "a.json", "--compare", "a.json").stdout
    done = harnpy("runs", "diff", "a.json", save("copy/b.json"))
    assert done.stdout == "run-1 [completed] -> run-1 [completed]\nidentical\n"


def test_diff_is_a_table(harnpy: Command, save: Save) -> None:
    save("a.json")
    done = harnpy("runs", "diff", "a.json", save("b.json", id="run-2", stages=STAGES[:1], checkpoints=[]))
    assert done.stdout == (
        "run-1 [completed] -> run-2 [completed]\n"
        "what                   change   details\n"
        "help                   removed  stage missing from right run\n"
        "worker_lineage helper  changed  entries: 1 -> 0\n"
        "action_graph shape     changed  nodes/edges: 4/3 -> 2/1\n"
        "checkpoints            changed  1 -> 0\n"
    )
    assert (done.stderr, done.returncode) == ("", 0)


@pytest.mark.parametrize(
    "arguments",
    [("runs", "inspect", "none.json"), ("runs", "diff", "none.json", "x"), ("replay", "none.json")],
)
def test_a_missing_record_is_told(harnpy: Command, arguments: tuple[str, ...]) -> None:
    done = harnpy(*arguments)
    assert done.stderr == (
        "Failed to load run record: No such file or directory (os error 2)\n  --> none.json\n"
    )
    assert (done.stdout, done.returncode) == ("", 1)


def test_a_missing_or_broken_baseline_is_told(
    harnpy: Command, save: Save, write: Callable[[str, str], str]
) -> None:
    save("r.json")
    done = harnpy("runs", "inspect", "r.json", "--compare", write("b.json", "{"))
    assert done.stderr == (
        "Failed to load run record: EOF while parsing an object at line 1 column 1\n  --> b.json\n"
    )
    assert (done.stdout, done.returncode) == ("", 1)


def test_replay_shows_how_a_run_went(harnpy: Command, save: Save) -> None:
    done = harnpy("replay", save("r.json"))
    assert done.stdout == (
        "Replay: run-1\n"
        "[plan] status=completed outcome=success branch=success\n"
        "  visible: all well\n"
        '  verification: {"kind":"none","ok":true}\n'
        "[help] status=failed outcome=error\n"
        "Transcript events persisted: 2\n"
        "Embedded replay fixture: PASS\n"
        "transition start -> plan (default)\n"
        "transition plan -> help (go)\n"
    )
    assert (done.stderr, done.returncode) == ("", 0)


def test_replay_says_where_a_run_fails_its_fixture(harnpy: Command, save: Save) -> None:
    done = harnpy("replay", save("r.json", replay_fixture={"expected_status": "paused"}, transcript=None))
    assert "Transcript events" not in done.stdout
    assert (
        "Embedded replay fixture: FAIL\n  run status mismatch: expected paused, got completed\n"
        in done.stdout
    )
    assert done.returncode == 0


def test_list_shows_the_newest_first(harnpy: Command, save: Save, write: Callable[[str, str], str]) -> None:
    save(".harn-runs/a.json")
    save(".harn-runs/deep/b.json", id="run-2", status="failed", started_at="2026-02-01T00:00:00.000Z",
         finished_at=None, usage=None, workflow_name=None, stages=[])  # fmt: skip
    write(".harn-runs/broken.json", "{")
    write(".harn-runs/other.json", '{"cases": []}')
    write(".harn-runs/deep.json", '{"id": ' + "[" * 100_000)
    done = harnpy("runs", "list")
    first, second, third = (line.split() for line in done.stdout.splitlines())
    assert first == [
        "id",
        "workflow",
        "engine",
        "status",
        "stages",
        "started",
        "(UTC)",
        "duration",
        "cost",
        "path",
    ]
    assert second[:9] == ["run-2", "w", "record", "failed", "0", "2026-02-01", "00:00:00", "-", "-"]
    assert third[:10] == [
        "run-1",
        "Demo",
        "record",
        "completed",
        "2",
        "2026-01-01",
        "00:00:00",
        "2.5",
        "s",
        "$0.0123",
    ]
    assert third[-1].endswith(".harn-runs/a.json")
    assert (done.stderr, done.returncode) == ("", 0)


def test_list_for_tools(harnpy: Command, save: Save) -> None:
    save("kept/a.json")
    found = json.loads(harnpy("runs", "list", "--dir", "kept", "--json").stdout)
    assert found == [
        {
            "id": "run-1", "workflow_id": "w", "workflow_name": "Demo", "status": "completed", "stages": 2,
            "started_at": "2026-01-01T00:00:00.000Z", "finished_at": "2026-01-01T00:00:02.500Z",
            "duration_ms": 2500, "cost": 0.01234, "path": "kept/a.json",
            "engine": "record",
        }
    ]  # fmt: skip


def test_list_of_nothing(harnpy: Command, tmp_path: Path) -> None:
    done = harnpy("runs", "list", HARN_RUN_DIR="mine")
    assert (done.stdout, done.returncode) == (f"no runs in {tmp_path}/mine\n", 0)
    assert harnpy("runs", "list", "--json").stdout == "[]\n"
    assert harnpy("runs", "list", "--dir", "nowhere").returncode == 2


def test_what_a_record_says_cannot_steer_the_terminal(harnpy: Command, save: Save) -> None:
    hostile = "a\x1b[2Jb\x07"
    handle = {"id": hostile, "name": hostile, "child_run_id": hostile, "child_run_path": hostile}
    stage = dict.fromkeys(("id", "node_id", "kind", "status", "outcome", "branch", "visible_text"), hostile)
    stage |= {"metadata": {"worker": handle}, "verification": {"kind": hostile}, "transcript": {}}
    trace = {"trace": {"iterations": 1}, "tools": {"calls": [hostile]}, "daemon_snapshot_path": hostile}
    stage["artifacts"] = [{"data": trace}]
    save(
        "r.json", id=hostile, task=hostile, workflow_name=hostile, status=hostile, stages=[stage],
        pending_nodes=[hostile], metadata={"parent_worker_id": hostile},
        transitions=[{"from_node_id": hostile, "to_node_id": hostile, "branch": hostile}],
        tool_recordings=[{"tool_name": hostile, "args_hash": hostile, "result": hostile}],
    )  # fmt: skip
    save("base.json")
    shown = [
        harnpy(*command).stdout
        for command in (
            ("runs", "inspect", "r.json", "--compare", "base.json"),
            ("runs", "diff", "base.json", "r.json"),
            ("runs", "list", "--dir", "."),
            ("replay", "r.json"),
        )
    ]
    assert all("a␛[2Jb␇" in text and "\x1b" not in text and "\x07" not in text for text in shown)


def test_runs_alone_asks_for_a_command(harnpy: Command) -> None:
    done = harnpy("runs")
    assert done.stderr.startswith("error: missing command\n")
    assert done.returncode == 2
