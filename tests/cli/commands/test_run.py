"""`harnpy run`: sources, arguments, streams, exit statuses. Spec: 09 §1–2, 02 §10.5."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harnpy import Vm, VmError
from harnpy.cli.console import rendered_error
from tests.clock import SimulatedClock
from tests.support import PATIENCE, ROOT, Command


@pytest.fixture
def script(tmp_path: Path):
    """Write a program into the working directory and answer its name."""

    def write(text: str, name: str = "demo.harn") -> str:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return name

    return write


def test_runs_a_file(harnpy: Command, script) -> None:
    done = harnpy("run", script('println("hi")'))
    assert (done.stdout, done.stderr, done.returncode) == ("hi\n", "", 0)


def test_a_bare_file_is_run(harnpy: Command, script) -> None:
    assert harnpy(script('println("hi")')).stdout == "hi\n"


def test_a_bare_file_takes_all_that_run_takes(harnpy: Command, script) -> None:
    name = script('llm_call("hi", nil, {provider: "mock"})\nprintln(argv)')
    done = harnpy(name, "--deny", "exec", "--trace", "--", "sales.csv", "--trace")
    assert done.stdout.endswith("[sales.csv, --trace]\n")
    assert "LLM trace" in done.stderr
    assert harnpy(name, "--help").stdout == harnpy("run", "--help").stdout
    assert harnpy("missing.harn", "--", "x").stderr.startswith("Error reading missing.harn: ")


def test_a_file_that_names_harnpy_is_a_command_of_its_own(tmp_path: Path, script) -> None:
    name = script("#!/usr/bin/env harnpy\nprintln(argv)")
    (tmp_path / "harnpy").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m harnpy "$@"\n')
    for file in (name, "harnpy"):
        (tmp_path / file).chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([f"./{name}", "--", "x"], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[x]\n", "")


def test_arguments_after_two_dashes_are_argv(harnpy: Command, script) -> None:
    done = harnpy("run", script("println(argv)"), "--", "one", "--two", "--", "x.harn")
    assert done.stdout == "[one, --two, --, x.harn]\n"


def test_argv_is_empty_without_arguments(harnpy: Command, script) -> None:
    assert harnpy("run", script("println(argv)")).stdout == "[]\n"


def test_inline_code_is_the_body_of_a_pipeline(harnpy: Command) -> None:
    done = harnpy("run", "-e", "println(6 * 7)\n3")
    assert (done.stdout, done.returncode) == ("42\n", 3)


def test_inline_code_takes_arguments(harnpy: Command) -> None:
    assert harnpy("run", "-e", "println(argv)", "--", "a").stdout == "[a]\n"


def test_inline_code_names_a_temporary_file_in_diagnostics(harnpy: Command, tmp_path: Path) -> None:
    done = harnpy("run", "-e", "throw 1")
    place = next(line for line in done.stderr.splitlines() if "-->" in line).split("--> ")[1]
    assert place.partition(".harn:")[1]
    assert not place.startswith(str(tmp_path))


def test_a_dash_reads_the_program_from_stdin(harnpy: Command) -> None:
    assert harnpy("run", "-", stdin="println(1 + 1)").stdout == "2\n"


def test_an_error_in_a_program_from_stdin_has_a_place(harnpy: Command) -> None:
    done = harnpy("run", "-", stdin="let a = 1\nthrow a")
    assert done.stderr.startswith("error: Thrown: 1\n  --> <stdin>:2:1\n")


def test_stdin_is_the_programs(harnpy: Command, script) -> None:
    assert harnpy("run", script("println(read_line())"), stdin="typed\n").stdout == "typed\n"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("3", 3),
        ("return 7", 7),
        ("300", 255),
        ("-4", 0),
        ("0", 0),
        ("true", 0),
        ('"text"', 0),
        ("nil", 0),
        ("2.5", 0),
        ("[1]", 0),
        ("Ok(5)", 0),
        ("Err(5)", 1),
        ("exit(9)", 9),
        ("exit()", 0),
    ],
)
def test_exit_status_of_the_entrys_value(harnpy: Command, script, body: str, status: int) -> None:
    done = harnpy("run", script(f"pipeline main(task) {{\n{body}\n}}"))
    assert (done.returncode, done.stdout) == (status, "")


def test_script_mode_gives_zero(harnpy: Command, script) -> None:
    assert harnpy("run", script("let x = 3\nx")).returncode == 0


#: Programs with workflows, what their stderr has and their exit status. Spec: 09 §2.3.
_CHECK = """
fn flow(status, name = "w") {
  let check = {kind: "verify", verify: {command: "exit ${status}", expect_status: 0}}
  return {name: name, nodes: {check: check}}
}
"""
_WHY = "node 'check': verification failed: the exit status is 3 instead of 0"
_SAID = f"error: workflow 'w' failed: {_WHY}\n"
WORKFLOWS = {
    'pipeline main(task) { println(workflow_execute("t", flow(3)).error) }': (_SAID, 1),
    'pipeline main(task) { workflow_execute("t", flow(3)) }': (_SAID, 1),
    'println(workflow_execute("t", flow(3)).error)': (_SAID, 1),
    'pipeline main(task) { workflow_execute("t", flow(0)) }': ("", 0),
    'pipeline main(task) { workflow_execute("t", flow(3))\n workflow_execute("t", flow(0)) }': ("", 0),
    'workflow_execute("t", flow(3))\nworkflow_execute("t", flow(0, "v"))': (
        _SAID,
        1,
    ),
    'pipeline main(task) { workflow_execute("t", flow(3))\n return 0 }': ("", 0),
    'pipeline main(task) { workflow_execute("t", flow(3))\n return 5 }': ("", 5),
    'pipeline main(task) { workflow_execute("t", flow(3))\n return Ok(1) }': ("", 0),
    'pipeline main(task) { workflow_execute("t", flow(3))\n return Err("own") }': ("own\n", 1),
    'pipeline main(task) { workflow_execute("t", flow(3))\n exit(0) }': ("", 0),
}


@pytest.mark.parametrize("program", WORKFLOWS)
def test_a_workflow_that_failed_fails_the_program_unless_it_is_handled(
    harnpy: Command, script, program: str
) -> None:
    said, status = WORKFLOWS[program]
    done = harnpy("run", script(_CHECK + program))
    assert (done.stderr, done.returncode) == (said, status)
    assert done.stdout in ("", f"{_WHY}\n")


def test_the_failure_of_a_workflow_inside_a_stage_is_its_workflow_s_business(harnpy: Command, script) -> None:
    program = (
        _CHECK
        + """
    let inner = { args -> workflow_execute("in", flow(3)).status }
    let tools = tool_define(tool_registry(), "go", "Go.", {parameters: {}, handler: inner})
    pipeline main(task) {
      llm_mock({tool_calls: [{name: "go", arguments: {}}]})
      llm_mock({text: "It failed. ##DONE##"})
      println(workflow_execute("out", {nodes: {a: {tools: tools}}}, nil, {provider: "mock"}).status)
    }
    """
    )
    done = harnpy("run", script(program))
    assert (done.stdout, done.returncode) == ("completed\n", 0)


@pytest.mark.parametrize(
    ("value", "shown"), [('Err("bad")', "bad\n"), ('Err("")', "error\n"), ('Err("a\\n")', "a\n")]
)
def test_an_err_is_shown_on_stderr(harnpy: Command, script, value: str, shown: str) -> None:
    done = harnpy("run", script(f"pipeline main(task) {{ {value} }}"))
    assert (done.stdout, done.stderr, done.returncode) == ("", shown, 1)


def test_exit_keeps_the_output_written_before(harnpy: Command, script) -> None:
    done = harnpy("run", script('println("first")\nexit(4)\nprintln("never")'))
    assert (done.stdout, done.returncode) == ("first\n", 4)


def test_an_uncaught_error_is_rendered(harnpy: Command, script) -> None:
    program = (
        "fn half(n) {\n  let q = n / 0\n  return q\n}\n"
        'pipeline main(task) {\n  println("before")\n  let x = half(1)\n  println(x)\n}\n'
    )
    done = harnpy("run", script(program))
    assert done.stdout == "before\n"
    assert done.stderr == (
        "error: Runtime error: Division by zero (line 2)\n"
        "  --> demo.harn:2:11\n"
        "   |\n"
        " 2 |   let q = n / 0\n"
        "   |           ^\n"
        "  = note: called from pipeline at demo.harn:7\n"
    )
    assert done.returncode == 1


def test_the_way_out_of_deadlines_is_told_once(clock: SimulatedClock) -> None:
    program = (
        "fn wait() {\n  deadline 60s {\n    while true { }\n  }\n}\n"
        "pipeline main(task) {\n  deadline 5ms {\n    wait()\n  }\n}\n"
    )
    with pytest.raises(VmError) as caught:
        Vm().run_source(program, file="demo.harn")
    assert rendered_error(caught.value) == (
        "error: Thrown: Deadline exceeded\n"
        "  --> demo.harn:3:5\n"
        "   |\n"
        " 3 |     while true { }\n"
        "   |     ^^^^^\n"
        "  = note: called from pipeline at demo.harn:8\n"
    )


def test_a_thrown_value_is_rendered_without_a_line(harnpy: Command, script) -> None:
    done = harnpy("run", script('throw {category: "timeout", message: "slow"}'))
    assert done.stderr.startswith("error: Thrown: {category: timeout, message: slow}\n")


def test_every_syntax_error_is_printed(harnpy: Command, script) -> None:
    done = harnpy("run", script("let a = )\nlet b = 1\nlet c = ]\n"))
    assert done.stderr.count("error: expected expression, found ") == 2
    assert (done.stdout, done.returncode) == ("", 1)


def test_a_compile_error_is_named_as_such(harnpy: Command, script) -> None:
    done = harnpy("run", script("let a = 1\nbreak\n"))
    assert done.stderr.startswith("error: compile error: Compile error at line 2: ")
    assert done.returncode == 1


def test_stderr_builtins_do_not_reach_stdout(harnpy: Command, script) -> None:
    done = harnpy("run", script('eprintln("aside")\nprintln("text")'))
    assert (done.stdout, done.stderr) == ("text\n", "aside\n")


def test_a_denied_builtin_fails(harnpy: Command, script) -> None:
    done = harnpy("run", "--deny", "upper,to_int", script('println(to_int("1"))'))
    assert done.stderr.startswith("error: Error [tool_rejected]: Tool 'to_int' is not permitted.\n")
    assert done.returncode == 1


def test_a_denied_builtin_is_denied_as_a_value_and_in_tasks(harnpy: Command, script) -> None:
    program = 'println(try { ["1"].map(to_int) })\nprintln(try { await(spawn { to_int("1") }) })'
    done = harnpy("run", "--deny=to_int", script(program))
    assert done.stdout.count("Error [tool_rejected]: Tool 'to_int' is not permitted.") == 2


def test_allow_denies_all_but_the_listed_and_the_core_set(harnpy: Command, script) -> None:
    program = 'println(abs(-1))\nprintln(len("ab"))\nprintln(try { uuid() })'
    done = harnpy("run", "--allow", "abs", script(program))
    assert done.stdout.startswith("1\n2\nResult.Err(Error [tool_rejected]: Tool 'uuid' is not permitted.)\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "`harnpy run` requires either `-e <code>` or `<file.harn>`"),
        (["-e", "1", "x.harn"], "`harnpy run` accepts either `-e <code>` or `<file.harn>`, not both"),
        (["--nope", "x.harn"], "unexpected argument '--nope' found"),
        (["a.harn", "b"], "unexpected argument 'b' found: the program's arguments follow `--`"),
        (["-e"], "a value is required for '-e' but none was supplied"),
        (["--allow", "a", "--deny", "b", "x.harn"], "the argument '--deny' cannot be used with '--allow'"),
        (["--attest", "x.harn"], "`--attest` is not supported by this version of harnpy"),
        (["x.harn", "--llm-mock"], "a value is required for '--llm-mock' but none was supplied"),
        (
            ["--llm-mock=f", "--llm-mock-record", "g", "x.harn"],
            "the argument '--llm-mock' cannot be used with '--llm-mock-record'",
        ),
    ],
)
def test_wrong_usage(harnpy: Command, arguments: list[str], message: str) -> None:
    done = harnpy("run", *arguments)
    assert done.stderr.startswith(f"error: {message}\n\nUsage: harnpy run ")
    assert done.stderr.endswith("try '--help'.\n")
    assert (done.stdout, done.returncode) == ("", 2)


def test_help_is_on_stdout(harnpy: Command) -> None:
    done = harnpy("run", "--help")
    assert "--deny" in done.stdout
    assert (done.stderr, done.returncode) == ("", 0)


@pytest.mark.parametrize(
    ("name", "problem"), [("gone.harn", "No such file or directory"), ("folder.harn", "Is a directory")]
)
def test_an_unreadable_file(harnpy: Command, tmp_path: Path, name: str, problem: str) -> None:
    (tmp_path / "folder.harn").mkdir()
    done = harnpy("run", name)
    assert (done.stderr, done.returncode) == (f"Error reading {name}: {problem}\n", 1)


def test_a_file_that_is_not_text(harnpy: Command, tmp_path: Path) -> None:
    (tmp_path / "bytes.harn").write_bytes(b"println(\xff\xfe)")
    done = harnpy("run", "bytes.harn")
    assert done.stderr.startswith("error: Unexpected character '\ufffd' at 1:9\n  --> bytes.harn:1:9\n")
    assert done.returncode == 1


def test_trace_lists_the_model_calls(harnpy: Command, script) -> None:
    call = 'llm_call("hello", nil, {provider: "mock"})\n'
    done = harnpy("run", "--trace", script(f"{call}{call}println(1)"))
    blank, heading, first, second, total = done.stderr.splitlines()
    assert (done.stdout, blank, heading) == ("1\n", "", "─── LLM trace ───")
    assert re.fullmatch(r"  #1: \S+ \| \d+ in \+ \d+ out tokens \| \d+ ms", first)
    assert second.startswith("  #2: ")
    assert re.fullmatch(r"  2 calls, \d+ tokens \(\d+in \+ \d+out\), \d+ ms, ~\$0\.\d{4}", total)


def test_trace_is_silent_without_calls(harnpy: Command, script) -> None:
    assert harnpy("run", "--trace", script("println(1)")).stderr == ""


def test_debug_shows_the_python_traceback(harnpy: Command, script) -> None:
    name = script("throw 1")
    assert "Traceback" not in harnpy("run", name).stderr
    assert "Traceback" in harnpy("run", "--debug", name).stderr


def test_debug_shows_harn_lines_that_are_in_no_file(harnpy: Command) -> None:
    program = "fn f(a) {\n  return a.b.c\n}\nf({b: 1})\n"
    shown = '  File "<stdin>", line 2, in f\n    return a.b.c\n'
    assert shown in harnpy("run", "--debug", "-", stdin=program).stderr
    inline = 'json_parse("null").b'
    failed = harnpy("run", "--debug", "-e", inline)
    assert f'inline.harn", line 2, in pipeline\n    {inline}\n' in failed.stderr


@pytest.fixture
def running(tmp_path: Path, script):
    """Start a program that first prints a line, and answer its process once it has."""

    def start(program: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "harnpy", "run", script(f'println("ready")\n{program}')]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, text=True, **pipes)
        assert process.stdout.readline() == "ready\n"
        return process

    return start


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("program", ["while true { sleep(5ms) }", "await(spawn { while true { } })"])
def test_a_signal_ends_the_run_with_124(running, number: signal.Signals, program: str) -> None:
    process = running(program)
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    assert (out, err, process.returncode) == ("", "[harn] signal received, flushing state...\n", 124)


def test_a_program_that_ignores_the_signal_is_ended(running) -> None:
    process = running("try { while true { } } finally { while true { } }")
    process.terminate()
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 124
