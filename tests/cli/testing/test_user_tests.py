"""`harnpy test [PATH]`: finding and running test pipelines. Spec: 09 §3.1–3.2."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

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


def test_output_is_shown_of_tests_that_fail_or_on_request(in_process: Command, project) -> None:
    loud = 'println("said")\neprintln("told")\n'
    failing = f"for n in range(120) {{ println(n) }}\n{loud}throw 1"
    project({"x.harn": f"pipeline test_loud(t) {{ {loud} }}\npipeline test_fails(t) {{ {failing} }}"})
    done = in_process("test", "x.harn")
    heading = "        output:\n"
    assert done.stdout.count(heading) == 1
    shown = done.stdout.partition(heading)[2].splitlines()
    assert shown[:2] == ["          … 22 lines before", "          22"]
    assert shown[99:101] == ["          said", "          told"]
    assert done.stderr == ""
    passing = in_process("test", "x.harn", "-v", "--filter", "loud").stdout
    assert f" ms)\n{heading}          said\n          told\n" in passing


MARKS = (" " * 9 + "^" * 69,)
LONG = '[1, 2, 3, 4, 5, 6, 7, 8].map({ n -> "item ${n} of the list" })'


@pytest.mark.parametrize(
    ("values", "lines"),
    [
        ('"1", 1', ["expected: 1", 'actual:   "1"']),
        ('{a: 1}, {a: 2}, "no"', ["expected: {a: 2}", "actual:   {a: 1}", "              ^"]),
        (
            '{name: "日本語", n: 1}, {name: "日本", n: 1}',
            ['expected: {n: 1, name: "日本"}', 'actual:   {n: 1, name: "日本語"}', " " * 28 + "^^"],
        ),
        (
            '"x" * 300 + "a" + "y" * 300, "x" * 300 + "y" * 300',
            [
                f"expected: …{'x' * 40}{'y' * 118}…",
                f"actual:   …{'x' * 40}a{'y' * 117}…",
                " " * 51 + "^",
            ],
        ),
        (
            f'{{a: 1, b: "{"x" * 70}"}}, {{a: 2, b: "x"}}',
            [
                "  {",
                "-   a: 2,",
                "+   a: 1,",
                "       ^",
                '-   b: "x"',
                f'+   b: "{"x" * 70}"',
                *MARKS,
                "  }",
            ],
        ),
        (
            '{a: "one\\ntwo\\n" * 20}, {a: "one\\ntwo\\n" * 20 + "two"}',
            ["  …", "      one", "      two", "-     two", "+", '    """', "  }"],
        ),
        (
            '"a\\nb\\nc\\nd\\ne", "a\\nb\\nc\\nd\\nf"',
            ["- expected", "+ actual", "  …", "  c", "  d", "- f", "+ e"],
        ),
        (
            f"{LONG} + [true], {LONG} + [false]",
            [
                *("- expected", "+ actual", "  …", '    "item 7 of the list",', '    "item 8 of the list",'),
                *("-   false", "+   true", "    ^^^", "  ]"),
            ],
        ),
    ],
)
def test_both_values_of_assert_eq_are_shown(values: str, lines: list[str], tmp_path: Path) -> None:
    program = tmp_path / "x.harn"
    program.write_text(f"pipeline test_x(t) {{ assert_eq({values}) }}", encoding="utf-8")
    (result,) = user_tests.run_tests(user_tests.TestFile(program, ("test_x",)), 30_000).results
    assert result.detail.splitlines()[-len(lines) :] == lines


def test_json(in_process: Command, project) -> None:
    project(TWO_FILES | {"tests/a.harn": 'pipeline test_x(t) { println("é")\n throw 1 }'})
    done = in_process("test", "--json", "--junit", "j.xml")
    failed, passed, counts = map(json.loads, done.stdout.splitlines())
    assert failed.pop("ms") > 0
    assert failed.pop("error").startswith("error: Thrown: 1\n  --> tests/a.harn:2:2\n")
    assert failed == {"name": "test_x", "file": "tests/a.harn", "status": "fail", "output": "é\n"}
    assert passed.keys() == {"name", "file", "status", "ms"}
    assert {**counts, "ms": 0} == {"passed": 1, "failed": 1, "total": 2, "ms": 0}
    assert done.returncode == 1


