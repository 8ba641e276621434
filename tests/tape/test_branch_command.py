"""`harnpy branch`: what it prints, where, and its status. Spec: 13 §5, 09 §14."""

from __future__ import annotations

from pathlib import Path

import pytest

from harnpy.tape import read_tape
from tests.support import Command

PROGRAM = """
for n in 1 to 3 {
  let said = llm_call("word ${n}", nil, {provider: "mock"}).text
  println(said)
  write_file("said-${n}.txt", said)
}
"""


@pytest.fixture
def run(harnpy: Command, tmp_path: Path) -> Command:
    (tmp_path / "main.harn").write_text(PROGRAM)
    assert harnpy("run", "--record", "run.tape", "main.harn").returncode == 0
    return harnpy


def test_a_branch_prints_all_of_it_and_says_where_it_is(run: Command, tmp_path: Path) -> None:
    done = run("branch", "run.tape", "--at", "2", "--message", '"other"')
    assert done.returncode == 0
    assert done.stdout == (
        "Mock response to 2-word prompt: word 1\nMock response to 1-word prompt: other\n"
        "Mock response to 2-word prompt: word 3\n"
    )
    assert done.stderr == (
        "branch of run.tape at call 2 -> run.branch-2.tape; "
        "3 files in the overlay were dropped: --keep DIR keeps them\n"
    )
    assert (tmp_path / "said-2.txt").read_text() == "Mock response to 2-word prompt: word 2"
    replayed = run("replay", "run.branch-2.tape")
    assert (replayed.stdout, replayed.stderr) == (done.stdout, "")


def test_files_are_kept_where_one_says(run: Command, tmp_path: Path) -> None:
    done = run(
        "branch", "run.tape", "--at", "3", "--message", "plain text", "--keep", "kept", "-o", "mine.tape"
    )
    assert done.stderr == "branch of run.tape at call 3 -> mine.tape; 3 files of the overlay are in kept\n"
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == [f"said-{n}.txt" for n in (1, 2, 3)]
    assert (tmp_path / "kept" / "said-3.txt").read_text().endswith("plain text")
    again = run("branch", "run.tape", "--at", "3", "--keep", "kept")
    assert again.returncode == 1
    assert (
        again.stderr == "error: kept isn't empty, so no overlay can be kept there: name another directory\n"
    )
    assert not (tmp_path / "run.branch-3.tape").exists()


def test_options_and_models_are_read_as_json_or_as_text(run: Command, tmp_path: Path) -> None:
    done = run(
        *("branch", "run.tape", "--at", "2", "--model", "mock/small", "--set", "temperature=0.5"),
        *("--set", "prefill=So", "--set", 'stop=["x"]'),
    )
    assert done.returncode == 0, done.stderr
    origin = read_tape(tmp_path / "run.branch-2.tape").header.branch
    assert origin is not None
    assert origin.changed == [
        "model mock/small", "set temperature=0.5", 'set prefill="So"', 'set stop=["x"]'
    ]  # fmt: skip


