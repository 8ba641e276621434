"""`harnpy test --tape`: recorded runs as tests. Spec: 13 §10."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.terminal import Terminal

Command = Callable[..., "CompletedProcess[str]"]

TEXT = """let system = read_file("prompt.txt")
println(llm_call("first", system, {provider: "mock"}).text)
println(exec("echo", "hi").stdout)
return 0
"""


@pytest.fixture
def project(tmp_path: Path, harnpy: Command) -> Path:
    (tmp_path / "main.harn").write_text(TEXT)
    (tmp_path / "prompt.txt").write_text("be nice")
    (tmp_path / "tests").mkdir()
    assert harnpy("run", "--record", "tests/first.tape", "main.harn").returncode == 0
    return tmp_path


def test_a_tape_is_a_test(project: Path, harnpy: Command) -> None:
    for words in (["--tape"], ["--tape", "tests/first.tape"], ["tests/first.tape"], ["tests", "--tape"]):
        done = harnpy("test", *words)
        assert done.returncode == 0, done
        assert "PASS  first.tape [tests/first.tape]" in done.stdout
        assert "1 passed, 1 total" in done.stdout


def test_a_difference_fails_with_what_was_edited(project: Path, harnpy: Command) -> None:
    (project / "main.harn").write_text(TEXT.replace('"first"', '"second"'))
    done = harnpy("test", "--tape", "--junit", "j.xml")
    assert done.returncode == 1
    said = "the program differs from tests/first.tape at main.harn:2:9, at effect "
    assert said in done.stdout
    assert "; edited: main.harn:2" in done.stdout
    assert said in (project / "j.xml").read_text()
    result, count = map(json.loads, harnpy("test", "--tape", "--json").stdout.splitlines())
    assert (result["name"], result["status"]) == ("first.tape", "fail")
    assert said in result["error"]
    assert (count["failed"], count["total"]) == (1, 1)


def test_a_program_that_does_not_run_any_more_fails(project: Path, harnpy: Command) -> None:
    (project / "main.harn").write_text(f"let x = ((\n{TEXT}")
    said = "the program of tests/first.tape doesn't run any more: "
    assert said in harnpy("test", "--tape").stdout
    before = (project / "tests" / "first.tape").read_bytes()
    assert harnpy("test", "--tape", "--update", "--yes").returncode == 1
    assert (project / "tests" / "first.tape").read_bytes() == before
    (project / "main.harn").write_text(TEXT.replace("return 0", "return {ok: true}"))
    said = 'at its end: recorded was that it returned 0, now it returned {"ok":true}'
    assert said in harnpy("test", "--tape").stdout


def test_what_is_recorded_anew_prints_beside_the_json(project: Path, harnpy: Command) -> None:
    (project / "prompt.txt").write_text("be kind")
    done = harnpy("test", "--tape", "--update", "--yes", "--json")
    result, _ = map(json.loads, done.stdout.splitlines())
    assert (result["status"], done.returncode) == ("pass", 0)
    assert "\nhi\n" in done.stderr


def test_an_edited_prompt_fails(project: Path, harnpy: Command) -> None:
    (project / "prompt.txt").write_text("be kind")
    done = harnpy("test", "--tape")
    assert done.returncode == 1
    assert 'another system: recorded was "be nice", now it is "be kind"; edited: prompt.txt:1' in done.stdout


def test_a_prompt_that_is_gone_fails(project: Path, harnpy: Command) -> None:
    (project / "prompt.txt").unlink()
    done = harnpy("test", "--tape")
    assert done.returncode == 1
    assert "; edited: prompt.txt (gone)" in done.stdout


@pytest.mark.parametrize("end", ["return 3", "exit(2)", 'throw "no"'])
def test_another_end_fails(project: Path, harnpy: Command, end: str) -> None:
    (project / "main.harn").write_text(TEXT.replace("return 0", end))
    done = harnpy("test", "--tape")
    assert done.returncode == 1
    assert "differs from tests/first.tape" in done.stdout
    assert "edited: main.harn:4" in done.stdout


@pytest.mark.parametrize("end", ["return 3", "exit(2)", 'throw "no"'])
def test_the_same_end_passes(tmp_path: Path, harnpy: Command, end: str) -> None:
    (tmp_path / "a.harn").write_text(f'println("x")\n{end}\n')
    harnpy("run", "--record", "a.tape", "a.harn")
    (tmp_path / "a.harn").write_text(f'// said\nprintln("x")\n{end}\n')
    assert harnpy("test", "a.tape").returncode == 0


def test_a_project_that_was_moved(project: Path, harnpy: Command) -> None:
    moved = project / "moved"
    (moved / "tests").mkdir(parents=True)
    for name in ("main.harn", "prompt.txt", "tests/first.tape"):
        shutil.move(project / name, moved / name)
    assert harnpy("test", "moved/tests/first.tape").returncode == 0
    (moved / "main.harn").unlink()
    done = harnpy("test", "moved/tests/first.tape")
    assert "its program main.harn isn't there: " in done.stdout


def test_an_update_shows_first_and_asks(project: Path, harnpy: Command) -> None:
    (project / "main.harn").write_text(TEXT.replace('"first"', '"second"'))
    before = (project / "tests/first.tape").read_bytes()
    done = harnpy("test", "--tape", "--update")
    assert done.returncode == 1
    assert "tests/first.tape: the program differs from " in done.stderr
    assert (
        "Recording it anew runs main.harn live; the last run had 1 call of a model, 1 process." in done.stderr
    )
    assert "`--update --yes` records it anew" in done.stderr
    assert (project / "tests/first.tape").read_bytes() == before
    done = harnpy("test", "--tape", "--update", "--yes")
    assert done.returncode == 0
    assert "the program differs from " in done.stderr
    assert "recorded anew" in done.stdout
    assert harnpy("test", "--tape").returncode == 0


@pytest.mark.parametrize(("answer", "is_recorded"), [("y", True), ("n", False), ("", False)])
def test_somebody_at_the_terminal_is_asked(
    project: Path, harnpy: Command, answer: str, is_recorded: bool
) -> None:
    (project / "main.harn").write_text(TEXT.replace('"first"', '"second"'))
    shown = Terminal("test", "--tape", "--update", cwd=project)
    shown.expect("Record it anew? [y/N]")
    shown.type(f"{answer}\r")
    shown.expect("1 total")
    assert shown.process.wait(timeout=60) == (0 if is_recorded else 1)
    assert (harnpy("test", "--tape").returncode == 0) is is_recorded


def test_usage(project: Path, harnpy: Command) -> None:
    assert "`--update` applies to `harnpy test --tape`" in harnpy("test", "--update").stderr
    assert "`--yes` requires `--update`" in harnpy("test", "--tape", "--yes").stderr
    assert "`--watch` does not apply to tapes" in harnpy("test", "--tape", "--watch").stderr
    (project / "empty").mkdir()
    done = harnpy("test", "--tape", "empty")
    assert "No tapes found in empty" in done.stderr
    assert done.returncode != 0
    assert "no.tape can't be read" in harnpy("test", "--tape", "no.tape").stdout
    assert harnpy("test", "--tape", "--filter", "first").returncode == 0
    assert "No tapes found" in harnpy("test", "--tape", "--filter", "other").stderr
