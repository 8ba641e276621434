"""What several tests of the command line need."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

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
