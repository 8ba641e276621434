"""What builtins write and read: output, logging, colour, standard input. Spec: 04 §1."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from harnpy.vm.values import Duration


@pytest.mark.parametrize(
    ("name", "args", "text"),
    [
        ("print", ("a",), "a"),
        ("print", (), ""),
        ("print", (None,), "nil"),
        ("println", ([1, 2.0, "x"],), "[1, 2.0, x]\n"),
        ("println", ("a", "b"), "a\n"),
        ("println", (), "\n"),
        ("log", ("two\nlines",), "[harn] two\nlines\n"),
        ("log", (), "[harn] \n"),
    ],
)
def test_printing_uses_the_first_argument_only(vm: Any, name: str, args: tuple[Any, ...], text: str) -> None:
    assert vm.run(name, *args) is None
    assert vm.out == text


def test_stderr_and_its_capture(vm: Any) -> None:
    vm.run("eprint", 1)
    vm.run("eprintln", "x")
    assert vm.world.errors == "1x\n"
    vm.run("capture_stderr_start")
    vm.run("eprintln", "kept")
    vm.run("eprint")
    assert vm.run("capture_stderr_take") == "kept\n"
    assert vm.run("capture_stderr_take") == ""
    vm.run("eprint", "y")
    assert vm.world.errors == "1x\ny"


def test_starting_a_capture_again_drops_what_was_kept(vm: Any) -> None:
    vm.run("capture_stderr_start")
    vm.run("eprint", "old")
    vm.run("capture_stderr_start")
    vm.run("eprint", "new")
    assert vm.run("capture_stderr_take") == "new"


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (("build", "go"), "[build] go"),
        (("build", "go", 40), "[build] go (40%)"),
        (("build", "go", 2, 5), "[build] go (2/5)"),
        (("build", "go", 2.5, 5), "[build] go"),
        (("build", "go", {}), "[build] go"),
        (("build", "go", {"mode": "other"}), "[build] go"),
        (("w", "m", {"mode": "spinner"}), "[w] | m"),
        (("w", "m", {"mode": "spinner", "step": 1}), "[w] / m"),
        (("w", "m", {"mode": "spinner", "current": 6}), "[w] - m"),
        (("w", "m", {"mode": "spinner", "step": -1}), "[w] \\ m"),
        (("w", "m", {"mode": "bar", "current": 3, "total": 6, "width": 6}), "[w] [###---] m (3/6)"),
        (("w", "m", {"mode": "bar", "current": 1, "total": 4}), "[w] [###-------] m (1/4)"),
        (("w", "m", {"mode": "bar", "current": 9, "total": 4, "width": 1}), "[w] [###] m (9/4)"),
        (("w", "m", {"mode": "bar", "current": -9, "total": 4, "width": 3}), "[w] [---] m (-9/4)"),
        (("w", "m", {"mode": "bar", "total": 0, "width": 99}), f"[w] [{'-' * 40}] m (0/0)"),
        (("w", "m", {"mode": "bar", "current": "x", "total": "y"}), "[w] [----------] m (0/0)"),
        ((), "[] "),
    ],
)
def test_progress(vm: Any, args: tuple[Any, ...], line: str) -> None:
    vm.run("progress", *args)
    assert vm.out == line + "\n"


def test_log_lines_are_compact_json_in_a_fixed_order(vm: Any) -> None:
    fields = {
        "z": 1,
        "a": 'q"',
        "f": 1.0,
        "n": None,
        "b": True,
        "l": [1, "x"],
        "i": math.inf,
        "d": Duration(5),
    }
    vm.run("log_info", "hi", fields)
    assert vm.out == (
        '{"ts":"2023-11-14T22:13:20.250Z","level":"info","msg":"hi","a":"q\\"","b":true,"d":"5ms","f":1,'
        '"i":null,"l":"[1, x]","n":null,"z":1}\n'
    )
    assert json.loads(vm.out)["msg"] == "hi"


def test_log_ignores_fields_that_are_no_dict(vm: Any) -> None:
    vm.run("log_warn", 5, "fields")
    assert vm.out == '{"ts":"2023-11-14T22:13:20.250Z","level":"warn","msg":"5"}\n'


def test_log_json_is_never_filtered(vm: Any) -> None:
    vm.run("log_set_level", "error")
    vm.run("log_json", "k", 2.5)
    vm.run("log_json")
    assert [json.loads(line)["value"] for line in vm.out.splitlines()] == [2.5, None]


@pytest.mark.parametrize("lowest", range(4))
def test_log_levels(vm: Any, lowest: int) -> None:
    levels = ["debug", "info", "warn", "error"]
    vm.run("log_set_level", levels[lowest])
    for level in levels:
        vm.run(f"log_{level}", "x")
    assert [json.loads(line)["level"] for line in vm.out.splitlines()] == levels[lowest:]


def test_unknown_log_level(vm: Any) -> None:
    text = "log_set_level: invalid level 'loud'. Expected debug, info, warn, or error"
    assert vm.failure("log_set_level", "loud") == text


def test_colour_names(vm: Any) -> None:
    vm.run("set_color_mode", "always")
    assert vm.run("color", "x", "red") == "\x1b[31mx\x1b[0m"
    assert vm.run("color", "x", "bright_white") == "\x1b[97mx\x1b[0m"
    assert vm.run("color", "x", "gray") == vm.run("color", "x", "bright_black") == "\x1b[90mx\x1b[0m"
    assert vm.run("color", "x", "puce") == "x"
    assert vm.run("bold", 1) == "\x1b[1m1\x1b[0m"
    assert vm.run("dim", "") == "\x1b[2m\x1b[0m"


def test_colour_needs_a_terminal_unless_forced(vm: Any) -> None:
    assert vm.run("bold", "x") == "x"
    vm.world.terminals.add("stdout")
    assert vm.run("bold", "x") != "x"
    vm.world.variables["NO_COLOR"] = ""
    assert vm.run("bold", "x") == "x"
    vm.world.variables["FORCE_COLOR"] = ""
    assert vm.run("bold", "x") != "x"
    vm.run("set_color_mode", "never")
    assert vm.run("bold", "x") == "x"
    text = "set_color_mode: invalid mode 'on'. Expected 'auto', 'always', or 'never'."
    assert vm.failure("set_color_mode", "on") == text


def test_terminals_can_be_mocked(vm: Any) -> None:
    vm.world.terminals.add("stderr")
    assert [vm.run(f"is_{name}_tty") for name in ("stdin", "stdout", "stderr")] == [False, False, True]
    vm.run("mock_tty", "stdout", True)
    vm.run("mock_tty", "stderr", 1)
    assert [vm.run(f"is_{name}_tty") for name in ("stdin", "stdout", "stderr")] == [False, True, False]
    assert vm.run("bold", "x") != "x"
    vm.run("unmock_tty")
    assert vm.run("is_stderr_tty")
    text = "mock_tty: invalid stream 'tape'. Expected 'stdin', 'stdout', or 'stderr'."
    assert vm.failure("mock_tty", "tape", True) == text


def test_real_input(vm: Any) -> None:
    vm.world.input = "one\ntwo\n"
    assert vm.run("read_line") == "one"
    assert vm.run("read_stdin") == "two\n"
    assert vm.run("read_line") is None


def test_mocked_input(vm: Any) -> None:
    vm.world.input = "real \t\n"
    vm.run("mock_stdin", "a\r\nb\n\nc\n")
    assert [vm.run("read_line") for _ in range(5)] == ["a", "b", "", "c", None]
    vm.run("mock_stdin", "a\nb")
    vm.run("read_line")
    assert vm.run("read_stdin") == "b"
    assert vm.run("read_line") is None
    assert vm.run("prompt_user", "name? ") == "real"
    assert vm.out == "name? "
    assert vm.run("prompt_user") == ""
    vm.world.input = "x\n"
    vm.run("unmock_stdin")
    assert vm.run("read_line") == "x"
