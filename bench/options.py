"""The command-line options of every benchmark."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = str(Path(__file__).parent)


def parser(doc: str | None, rounds: int) -> argparse.ArgumentParser:
    """``doc``: the script's docstring. ``rounds``: the default number of rounds."""
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--rounds", type=int, default=rounds)
    made.add_argument("--check", action="store_true", help="exit 1 when a budget is missed")
    return made


def environment() -> dict[str, str]:
    """Return what processes begin with: as here, except that compiled modules are kept, as users have it."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


@contextmanager
def peers_first() -> Iterator[None]:
    """Inside the block, imports prefer an installed package to a script of the same name: `agents`."""
    path, ours = list(sys.path), sys.modules.get("agents")
    if str(getattr(ours, "__file__", "")).startswith(HERE):
        del sys.modules["agents"]
    sys.path[:] = [entry for entry in path if str(Path(entry or ".").resolve()) != HERE]
    try:
        yield
    finally:
        sys.path[:] = path
