"""SIGINT in a REPL that reads from a pipe interrupts the input only; SIGTERM ends it (09 §5, 2.4)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import PATIENCE, ROOT


class Piped:
    def __init__(self, directory: Path) -> None:
        env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "harnpy", "repl"],
            cwd=directory,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def ask(self, line: str) -> str:
        """Send an input; return the next line that is shown."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def interrupt(self) -> str:
        self.process.send_signal(signal.SIGINT)
        return self.process.stdout.readline()


@pytest.fixture
def repl(tmp_path: Path) -> Iterator[Piped]:
    piped = Piped(tmp_path)
    yield piped
    piped.process.kill()
    piped.process.communicate()


BUSY = ["while true { }", "sleep(1000000)", "await(spawn { while true { } })"]


def test_an_interrupted_input_costs_only_itself(repl: Piped) -> None:
    assert repl.ask("let x = 5\nx") == "5\n"
    for text in BUSY:
        assert repl.ask(f'if true {{ println("begun"); {text} }}') == "begun\n"
        assert repl.interrupt() == "Error: interrupted\n"
    assert repl.ask("x + await(spawn { sleep(1)\n 2 })") == "7\n"


def test_sigterm_ends_it_with_124(repl: Piped) -> None:
    assert repl.ask('if true { println("begun"); while true { } }') == "begun\n"
    repl.process.terminate()
    out, _ = repl.process.communicate(timeout=PATIENCE)
    assert (out, repl.process.returncode) == ("[harn] signal received, flushing state...\n", 124)
