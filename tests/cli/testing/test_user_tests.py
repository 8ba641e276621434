"""`harnpy test [PATH]`: finding and running test pipelines. Spec: 09 §3.1–3.2."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harnpy.cli.testing import user_tests
from harnpy.cli.testing.sandbox import Outcome, sandboxed_world
from tests.support import PATIENCE, ROOT, Command


@pytest.fixture
def project(tmp_path: Path):
    """Write files below the working directory."""

    def write(files: dict[str, str]) -> None:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    return write


TWO_FILES = {
    "tests/a.harn": (
        "let base = 2\nfn double(n) { return n * base }\n"
        "pipeline test_double(task) { assert_eq(double(2), 4) }\n"
        "pipeline helper(task) { throw 1 }\n"
        'pipeline test_breaks() { throw "boom" }\n'
    ),
    "tests/deep/b.harn": "@test\npipeline checks(task) { assert(true) }\n",
    "tests/notes.harn": 'pipeline main(task) { println("nothing here") }',
}


def untimed(text: str) -> str:
    return re.sub(r"\(\d+ ms\)", "(N ms)", text)


def test_report(harnpy: Command, project) -> None:
    project(TWO_FILES)
    done = harnpy("test")
    assert untimed(done.stdout) == (
        "Running 3 tests from 2 files...\n"
        "\n"
        "  PASS  test_double [tests/a.harn] (N ms)\n"
        "  FAIL  test_breaks [tests/a.harn]\n"
        "        error: Thrown: boom\n"
        "          --> tests/a.harn:5:26\n"
        "           |\n"
        '         5 | pipeline test_breaks() { throw "boom" }\n'
        "           |                          ^^^^^\n"
        "  PASS  checks [tests/deep/b.harn] (N ms)\n"
        "\n"
        "2 passed, 1 failed, 3 total (N ms)\n"
    )
    assert (done.stderr, done.returncode) == ("", 1)


def test_one_green_test(harnpy: Command, project) -> None:
    project({"x.harn": "pipeline test_one(t) { 1 }"})
    done = harnpy("test", "x.harn")
    assert untimed(done.stdout) == (
        "Running 1 test from 1 file...\n\n  PASS  test_one [x.harn] (N ms)\n\n1 passed, 1 total (N ms)\n"
    )
    assert done.returncode == 0


def test_output_is_discarded(harnpy: Command, project) -> None:
    project({"x.harn": 'pipeline test_loud(t) { println("noise")\neprintln("noise") }'})
    done = harnpy("test", "x.harn")
    assert "noise" not in done.stdout + done.stderr


def test_each_test_is_a_program_of_its_own(harnpy: Command, project) -> None:
    test = 'assert(!agent_session_exists("s"))\nagent_session_open("s")\nassert_eq(uses, 0)\nuses = uses + 1'
    project({"x.harn": f"var uses = 0\npipeline test_a(t) {{ {test} }}\npipeline test_b(t) {{ {test} }}\n"})
    assert "2 passed, 2 total" in harnpy("test", "x.harn").stdout


def test_the_working_directory_is_the_files(project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project({"tests/deep/x.harn": "pipeline test_a(t) { 1 }"})
    seen: list[Path] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(user_tests, "run_program", lambda *_, **__: seen.append(Path.cwd()) or Outcome("", 0))
    (file,) = user_tests.find_tests(Path("tests"))
    user_tests.run_tests(file, 1000)
    assert (seen, Path.cwd()) == ([tmp_path / "tests" / "deep"], tmp_path)


def test_filter_is_a_part_of_the_name(harnpy: Command, project) -> None:
    project(TWO_FILES)
    out = harnpy("test", "--filter", "double").stdout
    assert "test_double" in out
    assert "1 passed, 1 total" in out


def test_a_broken_file_is_one_failure(harnpy: Command, project) -> None:
    project({"tests/bad.harn": "pipeline test_x(t) {\n", "tests/good.harn": "pipeline test_y(t) { 1 }"})
    done = harnpy("test")
    assert (
        "  FAIL  <file error> [tests/bad.harn]\n        error: unexpected end of file, expected }\n"
        in done.stdout
    )
    assert "1 passed, 1 failed, 2 total" in done.stdout
    assert done.returncode == 1


def test_a_compile_error_fails_its_tests(harnpy: Command, project) -> None:
    project({"x.harn": "fn f() { break }\npipeline test_y(t) { 1 }"})
    done = harnpy("test", "x.harn")
    assert "  FAIL  test_y [x.harn]\n        Compile error: Compile error at line 1: " in done.stdout
    assert done.returncode == 1


def test_a_timeout(harnpy: Command, project) -> None:
    project({"x.harn": "pipeline test_slow(t) { while true { } }\npipeline test_fast(t) { 1 }"})
    done = harnpy("test", "x.harn", "--timeout", "200")
    assert "  FAIL  test_slow [x.harn]\n        timed out after 200ms\n" in done.stdout
    assert "2 total" in done.stdout, "the run goes on after a timeout"


def test_leaving_with_a_status_is_a_failure(harnpy: Command, project) -> None:
    project({"x.harn": "pipeline test_leaves(t) { exit(3) }\npipeline test_stays(t) { exit(0) }"})
    assert "1 passed, 1 failed" in harnpy("test", "x.harn").stdout


def test_an_err_is_not_an_error(harnpy: Command, project) -> None:
    project({"x.harn": 'pipeline test_err(t) { Err("x") }'})
    assert "1 passed, 1 total" in harnpy("test", "x.harn").stdout


def test_models_that_cost_money_are_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HARN_LLM_PROVIDER", raising=False)
    environment = sandboxed_world(print, "mock").environment
    assert (environment.get("HARN_LLM_CALLS_DISABLED"), environment.get("HARN_LLM_PROVIDER")) == ("1", "mock")
    monkeypatch.setenv("HARN_LLM_PROVIDER", "other")
    assert environment.get("HARN_LLM_PROVIDER") == "other"


def test_nothing_found(harnpy: Command, project) -> None:
    project({"tests/a.harn": "let a = 1"})
    done = harnpy("test")
    assert (done.stdout, done.returncode) == ("No test pipelines found\n", 0)


def test_parallel_keeps_the_order(harnpy: Command, project) -> None:
    project(TWO_FILES)
    assert untimed(harnpy("test", "--parallel").stdout) == untimed(harnpy("test").stdout)


def test_missing_path(harnpy: Command) -> None:
    done = harnpy("test", "gone")
    assert (done.stderr, done.returncode) == ("Path not found: gone\n", 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no path specified and no tests/ directory found"),
        (["a", "b"], "only `harnpy test conformance` accepts a second positional target"),
        (["x.harn", "--jobs", "2"], "`--jobs` does not apply to user tests"),
        (["x.harn", "--json"], "`--json` does not apply to user tests"),
        (["protocols"], "`harnpy test protocols` is not supported by this version of harnpy"),
    ],
)
def test_wrong_usage(harnpy: Command, arguments: list[str], message: str) -> None:
    done = harnpy("test", *arguments)
    assert done.stderr.startswith(f"error: {message}\n\nUsage: harnpy test ")
    assert (done.stdout, done.returncode) == ("", 2)


def test_watch_runs_again_after_a_change(project, tmp_path: Path) -> None:
    project({"x.harn": "pipeline test_a(t) { 1 }"})
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "harnpy", "test", "x.harn", "--watch"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    lines = iter(process.stdout.readline, "")
    try:
        assert next(lines) == "Watching x.harn for changes... (Ctrl+C to stop)\n"
        assert next(line for line in lines if "total" in line).startswith("1 passed, 1 total")
        project({"x.harn": "pipeline test_a(t) { throw 1 }"})
        assert next(lines) == "--- file changed, re-running tests ---\n"
        assert next(line for line in lines if "total" in line).startswith("0 passed, 1 failed")
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)


def test_tests_import_what_lies_beside_them(harnpy: Command, project) -> None:
    project(
        {
            "src/shapes.harn": "pub fn area(n) { return n * n }\n",
            "tests/help.harn": 'pub fn note() { return render("note.txt") }\n',
            "tests/note.txt": "a note",
            "tests/a.harn": (
                'import "../src/shapes"\nimport "help"\n'
                "pipeline test_area(task) { assert_eq(area(3), 9) }\n"
                'pipeline test_note(task) { assert_eq(note(), render("note.txt")) }\n'
            ),
        }
    )
    done = harnpy("test")
    assert "2 passed" in done.stdout, done.stdout