def test_junit_and_durations(in_process: Command, project, tmp_path: Path) -> None:
    project(TWO_FILES | {"tests/c.harn": 'pipeline test_x(t) { println("a<b\x01")\n throw 1 }'})
    out = in_process("test", "--durations=2", "--junit", "deep/er/j.xml").stdout
    assert out.endswith("JUnit XML written to deep/er/j.xml\n")
    assert "Slowest 2 tests:\n" in out
    assert re.search(r"^ +\d+ ms  \w+ \[tests/.*\.harn\]$", out, re.MULTILINE)
    suite = ElementTree.parse(tmp_path / "deep/er/j.xml").getroot()
    assert suite.attrib.items() >= {"tests": "4", "failures": "2"}.items()
    cases = {(case.get("classname"), case.get("name")): case for case in suite}
    assert cases["tests/deep/b.harn", "checks"].find("failure") is None
    assert cases["tests/c.harn", "test_x"].findtext("system-out") == "a<b�\n"
    assert cases["tests/c.harn", "test_x"].findtext("failure").startswith("error: Thrown: 1\n")
    assert cases["tests/c.harn", "test_x"].find("failure").get("message") == "1"
    assert "Slowest 4 tests:" in in_process("test", "--timing", "tests").stdout


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
    """The call that was running is named, one that waits, too."""
    waits = "fn wait() {\n  sleep(1h)\n}\npipeline test_waits(t) { wait() }\n"
    project({"x.harn": waits + "pipeline test_slow(t) { while true { } }\npipeline test_fast(t) { 1 }"})
    done = harnpy("test", "x.harn", "--timeout", "200")
    slow = "        timed out after 200ms\n          --> x.harn:"
    assert f"  FAIL  test_waits [x.harn]\n{slow}2:3\n" in done.stdout
    assert f"  FAIL  test_slow [x.harn]\n{slow}5:" in done.stdout
    assert "3 total" in done.stdout, "the run goes on after a timeout"


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


@pytest.mark.parametrize("mode", [(), ("conformance",)])
def test_nothing_selected(in_process: Command, project, mode: tuple[str, ...]) -> None:
    project(
        {"tests/a.harn": "pipeline test_a(t) { 1 }", "conformance/a.harn": "", "conformance/a.expected": ""}
    )
    done = in_process("test", *mode, "--filter", "nope")
    assert (done.stdout, done.stderr, done.returncode) == ("", "no test matches `--filter nope`\n", 5)
    report = in_process("test", *mode, "--filter", "nope", "--junit", "none.xml")
    assert (report.stdout, report.returncode) == ("JUnit XML written to none.xml\n", 5)
    assert ElementTree.parse("none.xml").getroot().get("tests") == "0"
    project({"empty/a.harn": "let a = 1"})
    done = in_process("test", *mode, *(("--root", "empty") if mode else ("empty",)))
    told = "No .harn conformance tests found under" if mode else "No test pipelines found in"
    assert (done.stdout, done.stderr, done.returncode) == ("", f"{told} empty\n", 5)


def test_parallel_keeps_the_order(harnpy: Command, project) -> None:
    project(TWO_FILES)
    assert untimed(harnpy("test", "--parallel").stdout) == untimed(harnpy("test").stdout)


@pytest.mark.parametrize(
    ("inside", "ran"),
    [("lib/deep", ["../../tests/a.harn", "../../tests/deep/b.harn"]), ("tests/deep", ["b.harn"])],
)
def test_in_a_folder_of_a_project(
    in_process: Command, project, monkeypatch: pytest.MonkeyPatch, inside: str, ran: list[str]
) -> None:
    """The project's tests run, of those in the folder only these."""
    passing = "pipeline test_a(t) { 1 }"
    project({"harn.toml": "", "lib/deep/x.harn": "", "tests/a.harn": passing, "tests/deep/b.harn": passing})
    monkeypatch.chdir(inside)
    assert re.findall(r"\[(.*)\]", in_process("test").stdout) == ran


@pytest.mark.parametrize("key", ["", "sk-none"])
def test_a_real_model_is_not_called(
    in_process: Command, project, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """Whether there is a key or not: the test says what to do instead."""
    monkeypatch.setenv("OPENAI_API_KEY", key)
    project({"x.harn": 'pipeline test_a(t) { llm_call("Hi", nil, {provider: "openai"}) }'})
    told = in_process("test", "x.harn").stdout
    assert "LLM calls are disabled by HARN_LLM_CALLS_DISABLED; provider `openai` would make" in told
    assert "tests call no real model, use llm_mock (docs/testing.md)" in told


def test_missing_path(harnpy: Command) -> None:
    done = harnpy("test", "gone")
    assert (done.stderr, done.returncode) == ("Path not found: gone\n", 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no path specified and no tests/ directory found, here or in a project around it"),
        (["a", "b"], "only `harnpy test conformance` accepts a second positional target"),
        (["x.harn", "--jobs", "2"], "`--jobs` does not apply to user tests"),
        (["x.harn", "--json", "--watch"], "`--json` and `--watch` exclude each other"),
        (["x.harn", "--durations=0"], "invalid value for '--durations': expected an int >= 1"),
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


def test_a_declared_server_starts_beside_the_manifest_and_is_heard_by_the_test(
    in_process: Command, project, trusted: None
) -> None:
    """A server that doesn't start: the test says why, and has what the server wrote."""
    why = "MCP: server closed connection: no such weather"
    project(
        {
            "harn.toml": '[[mcp]]\nname = "weather"\ncommand = ["sh", "weather.sh"]\n',
            "weather.sh": "echo starting >&2\necho no such weather >&2\n",
            "tests/a.harn": 'pipeline test_weather(task) { mcp_call(mcp.weather, "today") }',
        }
    )
    done = in_process("test")
    assert f"error: Runtime error: mcp.weather isn't connected: {why} " in done.stdout
    assert "          starting\n" in done.stdout.partition("        output:\n")[2]
    assert done.stderr == ""