def test_a_program_and_files_are_edited(run: Command, tmp_path: Path) -> None:
    (tmp_path / "main.harn").write_text(PROGRAM.replace("println(said)", 'println("now ${said}")'))
    for change in (["--code", "main.harn"], ["--edit", "main.harn"], ["--edit", "main.harn=main.harn"]):
        done = run("branch", "run.tape", "--at", "2", *change)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("now Mock response to 2-word prompt: word 1\nnow Mock")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--at", "9"], "error: run.tape has 3 calls of models: a branch is at 1 to 4, not at 9\n"),
        (
            ["--at", "1", "--set", "temprature=1"],
            "error: a model's call has no option 'temprature' (did you mean 'temperature'? expected one "
            "of: max_tokens, temperature, top_p, frequency_penalty, presence_penalty, top_k, seed, stop, "
            "thinking, reasoning_effort, interleaved_thinking, anthropic_beta_features, cache, prefill, "
            "tool_choice)\n",
        ),
        (
            ["--at", "1", "--edit", "none.txt"],
            "error: the edited file none.txt can't be read: No such file or directory (os error 2)\n",
        ),
        (
            ["--at", "1", "--code", "none.harn"],
            "error: the program none.harn can't be read: No such file or directory (os error 2)\n",
        ),
        (
            ["--at", "1", "-o", "main.harn"],
            "error: main.harn is there already, and isn't a tape: choose another name\n",
        ),
    ],
)
def test_what_cant_be_branched_is_said_and_leaves_nothing(
    run: Command, tmp_path: Path, arguments: list[str], said: str
) -> None:
    before = sorted(tmp_path.rglob("*"))
    done = run("branch", "run.tape", *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", said)
    assert sorted(tmp_path.rglob("*")) == before


def test_wrong_usage_is_said(run: Command) -> None:
    done = run("branch", "run.tape", "--at", "1", "--set", "temperature")
    assert done.returncode == 2
    assert "`--set temperature` says no value: write --set temperature=VALUE" in done.stderr
    done = run("branch", "run.tape", "--at", "1", "--message", '{"role":')
    assert "the value of --message isn't JSON: " in done.stderr
    assert run("branch", "run.tape").returncode == 2
    for command in (["replay"], ["runs", "steps"], ["compare", "run.tape"]):
        assert "none.tape can't be read: No such file or directory" in run(*command, "none.tape").stderr
    assert "main.harn isn't a tape" in run("branch", "main.harn", "--at", "1").stderr


def test_the_status_is_the_programs(harnpy: Command, tmp_path: Path) -> None:
    (tmp_path / "main.harn").write_text(PROGRAM + "exit(3)\n")
    assert harnpy("run", "--record", "run.tape", "main.harn").returncode == 3
    done = harnpy("branch", "run.tape", "--at", "2")
    assert done.returncode == 3
    assert "branch of run.tape at call 2 -> run.branch-2.tape" in done.stderr
    (tmp_path / "main.harn").write_text(PROGRAM + 'throw "oh"\n')
    done = harnpy("branch", "run.tape", "--at", "2", "--code", "main.harn")
    assert done.returncode == 1
    assert "oh" in done.stderr
    assert "branch of run.tape at call 2 -> run.branch-2-2.tape" in done.stderr


def test_a_project_that_was_trusted_when_it_was_recorded_is_not_by_that(
    harnpy: Command, tmp_path: Path
) -> None:
    (tmp_path / "main.harn").write_text(PROGRAM)
    (tmp_path / "harn.toml").write_text('[event_log]\nstore = "sqlite:../elsewhere.db"\n')
    assert harnpy("run", "--trust", "--record", "run.tape", "main.harn").returncode == 0
    assert harnpy("replay", "run.tape").returncode == 0
    done = harnpy("branch", "run.tape", "--at", "2")
    assert done.returncode == 1
    assert "event_log.store takes effect only once you trust the project" in done.stderr
    assert harnpy("branch", "run.tape", "--at", "2", "--trust").returncode == 0


def test_the_records_of_workflows_are_in_the_overlay(harnpy: Command, tmp_path: Path) -> None:
    (tmp_path / "main.harn").write_text(
        'let graph = workflow_graph({name: "one", nodes: {first: {kind: "stage", mode: "llm", '
        'model_policy: {provider: "mock"}}}, edges: []})\n'
        'println(workflow_execute("say it", graph).status)\n'
    )
    done = harnpy("run", "--record", "run.tape", "main.harn")
    assert (done.returncode, done.stdout) == (0, "completed\n"), done.stderr
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert any(".harn-runs" in str(path) for path in before)
    branched = harnpy("branch", "run.tape", "--at", "1", "-o", "b.tape", "--keep", "kept")
    assert branched.stdout == "completed\n", branched.stderr
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert any((tmp_path / "kept" / ".harn-runs").iterdir())
