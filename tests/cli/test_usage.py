"""What every command has in common: help, version, wrong usage. Spec: 09 §1."""

from __future__ import annotations

import subprocess
import sys

import pytest

from harnpy import __version__
from tests.support import ROOT, Command

COMMANDS = (
    "run init new test repl debug dap check lint fmt explain viz bench profile emit runs replay branch "
    "compare watch worker eval sessions tokens waitpoint bundle session serve portal attach mcp acp lsp "
    "jupyter trust doctor builtins version"
).split()


def test_no_command_shows_the_help_and_fails(harnpy: Command) -> None:
    done = harnpy()
    assert "Usage: harnpy" in done.stderr
    assert (done.stdout, done.returncode) == ("", 2)


def test_help_lists_every_command(harnpy: Command) -> None:
    done = harnpy("--help")
    listed = [line.split()[0] for line in done.stdout.partition("Commands:")[2].splitlines() if line.strip()]
    assert listed == COMMANDS
    assert (done.stderr, done.returncode) == ("", 0)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(harnpy: Command, command: str) -> None:
    done = harnpy(command, "--help")
    assert f"Usage: harnpy {command}" in done.stdout
    assert (done.stderr, done.returncode) == ("", 0)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_documented(command: str) -> None:
    assert command in (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")


def test_version(harnpy: Command) -> None:
    assert harnpy("--version").stdout == f"harnpy {__version__}\n"


def test_version_banner(harnpy: Command) -> None:
    banner = harnpy("version").stdout
    assert f"harn v{__version__}" in banner
    assert "the agent harness language" in banner


@pytest.mark.parametrize("arguments", [["nope"], ["bench"], ["bench", "--nope", "x"], ["--nope", "a.harn"]])
def test_wrong_usage(harnpy: Command, arguments: list[str]) -> None:
    done = harnpy(*arguments)
    assert done.stderr.startswith("error: ")
    assert "\nUsage: harnpy" in done.stderr
    assert (done.stdout, done.returncode) == ("", 2)


def test_a_reader_that_leaves_is_no_error(tmp_path) -> None:
    command = f"'{sys.executable}' -m harnpy builtins | head -n 1"
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True)
    assert done.stderr == ""


def test_the_run_path_imports_no_command_line_framework() -> None:
    code = (
        "import sys; from harnpy.cli.main import main; status = main(['run', '-e', 'println(1)']);"
        "heavy = {'click', 'rich', 'prompt_toolkit', 'lark', 'httpx2', 'asyncio'};"
        "print(status, sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "1\n0 []\n"
