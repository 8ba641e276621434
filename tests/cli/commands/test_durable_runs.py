"""Durable runs on the command line: `run --durable`, `--resume`, `worker`, `runs`. Spec: 09 §2.9, 10 §C21."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from harnpy.storage import open_store
from harnpy.workflow.engines import open_engine
from harnpy.workflow.engines.contract import (
    CANCELLED,
    COMPLETED,
    DELAYED,
    QUEUED,
    Engine,
    Job,
    Json,
    RunContext,
)
from harnpy.workflow.engines.errors import RunFailed
from harnpy.workflow.engines.run_log import CODEC, KIND, rows
from harnpy.workflow.records import record_files
from tests.cli.commands.test_runs import RUN
from tests.support import ROOT, Command, Popen, wait_until
from tests.worlds import world_with

Write = Callable[[str, str], str]
Started = Callable[..., "subprocess.Popen[str]"]

#: Waits until somebody makes the file `go`.
PROGRAM = """
import { twice } from "lib/numbers"
pipeline main(task) {
  println("one ${argv[0]}")
  while !file_exists("go") { sleep(5ms) }
  println("two ${twice(2)}")
  return 7
}
"""
LIBRARY = "pub fn twice(n) { return n * 2 }"


@pytest.fixture
def program(write: Write) -> str:
    write("lib/numbers.harn", LIBRARY)
    return write("night.harn", PROGRAM)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """The engine that looks into the store of the test."""
    (tmp_path / ".harn").mkdir(exist_ok=True)
    engine = open_engine("local", f"sqlite:{tmp_path}/.harn/sessions.db", bodies={})
    yield engine
    engine.close()


@pytest.fixture
def started(popen: Popen, tmp_path: Path) -> Iterator[Started]:
    """Start a command that the test ends."""
    processes: list[subprocess.Popen[str]] = []

    def start(*args: str) -> subprocess.Popen[str]:
        env = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        command = [sys.executable, "-m", "harnpy", *args]
        processes.append(popen(command, cwd=tmp_path, env=env, text=True, **pipes))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def has_printed(engine: Engine, id: str, count: int = 1) -> Callable[[], bool]:
    """Whether the program has printed so often."""

    def printed() -> bool:
        if engine.get(id) is None:
            return False
        return sum(step.key.endswith(":out") for step in engine.steps(id)) >= count

    return printed


def status(engine: Engine, id: str) -> str:
    info = engine.get(id)
    return "" if info is None else info.status


def test_a_durable_run_is_a_run(harnpy: Command, program: str, write: Write, engine: Engine) -> None:
    write("go", "")
    done = harnpy("run", "--durable", program, "--run-id", "one", "--", "x")
    assert (done.stdout, done.stderr, done.returncode) == ("one x\ntwo 4\n", "run 'one'\n", 7)
    assert status(engine, "one") == COMPLETED
    body = engine.job("one").body
    assert (body["entry"], body["args"]) == (program, ["x"])
    again = harnpy("run", "--durable", program, "--run-id", "one", "--", "x")
    assert (again.stdout, again.returncode) == ("", 7)
    other = harnpy("run", "--durable", program, "--run-id", "one", "--", "y")
    assert other.stderr == "error: run 'one' exists already, and is of another job: take another id\n"
    assert other.returncode == 1


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_stopped_goes_on(
    harnpy: Command, started: Started, program: str, write: Write, engine: Engine, how: signal.Signals
) -> None:
    first = started("run", "--durable", program, "--run-id", "one", "--", "x")
    wait_until(has_printed(engine, "one"))
    first.send_signal(how)
    printed, errors = first.communicate()
    assert printed == "one x\n"
    if how == signal.SIGINT:
        assert first.returncode == 124
        assert "run 'one' goes on with `harnpy run --resume one`\n" in errors
        assert status(engine, "one") == QUEUED
    write("go", "")
    write("lib/numbers.harn", "not a program")  # what the run has is what it began with
    done = harnpy("run", "--resume", "one")
    assert (done.stdout, done.stderr, done.returncode) == ("two 4\n", "run 'one'\n", 7)


def test_a_run_says_what_it_waits_for_and_how_to_answer(
    harnpy: Command, write: Write, started: Started, tmp_path: Path
) -> None:
    write(
        "refund.harn",
        """
        tool refund(euros: int) { "paid ${euros}" }
        llm_mock({tool_calls: [{name: "refund", arguments: {euros: 12}}]})
        llm_mock({text: "done"})
        let policy = {require_approval: ["refund"]}
        let r = agent_loop("go", nil, {provider: "mock", tools: refund, approval_policy: policy})
        println(r.transcript.events.filter({ e -> e.text == "paid 12" }).count)
        """,
    )
    process = started("run", "--durable", "refund.harn")
    assert process.stderr is not None
    line = next(line for line in process.stderr if line.startswith("waiting for "))
    assert line.startswith('waiting for refund {"euros":12}: `harnpy waitpoint approve hitl_approval_')
    command = line.split("`")[1].split()
    assert harnpy(*command[1:], "--by", "ann").returncode == 0
    assert process.communicate()[0] == "1\n"


def test_an_approval_without_a_name_counts(harnpy: Command, write: Write, started: Started) -> None:
    write(
        "deploy.harn",
        """
        println(request_approval("deploy").reviewers)
        println(waitpoint_wait("parcel").status)
        """,
    )
    process = started("run", "--durable", "deploy.harn")
    assert process.stderr is not None
    asked = next(line for line in process.stderr if line.startswith("waiting for deploy: "))
    harnpy("waitpoint", "complete", asked.split("`")[1].split()[-1], '{"approved": true}')
    line = next(line for line in process.stderr if line.startswith("waiting for "))
    assert line == "waiting for waitpoint parcel: `harnpy waitpoint complete parcel JSON`\n"
    harnpy("waitpoint", "complete", "parcel", "--create")
    assert process.communicate()[0] == "[waitpoint]\ncompleted\n"


def test_a_run_goes_on_with_another_file(
    harnpy: Command, started: Started, program: str, write: Write, engine: Engine
) -> None:
    first = started("run", "--durable", program, "--run-id", "one", "--", "x")
    wait_until(has_printed(engine, "one"))
    first.kill()
    first.wait()
    write("go", "")
    write("lib/numbers.harn", "pub fn twice(n) { return n * 3 }")
    done = harnpy("run", "--resume", "one", program)
    assert (done.stdout, done.returncode) == ("two 6\n", 7)
    assert engine.job("one").body["args"] == ["x"]


def test_another_process_may_still_work_on_it(
    harnpy: Command, started: Started, program: str, engine: Engine
) -> None:
    started("run", "--durable", program, "--run-id", "one", "--", "x")
    wait_until(has_printed(engine, "one"))
    for command in (("run", "--resume", "one"), ("runs", "resume", "one")):
        done = harnpy(*command, "--engine", "local")
        assert done.stderr.startswith("error: run 'one' is at work in ")
        assert done.stderr.endswith(": wait for its end, or `harnpy runs cancel one --engine local`\n")
        assert done.returncode == 1


def test_advice_repeats_where_the_run_is(
    harnpy: Command, started: Started, program: str, write: Write, tmp_path: Path
) -> None:
    where = ("--engine", "local", "--store", f"sqlite:{tmp_path}/my runs.db")
    shown = f"--engine local --store 'sqlite:{tmp_path}/my runs.db'"
    engine = open_engine("local", where[-1], bodies={})
    first = started("run", "--durable", program, "--run-id", "one", *where, "--", "x")
    wait_until(has_printed(engine, "one"))
    engine.close()
    first.send_signal(signal.SIGINT)
    assert f"run 'one' goes on with `harnpy run --resume one {shown}`\n" in first.communicate()[1]
    unknown = harnpy("run", "--durable", program, "--queue", "q", *where)
    assert f"`harnpy worker {shown} --queue q` makes it" in unknown.stderr
    other = write("other.harn", "pipeline main(task) { println(1) }")
    taken = harnpy("run", "--durable", other, "--run-id", "one", *where)
    assert taken.stderr.endswith(
        f"take another id, or go on with it: `harnpy run --resume one {shown} {other}`\n"
    )
    refused = harnpy("run", "--resume", "one", "--accept-changes", "a", *where)
    assert refused.stderr.startswith(
        "error: run 'one' does a program: `--accept-changes` is for the stages of"
    )
    write("go", "")
    assert harnpy("run", "--resume", "one", *where).returncode == 7
    over = harnpy("run", "--resume", "one", other, *where)
    assert (over.stdout, over.returncode) == ("", 0)
    assert over.stderr == f"run 'one' is completed: {other} wasn't run\n"


def test_changes_of_an_unknown_stage_are_refused(harnpy: Command, engine: Engine) -> None:
    class Failing(Exception):
        pass

    def body(job: Job, run: RunContext) -> Json:
        run.step("stage:plan:1", dict)
        raise Failing

    own = open_engine("local", engine.store, bodies={"graph": body})  # type: ignore[attr-defined]
    with pytest.raises(RunFailed):
        own.start(Job("graph", "g", {"graph": {"nodes": {"review": {}}}}, ""), id="g").result()
    done = harnpy("run", "--resume", "g", "--accept-changes", "pln")
    assert done.stderr == "error: run 'g' has no stage 'pln': did you mean `plan`?\n"
    assert done.returncode == 1


def test_a_failure_is_shown_as_that_of_any_program(harnpy: Command, write: Write, engine: Engine) -> None:
    file = write("bad.harn", 'pipeline main(task) {\n  throw "bad"\n}\n')
    done = harnpy("run", "--durable", file, "--run-id", "one")
    assert done.stderr == (
        "run 'one'\nerror: Thrown: bad\n  --> bad.harn:2:3\n   |\n 2 |   throw \"bad\"\n   |   ^^^^^\n"
    )
    assert done.returncode == 1
    info = engine.get("one")
    assert info is not None
    assert info.error == "bad"
    assert harnpy("run", "--durable", file, "--run-id", "one").stderr == (
        "run 'one'\nerror: run 'one' failed: bad\n"
    )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--durable"], "`harnpy run` requires either `-e <code>` or `<file.harn>`"),
        (["--durable", "-"], "the argument '--durable' cannot be used with '-'"),
        (["--durable", "-e", "1"], "the argument '--durable' cannot be used with '-e'"),
        (["--durable", "a.harn", "--deny", "x"], "the argument '--durable' cannot be used with '--deny'"),
        (["--resume", "r", "--limit", "steps=1"], "the argument '--resume' cannot be used with '--limit'"),
        (["--durable", "a.harn", "--resume", "r"], "the argument '--durable' cannot be used with '--resume'"),
        (["a.harn", "--run-id", "r"], "the argument '--run-id' requires '--durable'"),
        (["--resume", "r", "--queue", "q"], "the argument '--queue' requires '--durable'"),
        (["a.harn", "--store", "memory:"], "the argument '--store' requires '--durable'"),
        (
            ["--durable", "a.harn", "--accept-changes", "s"],
            "the argument '--accept-changes' requires '--resume'",
        ),
        (["--resume"], "a value is required for '--resume' but none was supplied"),
    ],
)
def test_wrong_usage(harnpy: Command, args: list[str], message: str) -> None:
    done = harnpy("run", *args)
    assert done.stderr.startswith(f"error: {message}\n")
    assert done.returncode == 2


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--durable", "none.harn"], "/none.harn: No such file or directory"),
        (["--durable", "binary.harn"], "Error reading binary.harn: not a text file"),
        (["--resume", "none"], "error: unknown run 'none': `harnpy runs list` shows those that there are"),
        (["--resume", "none", "--engine", "nope"], "error: unknown engine 'nope': known are local, dbos"),
        (["--resume", "none", "--store", "nope:x"], "error: no store is called `nope:x`"),
        (
            ["--durable", "night.harn", "--queue", "q"],
            "error: unknown queue 'q': `harnpy worker --queue q` makes it, and so does engine.queue('q')",
        ),
        (
            ["--resume", "none", "--store", "postgresql://nobody@127.0.0.1:1/x"],
            "error: cannot open postgresql://nobody@127.0.0.1:1/x",
        ),
    ],
)
def test_what_can_t_be_done(
    harnpy: Command, program: str, tmp_path: Path, args: list[str], message: str
) -> None:
    (tmp_path / "binary.harn").write_bytes(b"\xff\xfe")
    done = harnpy("run", *args)
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.returncode == 1


def test_a_project_that_nobody_trusts_runs_nothing(
    harnpy: Command, program: str, write: Write, engine: Engine
) -> None:
    write("harn.toml", '[[mcp]]\nname = "x"\ncommand = "x"\n')
    done = harnpy("run", "--durable", program, "--", "x")
    assert "harnpy trust" in done.stderr
    assert done.returncode == 1
    assert engine.runs() == []


def test_who_trusts_no_project_leaves_its_runs_to_others(
    harnpy: Command, started: Started, program: str, write: Write, engine: Engine
) -> None:
    engine.queue("q")
    assert harnpy("run", "--durable", program, "--run-id", "one", "--queue", "q", "--", "x").returncode == 0
    write("harn.toml", '[[mcp]]\nname = "x"\ncommand = "x"\n')
    for words in (
        ["run", "--resume", "one"],
        ["runs", "resume", "one"],
        ["runs", "fork", "one", "--from", "1"],
    ):
        done = harnpy(*words)
        assert "harnpy trust" in done.stderr
        assert done.returncode == 1
    [info] = engine.runs()
    assert (info.id, info.status, info.attempt) == ("one", QUEUED, 0)
    worker = started("worker", "--queue", "q")
    wait_until(lambda: (info := engine.get("one")) is not None and info.status == DELAYED)
    worker.terminate()
    _, errors = worker.communicate(timeout=10)
    assert "'night.harn' is left to other workers: " in errors
    write("harn.toml", "")
    write("go", "")
    done = harnpy("run", "--resume", "one")
    assert (done.stdout, done.returncode) == ("one x\ntwo 4\n", 7)


# Workers.


def test_a_worker_does_what_is_queued_until_it_is_stopped(
    harnpy: Command, started: Started, program: str, write: Write, engine: Engine
) -> None:
    worker = started("worker", "--queue", "night")
    assert worker.stderr is not None
    assert worker.stdout is not None
    assert worker.stderr.readline().startswith("worker of night: engine local, store sqlite:")
    wait_until(lambda: harnpy("run", "--durable", program, "--queue", "night", "--", "x").returncode == 0)
    [run] = engine.runs()
    wait_until(has_printed(engine, run.id))
    worker.send_signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert worker.stdout.read() == "one x\n"
    assert status(engine, run.id) == QUEUED
    write("go", "")
    second = started("worker")
    wait_until(lambda: status(engine, run.id) == COMPLETED)
    second.send_signal(signal.SIGINT)
    assert second.communicate()[0] == "two 4\n"
    assert second.returncode == 0


def test_a_worker_says_what_is_wrong(harnpy: Command) -> None:
    for args, message, code in (
        (["--concurrency", "0"], "error: invalid value for '--concurrency': expected an int >= 1", 2),
        (["--engine", "x"], "error: invalid value for '--engine': expected one of local, dbos", 2),
        (["--store", "nope:x"], "error: no store is called `nope:x`", 1),
    ):
        done = harnpy("worker", *args)
        assert done.stderr.startswith(message)
        assert done.returncode == code


# `harnpy runs`.


def test_durable_runs_and_records_are_one_list(
    harnpy: Command, program: str, write: Write, tmp_path: Path
) -> None:
    write("go", "")
    harnpy("run", "--durable", program, "--run-id", "one", "--", "x")
    here = world_with(cwd=lambda: str(tmp_path))
    for id in ("run-1", "one"):
        record_files.save_run({**RUN, "id": id}, here, f".harn-runs/{id}.json")
    lines = [line.split() for line in harnpy("runs", "list").stdout.splitlines()]
    assert [line[0] for line in lines] == ["id", "one", "run-1"]
    assert lines[1][2:4] == ["local", "completed"]
    assert lines[2][2:4] == ["record", "completed"]
    found: list[dict[str, Any]] = json.loads(harnpy("runs", "list", "--json").stdout)
    assert [(run["id"], run["engine"], run["stages"]) for run in found] == [
        ("one", "local", 2),
        ("run-1", "record", 2),
    ]
    assert set(found[1]) < set(found[0])
    for args in (["--engine", "local"], ["--status", "completed"], ["--store", "sqlite:.harn/sessions.db"]):
        only: list[dict[str, Any]] = json.loads(harnpy("runs", "list", *args, "--json").stdout)
        assert [run["id"] for run in only] == ["one"]
    assert harnpy("runs", "list", "--status", "failed").stdout.startswith("no runs in ")


def test_a_durable_run_and_its_workflow_are_found_by_one_id(
    harnpy: Command, write: Write, started: Started, tmp_path: Path
) -> None:
    write(
        "article.harn",
        """
        let node = {kind: "stage", model_policy: {provider: "mock"}}
        let graph = workflow_graph({name: "article", entry: "draft", nodes: {draft: node}})
        println(workflow_execute("Write", graph).status)
        if argv.count > 0 { sleep(1h) }
        """,
    )
    process = started("run", "--durable", "--run-id", "art-1", "article.harn", "--", "wait")
    assert process.stdout is not None
    assert process.stdout.readline() == "completed\n"
    assert "record of art-1" in harnpy("runs", "list").stdout
    assert "interrupted" not in harnpy("runs", "list").stdout
    process.kill()
    process.wait()
    listed = harnpy("runs", "list")
    assert "interrupted" in listed.stdout
    advice = "run 'art-1' was interrupted: it goes on with `harnpy runs resume art-1`\n"
    assert listed.stderr == advice
    assert [run.get("left") for run in json.loads(harnpy("runs", "list", "--json").stdout)] == [None, True]
    shown = harnpy("runs", "show", "art-1").stdout
    assert "Workflow article: completed: `harnpy runs inspect " in shown
    assert shown.endswith(advice)
    assert "Workflow: article\n" in harnpy("runs", "inspect", "art-1").stdout
    assert "draft" in harnpy("viz", "art-1").stdout
    assert (
        "the stages of workflow 'article': `harnpy runs inspect " in harnpy("runs", "steps", "art-1").stderr
    )


def test_a_run_of_two_workflows_asks_which_one(harnpy: Command, write: Write) -> None:
    write(
        "two.harn",
        """
        let node = {kind: "stage", model_policy: {provider: "mock"}}
        for name in ["first", "second"] {
          workflow_execute("Write", workflow_graph({name: name, entry: "draft", nodes: {draft: node}}))
        }
        """,
    )
    assert harnpy("run", "--durable", "--run-id", "both", "two.harn").returncode == 0
    asked = harnpy("runs", "inspect", "both")
    assert asked.returncode == 1
    assert "run 'both' has run 2 workflows: name one of " in asked.stderr
    assert asked.stderr.index("(first)") < asked.stderr.index("(second)")


def test_a_list_makes_no_store(harnpy: Command, tmp_path: Path) -> None:
    assert harnpy("runs", "list", "--store", "sqlite:runs.db").stdout == "no runs in sqlite:runs.db\n"
    harnpy("runs", "list")
    assert not list(tmp_path.glob("**/*.db"))


def test_a_run_is_shown(harnpy: Command, program: str, write: Write, tmp_path: Path) -> None:
    write("go", "")
    harnpy("run", "--durable", program, "--run-id", "one", "--", "x")
    lines = harnpy("runs", "show", "one").stdout.splitlines()
    assert lines[:4] == ["Run: one", "Engine: local", "Job: night.harn (program)", "Status: completed"]
    assert "Attempts: 1" in lines
    shown = json.loads(harnpy("runs", "show", "one", "--json").stdout)
    assert (shown["id"], shown["engine"], shown["job"]["kind"]) == ("one", "local", "program")
    steps = [json.loads(line) for line in harnpy("runs", "steps", "one", "--json").stdout.splitlines()]
    assert [step["n"] for step in steps] == list(range(1, shown["stages"] + 1))
    assert harnpy("runs", "steps", "one").stdout.split()[:4] == ["n", "step", "recorded", "output"]
    record_files.save_run(RUN, world_with(cwd=lambda: str(tmp_path)), ".harn-runs/run-1.json")
    assert harnpy("runs", "show", "run-1").stdout == harnpy("runs", "inspect", "run-1").stdout
    assert json.loads(harnpy("runs", "show", "run-1", "--json").stdout)["id"] == "run-1"
    stages = [json.loads(line) for line in harnpy("runs", "steps", "run-1", "--json").stdout.splitlines()]
    assert [stage["key"] for stage in stages] == ["plan", "help"]


def test_a_run_is_cancelled_resumed_and_forked(
    harnpy: Command, started: Started, program: str, write: Write, engine: Engine
) -> None:
    first = started("run", "--durable", program, "--run-id", "one", "--", "x")
    wait_until(has_printed(engine, "one"))
    assert harnpy("runs", "cancel", "one", "--reason", "enough").stdout == "cancelled one\n"
    assert first.wait() == 1
    assert first.stderr is not None
    assert "run 'one' was cancelled: enough" in first.stderr.read()
    assert status(engine, "one") == CANCELLED
    again = harnpy("runs", "cancel", "one")
    assert (again.stderr, again.returncode) == ("error: one is cancelled: nothing has changed\n", 1)
    write("go", "")
    done = harnpy("runs", "resume", "one")
    assert (done.stdout, done.stderr, done.returncode) == ("two 4\ncompleted one\n", "run 'one'\n", 0)
    fork = harnpy("runs", "fork", "one", "--from", "1", "--run-id", "two", "--json")
    printed, _, result = fork.stdout.rpartition("{")
    assert printed == "one x\ntwo 4\n"
    assert json.loads("{" + result) == {"id": "two", "status": "completed", "result": 7}
    nowhere = harnpy("runs", "fork", "one", "--from", "nowhere")
    assert nowhere.stderr == (
        "error: run 'one' has no step 'nowhere': `harnpy runs steps one` shows those that it has\n"
    )
    assert harnpy("runs", "fork", "one").returncode == 2
    assert harnpy("runs", "delete", "one", "two").stdout == "deleted one\ndeleted two\n"
    assert engine.runs() == []


def test_a_run_that_can_t_be_read_is_left_out_and_said(
    harnpy: Command, program: str, engine: Engine, started: Started, tmp_path: Path
) -> None:
    (tmp_path / "go").touch()
    harnpy("run", "--durable", "--run-id", "good", program, "--", "a")
    with closing(open_store(f"sqlite:{tmp_path}/.harn/sessions.db")) as store:
        stream = store.stream(KIND, "bad", CODEC)
        stream.append(rows([("run_created", {})], 0, 1), 0, head={"name": 5, "status": "running"})
    warning = "warning: bad: its head is none of a run\n"
    listed = harnpy("runs", "list", "--json")
    assert ([run["id"] for run in json.loads(listed.stdout)], listed.stderr) == (["good"], warning)
    assert harnpy("runs", "show", "bad").stderr.startswith("error: Invalid session file [run 'bad']")
    engine.queue("q")
    harnpy("run", "--durable", "--run-id", "next", "--queue", "q", program, "--", "a")
    worker = started("worker", "--queue", "q")
    wait_until(lambda: engine.get("next").status == COMPLETED)  # type: ignore[union-attr]
    worker.send_signal(signal.SIGTERM)
    assert worker.communicate()[1].count(warning) == 1
    assert worker.returncode == 0


def test_a_store_that_is_garbage_is_said(harnpy: Command, tmp_path: Path, write: Write) -> None:
    write(".harn/sessions.db", "garbage " * 1000)
    for verb in ("show", "steps"):
        asked = harnpy("runs", verb, "r1")
        assert asked.returncode == 1
        assert "sessions.db" in asked.stderr
        assert "unknown run" not in asked.stderr
    write(".harn-runs/r1.json", json.dumps({**RUN, "id": "r1"}))
    assert harnpy("runs", "show", "r1").returncode == 0


def test_a_run_that_is_unknown(harnpy: Command, tmp_path: Path) -> None:
    unknown = "error: unknown run 'none': `harnpy runs list` shows those that there are\n"
    for args in (["show"], ["steps"], ["cancel"], ["delete"], ["resume"], ["fork", "--from", "1"]):
        done = harnpy("runs", args[0], "none", *args[1:])
        assert (done.stderr, done.returncode) == (unknown, 1)
    record_files.save_run(RUN, world_with(cwd=lambda: str(tmp_path)), ".harn-runs/run-1.json")
    for args in (["cancel"], ["delete"], ["resume"], ["fork", "--from", "1"]):
        done = harnpy("runs", args[0], "run-1", *args[1:])
        assert done.stderr == (
            f"error: 'run-1' is the record of a run that is over: `{args[0]}` is for durable ones\n"
        )
        assert done.returncode == 1


@pytest.mark.parametrize(("ending", "status"), [("", 1), ("return 0", 0)])
def test_a_durable_program_whose_workflow_failed_has_failed_unless_it_says_otherwise(
    harnpy: Command, write: Write, ending: str, status: int
) -> None:
    """Spec: 09 §2.3, §2.9."""
    check = '{kind: "verify", verify: {command: "exit 1", expect_status: 0}}'
    body = f'workflow_execute("t", {{name: "w", nodes: {{check: {check}}}}})\n{ending}'
    done = harnpy(
        "run", "--durable", "--run-id", "a", write("flow.harn", f"pipeline main(task) {{ {body} }}")
    )
    assert done.returncode == status
    assert ("error: workflow 'w' failed: node 'check': verification failed: " in done.stderr) == bool(status)
