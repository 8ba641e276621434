"""`--html FILE` of the commands that show runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from harnpy.cli.app import main

Write = Callable[[str, str], str]
Capture = pytest.CaptureFixture[str]

RUN = {
    "_type": "run_record", "id": "r1", "workflow_id": "w", "task": "use sk-proj-4fTq9LxB72",
    "status": "completed",
    "stages": [{"id": "r1:a:1", "node_id": "a", "status": "completed", "visible_text": "hello"}],
}  # fmt: skip


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Write) -> None:
    monkeypatch.chdir(tmp_path)
    write("a.json", json.dumps(RUN))
    write("b.json", json.dumps({**RUN, "id": "r2", "status": "paused"}))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["runs", "inspect", "a.json"], "hello"),
        (["replay", "a.json"], "hello"),
        (["runs", "diff", "a.json", "b.json"], "different"),
        (["runs", "diff", "a.json", "a.json"], "identical"),
        (["eval", "a.json"], "passed"),
    ],
)
def test_a_page_beside_the_report(arguments: list[str], said: str, capsys: Capture) -> None:
    assert main(arguments) == 0
    usual = capsys.readouterr().out
    assert main([*arguments, "--html", "out/page.html"]) == 0
    assert capsys.readouterr().out == f"{usual}report: out/page.html\n"
    page = Path("out/page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert said in page
    assert "sk-proj" not in page
    assert [path.name for path in Path("out").iterdir()] == ["page.html"]


def test_a_failed_evaluation_has_a_page_too(write: Write, capsys: Capture) -> None:
    fixture = {"_type": "replay_fixture", "id": "f", "expected_status": "failed", "stage_assertions": []}
    write("c.json", json.dumps({**RUN, "replay_fixture": fixture}))
    assert main(["eval", "c.json", "--html", "page.html"]) == 1
    assert capsys.readouterr().out.endswith("report: page.html\n")
    assert "run status mismatch: expected failed, got completed" in Path("page.html").read_text()


def test_a_page_that_can_not_be_written(write: Write, capsys: Capture) -> None:
    write("file", "")
    assert main(["runs", "inspect", "a.json", "--html", "file/page.html"]) == 1
    assert "error: file" in capsys.readouterr().err
