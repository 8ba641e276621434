"""`harnpy branch --variants` (13 §7)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from harnpy.cli.app import main
from harnpy.cli.main import main as harnpy

Write = Callable[[str, str], str]
Capture = pytest.CaptureFixture[str]

SOURCE = """\
llm_mock({text: "an answer", input_tokens: 100, output_tokens: 20})
let said = llm_call("hi", nil, {provider: "mock", model: "m1"}).text
println(said)
println(read_file("prompt.txt"))
"""
PACK = {
    "version": 1, "id": "p", "cases": [],
    "rubrics": [{"id": "r", "kind": "deterministic", "assertions": [
        {"kind": "visible-text-contains", "stage": "output", "contains": "better"}]}],
}  # fmt: skip


@pytest.fixture(autouse=True)
def tape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Write, capsys: Capture) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARN_TRUST", "1")
    write("prompt.txt", "good")
    write("other.txt", "better")
    write("main.harn", SOURCE)
    assert harnpy(["run", "--record", "a.tape", "main.harn"]) == 0
    capsys.readouterr()


def test_variants_run_side_by_side_and_are_judged(write: Write, capsys: Capture) -> None:
    write("v.yaml", "- name: same\n- name: other\n  edit: {prompt.txt: other.txt}\n")
    write("pack.json", json.dumps(PACK))
    command = ["branch", "a.tape", "--at", "1", "--variants", "v.yaml", "--judge", "pack.json", "--jobs", "2"]
    assert main([*command, "--html", "page.html", "-o", "made"]) == 0
    shown = capsys.readouterr()
    lines = [line.split() for line in shown.out.splitlines()]
    assert lines[0][:5] == ["variant", "runs", "completed", "passed", "score"]
    assert lines[1][:4] == ["recorded", "yes", "no", "0.00"]
    assert lines[2][:6] == ["same", "1", "1/1", "(21%–100%)", "0/1", "(0%–79%)"]
    assert lines[3][:7] == ["other", "1", "1/1", "(21%–100%)", "1/1", "(21%–100%)", "1.00"]
    assert shown.out.endswith("report: page.html\n")
    assert sorted(shown.err.splitlines()) == [
        "other: completed, score 1.00 -> made/2-other-1.tape",
        "same: completed, score 0.00 -> made/1-same-1.tape",
    ]
    assert "Variants of call 1" in Path("page.html").read_text()


def test_models_judge_what_came_of_runs(write: Write, capsys: Capture) -> None:
    write("v.yaml", "- {name: other, edit: {prompt.txt: other.txt}}\n")
    rubric = {"id": "tone", "kind": "llm-judge", "prompt": "Is it better?", "judge": {"provider": "mock"}}
    write("pack.json", json.dumps({"version": 1, "id": "p", "cases": [], "rubrics": [rubric]}))
    answers = [
        {"match": "*better*", "text": '{"reason": "It is.", "score": 0.75}'},
        {"match": "*", "text": '{"reason": "It is not.", "score": 0.25}'},
    ]
    write("answers.jsonl", "".join(f"{json.dumps(each)}\n" for each in answers))
    command = ["branch", "a.tape", "--at", "1", "--variants", "v.yaml", "--judge", "pack.json"]
    assert main([*command, "--llm-mock", "answers.jsonl", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["recorded"]["score"], found["recorded"]["passed"]) == (0.25, False)
    (run,) = found["variants"][0]["runs"]
    assert (run["score"], run["passed"], run["reason"]) == (0.75, True, "tone: It is.")
    assert found["judges"]["calls"] == 2
    assert main([*command, "--llm-mock", "answers.jsonl"]) == 0
    shown = capsys.readouterr().out
    assert "\nJudges: 2 calls, " in shown
    assert main([*command, "--llm-mock", "gone"]) == 1
    assert "failed to read gone" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--variants", "v.yaml", "--model", "m"], "with --variants, what changes is in the file"),
        (["--runs", "3"], "--runs, --jobs, --judge, --llm-mock, --html and --json are for --variants FILE"),
    ],
)
def test_options_that_do_not_go_together(arguments: list[str], said: str, capsys: Capture) -> None:
    assert main(["branch", "a.tape", "--at", "1", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_variants_that_are_none(write: Write, capsys: Capture) -> None:
    write("v.yaml", "- {mesage: x}\n")
    assert main(["branch", "a.tape", "--at", "1", "--variants", "v.yaml"]) == 1
    assert "v.yaml, variant 1: " in capsys.readouterr().err
    assert main(["branch", "a.tape", "--at", "1", "--variants", "none.yaml"]) == 1
    assert "none.yaml" in capsys.readouterr().err
    assert not Path("a.variants-1").exists()
