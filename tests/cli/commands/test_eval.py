"""`harnpy eval` and `harnpy test package --evals`. Spec: 09 §8.3."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import Command

Dict = dict[str, Any]


def stage(node: str, **fields: Any) -> Dict:
    return {"id": f"s-{node}", "node_id": node, "status": "completed", "outcome": "success", **fields}


def run(id: str, **fields: Any) -> str:
    given = {"_type": "run_record", "id": id, "workflow_id": "flow", "status": "completed", **fields}
    return json.dumps({"stages": [stage("plan")], **given})


# A record.


def test_a_record_passes_its_own_fixture(harnpy: Command, write) -> None:
    done = harnpy("eval", write("a.json", run("r1")))
    assert (done.stdout, done.stderr, done.returncode) == ("PASS\nStages: 1\n", "", 0)


def test_a_record_fails_the_fixture_that_it_keeps(harnpy: Command, write) -> None:
    fixture = {"expected_status": "failed", "stage_assertions": [{"node_id": "act"}]}
    done = harnpy("eval", write("a.json", run("r1", replay_fixture=fixture)))
    assert done.stdout == (
        "FAIL\n"
        "Stages: 1\n"
        "- run status mismatch: expected failed, got completed\n"
        "- missing stage act\n"
    )  # fmt: skip
    assert done.returncode == 1


def test_a_record_is_compared(harnpy: Command, write) -> None:
    write("base.json", run("r0", stages=[stage("plan", outcome="skipped")]))
    done = harnpy("eval", write("a.json", run("r1")), "--compare", "base.json")
    assert done.stdout == (
        "PASS\n"
        "Stages: 1\n"
        "Diff: r0 -> r1 [completed -> completed]\n"
        "Identical: false\n"
        "Stage diffs: 1\n"
        "Tool diffs: 0\n"
        "Observability diffs: 0\n"
        "Transition delta: 0\n"
        "Artifact delta: 0\n"
        "Checkpoint delta: 0\n"
        "- plan [changed]\n"
        "  outcome: skipped -> success\n"
    )
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "No such file or directory (os error 2)"),
        ("{", "EOF while parsing an object at line 1 column 1"),
        ("[]", "run_record parse error at payload: expected dict, got list"),
    ],
)
def test_what_is_no_record(harnpy: Command, write, text: str | None, reason: str) -> None:
    name = "a.json" if text is None else write("a.json", text)
    done = harnpy("eval", name)
    assert done.stderr.startswith("Failed to load run record: ")
    assert reason in done.stderr
    assert (done.stdout, done.returncode) == ("", 1)


# A directory of records.


def test_a_directory_is_judged_in_order(harnpy: Command, write) -> None:
    write("runs/b.json", run("r-b", replay_fixture={"expected_status": "failed"}))
    write("runs/a.json", run("r-a"))
    write("runs/notes.txt", "not a record")
    done = harnpy("eval", "runs")
    assert done.stdout == (
        "FAIL 1 passed, 1 failed, 2 total\n"
        "- r-a [flow] PASS\n"
        "  path: runs/a.json\n"
        "- r-b [flow] FAIL\n"
        "  path: runs/b.json\n"
        "  run status mismatch: expected failed, got completed\n"
    )
    assert done.returncode == 1


def test_a_directory_without_records(harnpy: Command, write) -> None:
    write("runs/notes.txt", "")
    done = harnpy("eval", "runs")
    assert (done.stdout, done.returncode) == ("PASS 0 passed, 0 failed, 0 total\n", 0)
    assert done.stderr == "warning: no run records in runs\n"


def test_a_directory_with_something_else(harnpy: Command, write) -> None:
    write("runs/a.json", "{")
    done = harnpy("eval", "runs")
    assert done.stderr.startswith("error: failed to parse run record: ")
    assert done.stderr.endswith("\n  --> runs/a.json\n")
    assert done.returncode == 1


# The manifest of a suite.


@pytest.mark.parametrize("extra", [{}, {"_type": "eval_suite_manifest", "version": 1}])
def test_a_suite(harnpy: Command, write, extra: Dict) -> None:
    write("suite/runs/a.json", run("r-a"))
    write("suite/runs/b.json", run("r-b", stages=[]))
    cases = [{"label": "first", "run_path": "a.json"}, {"run_path": "b.json", "compare_to": "a.json"}]
    write("suite/suite.json", json.dumps({"base_dir": "runs", "cases": cases, **extra}))
    done = harnpy("eval", "suite/suite.json")
    assert done.stdout == (
        "FAIL 1 passed, 1 failed, 2 total\n"
        "- first [flow] PASS\n"
        "  path: suite/runs/a.json\n"
        "- r-b [flow] FAIL\n"
        "  path: suite/runs/b.json\n"
        "  baseline identical: false\n"
        "  run differs from baseline a.json with 1 stage changes\n"
    )
    assert done.returncode == 1


def test_a_suite_without_cases(harnpy: Command, write) -> None:
    done = harnpy("eval", write("suite.json", '{"_type": "eval_suite_manifest"}'))
    assert (done.stdout, done.returncode) == ("PASS 0 passed, 0 failed, 0 total\n", 0)


def test_a_suite_whose_file_is_missing(harnpy: Command, write) -> None:
    done = harnpy("eval", write("suite.json", json.dumps({"cases": [{"run_path": "gone.json"}]})))
    message = "error: failed to read run record: No such file or directory (os error 2)"
    assert done.stderr == f"{message}\n  --> gone.json\n"
    assert (done.stdout, done.returncode) == ("", 1)


# An eval pack.

PACK = """
id = "nightly"
[[rubrics]]
id = "odd"
kind = "odd"
[[cases]]
name = "smoke"
run-path = "runs/a.json"
rubrics = ["odd"]
[[cases]]
id = "size"
run-path = "runs/a.json"
severity = "info"
compare-to = "runs/a.json"
thresholds = { max-stage-count = 0 }
"""


def test_a_pack(harnpy: Command, write) -> None:
    write("runs/a.json", run("r-a"))
    done = harnpy("eval", write("harn.eval.toml", PACK))
    assert done.stdout == (
        "PASS 2 passed, 0 blocking failed, 1 warning, 1 informational, 2 total\n"
        "- smoke [flow] PASS (blocking)\n"
        "  path: runs/a.json\n"
        "  warning: rubric 'odd' has unknown kind 'odd' and was not run locally\n"
        "- size [flow] PASS (informational)\n"
        "  path: runs/a.json\n"
        "  baseline identical: true\n"
        "  info: stage count 1 exceeds threshold 0\n"
    )
    assert (done.stderr, done.returncode) == ("", 0)


def test_a_pack_with_a_failure_that_blocks(harnpy: Command, write) -> None:
    write("runs/a.json", run("r-a"))
    done = harnpy("eval", write("harn.eval.toml", PACK.replace('"info"', '"blocking"')))
    assert done.stdout.startswith("FAIL 1 passed, 1 blocking failed, 1 warning, 0 informational, 2 total\n")
    assert "- size [flow] FAIL (blocking)\n" in done.stdout
    assert "  stage count 1 exceeds threshold 0\n" in done.stdout
    assert done.returncode == 1


def test_a_pack_as_json(harnpy: Command, write) -> None:
    event = {"kind": "tool_gap", "summary": "s"}
    fixture = {"id": "desk", "inline": {"events": [event], "expected_suggestions": [{"min_suggestions": 1}]}}
    pack = {"version": 1, "fixtures": [fixture], "cases": [{"friction_events": "desk", "severity": "warn"}]}
    done = harnpy("eval", write("pack.json", json.dumps(pack)))
    assert done.stdout == (
        "PASS 1 passed, 0 blocking failed, 1 warning, 0 informational, 1 total\n"
        "- case_1 [-] PASS (warning)\n"
        "  warning: expected at least 1 context-pack suggestion(s), got 0\n"
    )


def test_a_pack_that_can_not_be_read(harnpy: Command, write) -> None:
    done = harnpy("eval", write("pack.toml", "id = "))
    message = "error: failed to parse eval pack: 'id =' is not valid here at line 1 column 6"
    assert done.stderr == f"{message}\n  --> pack.toml\n"
    assert done.returncode == 1


JUDGED = """
id = "nightly"
[judge]
provider = "mock"
[[rubrics]]
id = "tone"
kind = "llm-judge"
prompt = "Is it polite?"
thresholds = { min-score = 0.7 }
[[cases]]
name = "first"
run-path = "runs/a.json"
rubrics = ["tone"]
[[cases]]
name = "second"
run-path = "runs/b.json"
rubrics = ["tone"]
"""


def judge(write) -> str:
    write("runs/a.json", run("r-a", task="hello"))
    write("runs/b.json", run("r-b", task="hey you"))
    polite = {"match": "*hello*", "text": '{"reason": "It greets.", "score": 0.9}'}
    rude = {"match": "*hey you*", "text": '{"reason": "It\\u001b[31m shouts.", "score": 0.25}'}
    counted = {"input_tokens": 50, "output_tokens": 6}
    return write("judge.jsonl", "".join(json.dumps(each | counted) + "\n" for each in (polite, rude)))


def test_a_pack_with_a_judge(harnpy: Command, write, tmp_path: Path) -> None:
    mocked = judge(write)
    done = harnpy("eval", write("harn.eval.toml", JUDGED), "--llm-mock", mocked, "--html", "out.html")
    assert done.stdout == (
        "FAIL 1 passed, 1 blocking failed, 0 warning, 0 informational, 2 total\n"
        "- first [flow] PASS (blocking)\n"
        "  path: runs/a.json\n"
        "  rubric 'tone' scored 0.9 (0.7 passes): It greets.\n"
        "- second [flow] FAIL (blocking)\n"
        "  path: runs/b.json\n"
        "  rubric 'tone' scored 0.25, below 0.7: It␛[31m shouts.\n"
        "Judges: 2 calls, 100 + 12 tokens, $0.000480\n"
        "report: out.html\n"
    )
    assert (done.stderr, done.returncode) == ("", 1)
    assert "It greets." in (tmp_path / "out.html").read_text(encoding="utf-8")


def test_a_pack_without_its_judge(harnpy: Command, write) -> None:
    judge(write)
    done = harnpy("eval", write("harn.eval.toml", JUDGED), "--no-judge")
    left_out = "  rubric 'tone' requires an external LLM judge and was not run locally\n"
    assert done.stdout.count(left_out) == 2
    assert "Judges: " not in done.stdout
    assert (done.stderr, done.returncode) == ("", 1)


def test_a_judge_that_can_not_be_asked(harnpy: Command, write) -> None:
    judge(write)
    done = harnpy("eval", write("harn.eval.toml", JUDGED.replace('"mock"', '"openai"')))
    assert done.stdout.count("  rubric 'tone' could not be judged: Missing API key: set OPENAI_API_KEY ") == 2
    assert done.returncode == 1


def test_fixtures_that_are_not_there(harnpy: Command, write) -> None:
    judge(write)
    done = harnpy("eval", write("harn.eval.toml", JUDGED), "--llm-mock", "gone")
    assert done.stderr == "error: failed to read gone: No such file or directory\n"
    assert (done.stdout, done.returncode) == ("", 1)


def test_a_project_that_nobody_trusts_names_no_judge(harnpy: Command, write) -> None:
    judge(write)
    write("harn.toml", '[llm.providers.acme]\nbase_url = "http://127.0.0.1:9"\n')
    pack = write("harn.eval.toml", JUDGED)
    done = harnpy("eval", pack, HARN_TRUST="")
    assert "only once you trust the project" in done.stderr
    assert (done.stdout, done.returncode) == ("", 1)
    assert harnpy("eval", pack, "--no-judge", HARN_TRUST="").stderr == ""


def test_what_a_record_says_can_not_steer_the_terminal(harnpy: Command, write) -> None:
    write("runs/a.json", run("r\x1b[31m", workflow_id="w\x07\n- forged"))
    assert harnpy("eval", "runs").stdout == (
        "PASS 1 passed, 0 failed, 1 total\n- r␛[31m [w␇ - forged] PASS\n  path: runs/a.json\n"
    )


# A program, without and with an experiment.

PROGRAM = """
pipeline default(task) {
  let answer = llm_call("Say something.", nil, {provider: "mock"})
  eval_metric("length", len(answer.text))
  println("${argv}: ${answer.text}")
}
"""


def mock(write) -> str:
    """Answers that depend on the prompt."""
    drafted = {"match": "*draft*", "text": "longer", "input_tokens": 20, "output_tokens": 2}
    plain = {"match": "*", "text": "short", "input_tokens": 10, "output_tokens": 1}
    return write("mock.jsonl", "".join(json.dumps(line) + "\n" for line in (drafted, plain)))


def test_a_program_is_run_without_and_with_an_experiment(harnpy: Command, write) -> None:
    write("a.harn", PROGRAM)
    experiment = ("--structural-experiment", "chain_of_draft", "--llm-mock", mock(write))
    done = harnpy("eval", "a.harn", *experiment, "--", "x")
    assert done.stdout == (
        "PASS\n"
        "Structural experiment: chain_of_draft\n"
        "- baseline PASS\n"
        "- experiment PASS\n"
        "LLM calls: 1 -> 1\n"
        "Input tokens: 10 -> 20\n"
        "Output tokens: 1 -> 2\n"
        "Cost: $0.000045 -> $0.000090\n"
        "- length: 5 -> 6\n"
        "Output: different\n"
        "--- a/output\n"
        "+++ b/output\n"
        "-[x]: short\n"
        "+[x]: longer\n"
    )
    assert (done.stderr, done.returncode) == ("", 0)


def test_the_baseline_is_without_an_experiment_of_the_environment(harnpy: Command, write) -> None:
    write("a.harn", PROGRAM)
    experiment = ("--structural-experiment", "doubled_prompt", "--llm-mock", mock(write))
    done = harnpy("eval", "a.harn", *experiment, HARN_STRUCTURAL_EXPERIMENT="chain_of_draft")
    assert "Input tokens: 10 -> 10\n" in done.stdout
    assert done.stdout.endswith("Output: identical\n")


def test_a_program_that_fails(harnpy: Command, write) -> None:
    write("a.harn", PROGRAM.replace("println(", 'require answer.text == "short", "only with it"\n  println('))
    experiment = ("--structural-experiment", "chain_of_draft", "--llm-mock", mock(write))
    done = harnpy("eval", "a.harn", *experiment)
    assert done.stdout.startswith(
        "FAIL\n"
        "Structural experiment: chain_of_draft\n"
        "- baseline PASS\n"
        "- experiment FAIL\n"
        "  Thrown: only with it\n"
    )  # fmt: skip
    assert done.returncode == 1


def test_an_exit_status_is_a_failure(harnpy: Command, write) -> None:
    write("a.harn", "pipeline default(task) { return 3 }")
    done = harnpy("eval", "a.harn", "--structural-experiment", "doubled_prompt")
    assert "- baseline FAIL\n- experiment FAIL\n" in done.stdout
    assert done.returncode == 1


def test_an_unknown_experiment_runs_nothing(harnpy: Command, write) -> None:
    write("a.harn", 'println("ran")')
    done = harnpy("eval", "a.harn", "--structural-experiment", "magic(seed: 1)")
    assert done.stderr == "error: unknown structural experiment `magic`\n"
    assert (done.stdout, done.returncode) == ("", 1)


# Usage.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.harn"], "a program is evaluated with `--structural-experiment SPEC`"),
        (["a.harn", "--compare", "b"], "`--compare` applies to a record, and a.harn is a program"),
        (["runs", "--compare", "b"], "`--compare` applies to a record, and runs is a directory"),
        (["a.toml", "--structural-experiment", "x"], "`--structural-experiment` applies to a program"),
        (
            ["a.json", "--llm-mock", "x"],
            "`--llm-mock` applies to a program or a pack, and a.json is",
        ),
        (["runs", "--no-judge"], "`--no-judge` applies to a pack, and runs is a directory"),
        (["a.json", "--", "x"], "`ARGS` applies to a program, and a.json is a record"),
        ([], "missing argument 'PATH'"),
    ],
)
def test_wrong_usage(harnpy: Command, write, arguments: list[str], message: str) -> None:
    write("a.harn", "")
    write("runs/a.json", run("r"))
    write("a.toml", "")
    write("a.json", run("r"))
    done = harnpy("eval", *arguments)
    assert done.stderr.startswith(f"error: {message}")
    assert (done.stdout, done.returncode) == ("", 2)


# `harnpy test package --evals`.


def test_the_usual_pack_of_a_package(harnpy: Command, write) -> None:
    write("harn.toml", '[package]\nname = "p"\n')
    write("runs/a.json", run("r-a"))
    write("harn.eval.toml", PACK)
    done = harnpy("test", "package", "--evals")
    assert done.stdout.startswith(
        "Eval pack: harn.eval.toml\n"
        "PASS 2 passed, 0 blocking failed, 1 warning, 1 informational, 2 total\n"
        "- smoke [flow] PASS (blocking)\n"
        "  path: runs/a.json\n"
    )
    assert (done.stderr, done.returncode) == ("", 0)


def test_the_packs_that_a_package_lists(harnpy: Command, write) -> None:
    write("harn.toml", '[package]\nevals = ["evals/a.toml", "gone.toml", "evals/b.json"]\n')
    write("evals/a.toml", "")
    write("evals/b.json", json.dumps({"cases": []}))
    done = harnpy("test", "package", "--evals")
    empty = "PASS 0 passed, 0 blocking failed, 0 warning, 0 informational, 0 total\n"
    assert done.stdout == (
        f"Eval pack: evals/a.toml\n{empty}Eval pack: gone.toml\nEval pack: evals/b.json\n{empty}"
    )
    message = "error: failed to read eval pack: No such file or directory (os error 2)"
    assert done.stderr == f"{message}\n  --> gone.toml\n"
    assert done.returncode == 1


@pytest.mark.parametrize("evals", ['"a.toml"', "[1]"])
def test_a_package_that_lists_something_else(harnpy: Command, write, evals: str) -> None:
    write("harn.toml", f"[package]\nevals = {evals}\n")
    done = harnpy("test", "package", "--evals")
    assert done.stderr == "error: harn.toml: `package.evals` must be a list of paths\n"
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["package"], "`harnpy test package` requires `--evals`"),
        (["package", "--evals", "--watch"], "`--watch` does not apply to harnpy test package"),
        (["package", "x", "--evals"], "only `harnpy test conformance` accepts a second positional target"),
        (["--evals"], "`--evals` applies to `harnpy test package`"),
        (["conformance", "--evals"], "`--evals` applies to `harnpy test package`"),
    ],
)
def test_wrong_usage_of_test_package(harnpy: Command, arguments: list[str], message: str) -> None:
    done = harnpy("test", *arguments)
    assert done.stderr.startswith(f"error: {message}\n")
    assert done.returncode == 2
