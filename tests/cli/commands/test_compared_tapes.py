"""`harnpy compare`, and `harnpy runs steps` and `runs diff` of tapes (13 §6)."""

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
llm_mock({text: "ANSWER\\nand more", input_tokens: 100, output_tokens: 20})
let said = llm_call("write of ${read_file("topic.txt")}", nil, {provider: "mock", model: "m1"}).text
println(said)
write_file("out.txt", "${said}\\n")
"""


@pytest.fixture(autouse=True)
def tapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Write, capsys: Capture) -> None:
    monkeypatch.chdir(tmp_path)
    write("topic.txt", "sea")
    write("one.harn", SOURCE.replace("ANSWER", "blue"))
    write("two.harn", SOURCE.replace("ANSWER", "green"))
    assert harnpy(["run", "--record", "a.tape", "one.harn"]) == 0
    assert harnpy(["run", "--record", "b.tape", "two.harn"]) == 0
    assert harnpy(["run", "--record", "c.tape", "one.harn"]) == 0
    capsys.readouterr()


@pytest.mark.parametrize("command", [["compare"], ["runs", "diff"]])
def test_two_tapes_are_compared(command: list[str], capsys: Capture) -> None:
    before = sorted(Path().iterdir())
    assert main([*command, "a.tape", "b.tape"]) == 0
    shown = capsys.readouterr().out
    lines = shown.splitlines()
    assert lines[0] == "a.tape [completed] -> b.tape [completed]"
    assert lines[1].startswith("they part at two.harn:2:12, at effect ")
    assert lines[1].endswith("the model mock/m1 answers otherwise: recorded was blue, now it is green")
    assert "model calls            1          1" in shown
    assert "   1  mock/m1  reply  blue    green" in shown
    assert "output:\n--- a/output\n+++ b/output\n-blue\n+green\n and more\n" in shown
    assert "file     change\nout.txt  changed\n--- a/out.txt\n" in shown
    assert sorted(Path().iterdir()) == before
    assert Path("out.txt").read_text() == "blue\nand more\n"


@pytest.mark.parametrize("command", [["compare"], ["runs", "diff"]])
def test_without_a_difference_it_says_so(command: list[str], capsys: Capture) -> None:
    assert main([*command, "a.tape", "c.tape"]) == 0
    assert capsys.readouterr().out == "a.tape [completed] -> c.tape [completed]\nidentical\n"


def test_as_json_and_as_a_page(capsys: Capture) -> None:
    assert main(["compare", "a.tape", "b.tape", "--json", "--html", "page.html"]) == 0
    first, last = capsys.readouterr().out.splitlines()
    found = json.loads(first)
    assert found["is_identical"] is False
    assert [pair["b"]["reply"] for pair in found["calls"]] == ["green\nand more"]
    assert last == "report: page.html"
    assert "they part" in Path("page.html").read_text().lower()


def test_records_are_compared_as_runs_diff_does(write: Write, capsys: Capture) -> None:
    run = {"_type": "run_record", "id": "r1", "workflow_id": "w", "status": "completed", "stages": []}
    write("a.json", json.dumps(run))
    write("b.json", json.dumps({**run, "id": "r2", "status": "paused"}))
    shown = []
    for command in (["compare"], ["runs", "diff"]):
        assert main([*command, "a.json", "b.json"]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]
    assert shown[0].startswith("r1 [completed] -> r2 [paused]\n")
    assert main(["compare", "a.json", "b.json", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["status_changed"] is True


def test_a_tape_and_a_record_are_not_compared(write: Write, capsys: Capture) -> None:
    write("a.json", "{}")
    assert main(["compare", "a.json", "b.tape"]) == 2
    assert "error: 'b.tape' is a tape and 'a.json' is none: compare two of a kind" in capsys.readouterr().err


def test_a_tape_that_is_damaged(write: Write, capsys: Capture) -> None:
    write("bad.tape", Path("a.tape").read_text().replace('["task_root/1', '["task_root/1"', 1))
    assert main(["compare", "a.tape", "bad.tape"]) == 1
    assert "bad.tape is damaged at line " in capsys.readouterr().err


def test_the_effects_on_a_tape_are_listed(capsys: Capture) -> None:
    assert main(["runs", "steps", "a.tape"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["n", "call", "task", "kind", "what", "bytes"]
    assert [line[0] for line in lines[1:]] == [str(number) for number in range(1, len(lines))]
    assert ["task_root", "read", "reads", "topic.txt"] in [line[1:5] for line in lines]
    assert [line[1:4] for line in lines if "model" in line] == [["1", "task_root", "model"]]


def test_the_calls_on_a_tape_are_listed(capsys: Capture) -> None:
    assert main(["runs", "steps", "a.tape", "--calls"]) == 0
    head, line = capsys.readouterr().out.splitlines()
    assert head.split() == ["call", "effect", "model", "asked", "reply", "in/out", "cost", "time"]
    assert ' mock/m1  user: "write of sea"  blue   100 / 20 ' in line
    assert main(["runs", "steps", "a.tape", "--calls", "--json"]) == 0
    (call,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (call["number"], call["reply"], call["input_tokens"]) == (1, "blue\nand more", 100)
    assert main(["runs", "steps", "a.tape", "--json"]) == 0
    effects = [*map(json.loads, capsys.readouterr().out.splitlines())]
    assert [each["number"] for each in effects] == [*range(1, len(effects) + 1)]
    assert [each["call"] for each in effects if each["kind"] == "model"] == [1]


def test_only_a_tape_has_calls_listed(capsys: Capture) -> None:
    assert main(["runs", "steps", "r1", "--calls"]) == 2
    assert "'r1' isn't a tape, and only tapes have calls of models listed" in capsys.readouterr().err
