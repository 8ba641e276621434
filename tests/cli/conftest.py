"""What several tests of the command line need."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harnpy.cli.main import main
from tests.support import Command
from tests.terminal import Terminal


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], str]:
    """Write a file into the working directory and answer its name."""

    def write(name: str, text: str) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return name

    return write


@pytest.fixture
def in_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    """Run a command in this process, in the working directory of `write`: a tenth of the time of `harnpy`.

    For what doesn't depend on how a process begins and ends.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("HARN_LLM_PROVIDER", raising=False)

    def run(*args: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
        words = list(map(str, args))
        with monkeypatch.context() as context:
            for name, value in env.items():
                context.setenv(name, value)
            status = main(words)
        out, err = capfd.readouterr()
        return subprocess.CompletedProcess(words, status, out, err)

    return run


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[type]:
    """Start a `Terminal` in the test's directory; it is gone when the test ends."""
    started: list[Terminal] = []

    def start(*args: str, **env: str) -> Terminal:
        started.append(Terminal(*args, cwd=tmp_path, **env))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.wait()
        os.close(one.master)
