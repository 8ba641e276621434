"""The desk that every library runs in `bench/peer_facts.py`: one model, one tool, and where they die or wait.

A customer asks where their money is. The model calls `refund`, and answers when it has the result. Both write
into `notes` what they did, so that a process that is killed has told, too. The environment says where:
FACTS_DIE (`tool`: when the money is paid, before `refund` returns; `reply`: when half of the answer is said)
and FACTS_WAIT (`first`, `last`: in which call of the model to wait for the file `go`).
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ.get("FACTS_FOLDER", "."))
#: Of the conversation that is forked.
TURNS, TEXT = 200, "word " * 100
#: Whether `refund` has to be approved: the turn waits for that, and its process ends.
APPROVALS = "FACTS_APPROVALS" in os.environ
PIECES = ("Your 12 EUR ", "are on their way.")
ANSWER = "".join(PIECES)


def note(what: str) -> None:
    with (FOLDER / "notes").open("a") as notes:
        notes.write(f"{what}\n")


def refund(euros: int) -> str:
    """Pay an amount back.

    Args:
        euros: How much.
    """
    note("paid")
    _die("tool")
    return "paid"


def call() -> None:
    """Be asked, and want the tool."""
    note("asked")
    _wait("first")


def answer() -> Iterator[str]:
    """Be asked, and answer in pieces."""
    note("asked")
    _wait("last")
    yield PIECES[0]
    _die("reply")
    yield PIECES[1]


def _die(where: str) -> None:
    if os.environ.get("FACTS_DIE") == where:
        os.kill(os.getpid(), signal.SIGKILL)


def _wait(where: str) -> None:
    if os.environ.get("FACTS_WAIT") == where:
        note("waiting")
        until((FOLDER / "go").exists)


def until(ready: Callable[[], Any]) -> None:
    """Wait until something is there."""
    while not ready():
        time.sleep(0.01)


def stored() -> int:
    """Return the bytes of the database, with its journal."""
    return sum(path.stat().st_size for path in FOLDER.glob("desk.db*"))


def main(**commands: Callable[..., Any]) -> None:
    """Run the command that the arguments name, and print what it returns."""
    _, name, *arguments = sys.argv
    note("called")
    print(json.dumps(commands[name.replace("-", "_")](*arguments)))
