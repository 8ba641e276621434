"""Standard streams that are closed or full, and texts that their encoding lacks: one line, and a status."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT

HARNPY = f"'{sys.executable}' -m harnpy"
LINES = "for i in 0 to 20000 { println(i) }"
LONG = 'println("x".repeat(20000))'
ASIDE = 'eprintln("aside")\nprintln("text")'

CLOSED = "error: cannot write to stdout: Bad file descriptor (os error 9)\n"
FULL = "error: cannot write to stdout: No space left on device (os error 28)\n"
NO_READER = "error: cannot write to stdout: Broken pipe (os error 32)\n"


@pytest.fixture
def shell(tmp_path: Path):
    """Run a command line of the shell with the program ``p.harn`` beside it."""

    def run(command: str, program: str = 'println("hello")', **env: str) -> tuple[str, str, int]:
        (tmp_path / "p.harn").write_text(program, encoding="utf-8")
        outside = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LC_"))
        }
        done = subprocess.run(
            ["bash", "-c", command.replace("harnpy", HARNPY)],
            cwd=tmp_path,
            capture_output=True,
            env=outside | {"PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"} | env,
        )
        return done.stdout.decode(), done.stderr.decode(), done.returncode

    return run


@pytest.mark.parametrize("program", ['println("hello")', LINES, LONG], ids=["hello", "lines", "long"])
def test_output_that_cannot_be_written(shell, program: str) -> None:
    assert shell("harnpy run p.harn >&-", program) == ("", CLOSED, 1)
    assert shell("harnpy run p.harn >/dev/full", program) == ("", FULL, 1)


def test_a_reader_that_leaves(shell) -> None:
    assert shell("harnpy run p.harn | head -n 1; exit ${PIPESTATUS[0]}", LINES) == ("0\n", NO_READER, 1)


@pytest.mark.parametrize("command", ["builtins", "--help", "run --help", "check p.harn"])
def test_other_commands(shell, command: str) -> None:
    assert shell(f"harnpy {command} >&-") == ("", CLOSED, 1)
    assert shell(f"harnpy {command} >/dev/full") == ("", FULL, 1)


def test_an_error_of_the_program_is_shown_as_well(shell) -> None:
    out, err, status = shell("harnpy run p.harn >/dev/full", 'println("hello")\nthrow "bad"')
    assert (out, status) == ("", 1)
    assert err.startswith("error: Thrown: bad\n")
    assert err.endswith(FULL)


def test_a_program_cannot_catch_what_happens_to_its_output(shell) -> None:
    program = f'try {{ {LINES} }} catch (e) {{ eprintln("caught") }}'
    assert shell("harnpy run p.harn >/dev/full", program) == ("", FULL, 1)


def test_stderr_that_is_closed_takes_what_nobody_can_read(shell) -> None:
    assert shell("harnpy run p.harn 2>&-", ASIDE) == ("text\n", "", 0)


def test_stderr_that_is_full(shell) -> None:
    assert shell("harnpy run p.harn 2>/dev/full", ASIDE) == ("", "", 1)
    assert shell("harnpy run p.harn 2>/dev/full", "throw 1") == ("", "", 1)


def test_stdin_that_is_closed_has_ended(shell) -> None:
    assert shell("harnpy run p.harn <&-", "println(read_line())\nprintln(read_stdin().count)") == (
        "nil\n0\n",
        "",
        0,
    )
    assert shell("harnpy run p.harn <&- >&- 2>&-")[2] == 1


def test_stdin_that_is_no_text(shell) -> None:
    assert shell("printf 'a\\xff' | harnpy run p.harn", "println(read_line())") == ("a\ufffd\n", "", 0)


def test_stdin_is_utf_8_in_every_locale(shell) -> None:
    command = "printf 'é' | harnpy run p.harn"
    assert shell(command, "println(len(read_line()))", PYTHONIOENCODING="ascii") == ("1\n", "", 0)


@pytest.mark.parametrize("name", ["PYTHONIOENCODING", "LC_ALL"])
def test_an_encoding_that_lacks_characters(shell, name: str) -> None:
    program = 'println("é ☃")\neprintln("é")'
    env = {"PYTHONIOENCODING": "ascii"} if name == "PYTHONIOENCODING" else {}
    no_help = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    assert shell("harnpy run p.harn", program, **(env or no_help)) == ("\\xe9 \\u2603\n", "\\xe9\n", 0)


def test_arguments_and_names_that_are_no_text(shell) -> None:
    assert shell("harnpy run p.harn -- $'\\xff'", "println(argv)") == ("[\\udcff]\n", "", 0)
    missing = "Error reading \\udcff.harn: No such file or directory\n"
    assert shell("harnpy run $'\\xff.harn'") == ("", missing, 1)


@pytest.mark.parametrize("command", ["run ../p.harn", "run -e 1", "repl </dev/null", "runs list"])
def test_a_working_directory_that_is_gone(shell, command: str) -> None:
    out, err, status = shell(f"mkdir gone; cd gone; rmdir ../gone; harnpy {command}")
    assert (out, status) == ("", 1)
    assert err.endswith("the working directory: No such file or directory\n")
    assert err.count("\n") == 1


def test_user_tests_in_a_working_directory_that_is_gone(shell) -> None:
    out, err, status = shell(
        "mkdir gone; cd gone; rmdir ../gone; harnpy test ../p.harn", "pipeline test_a(t) { 1 }"
    )
    assert (err, status) == ("error: the working directory: No such file or directory\n", 1), out
