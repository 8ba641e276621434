"""A forked process is to who starts it what any other Python process is."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE, STDOUT

import pytest

from tests.support import ROOT, Popen


def code(text: str, *args: str) -> list[str]:
    return [sys.executable, "-c", text, *args]


def test_it_has_the_place_the_environment_the_arguments_and_the_streams_it_is_given(
    popen: Popen, tmp_path: Path
) -> None:
    text = "import os, sys; print(os.getcwd(), *sys.argv, dict(os.environ), input()); sys.exit('end')"
    with popen(
        code(text, "a"), cwd=tmp_path, env={"A": "b"}, stdin=PIPE, stdout=PIPE, stderr=STDOUT, text=True
    ) as process:
        assert process.communicate("in") == (f"{tmp_path} -c a {{'A': 'b'}} in\nend\n", None)
    assert process.returncode == 1


def test_modules_are_run_as_programs(popen: Popen) -> None:
    with popen([sys.executable, "-m", "json.tool", "--help"], cwd=ROOT, stdout=PIPE, text=True) as process:
        assert process.communicate()[0].startswith("usage:")


def test_how_each_ends_is_known(popen: Popen) -> None:
    waits = [popen(code("import sys; sys.exit(int(input()))"), stdin=PIPE, text=True) for _ in range(3)]
    assert [process.poll() for process in waits] == [None] * 3
    with pytest.raises(subprocess.TimeoutExpired):
        waits[0].wait(0.01)
    waits[1].kill()
    assert waits[1].wait() == -signal.SIGKILL
    waits[2].communicate("3\n")
    waits[0].communicate("5\n")
    assert [process.returncode for process in waits] == [5, -signal.SIGKILL, 3]
    waits[1].communicate()
