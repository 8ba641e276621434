"""What the processes of `test_processes` do: `python -m tests.storage.workers WORK URL [ARGUMENT …]`.

Each line that one prints is a fact that it has been promised.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from harnpy.storage import Store, open_store
from harnpy.storage.errors import LeaseLost, VersionConflict
from tests.storage.notes import NOTES, notes

#: How many records a writer's append has.
BATCH = 3
#: After how many appends a writer ends if nobody has killed it.
APPENDS = 1000


def say(*words: object) -> None:
    print(*words, flush=True)


def increment(store: Store, me: str, rounds: str) -> None:
    """Read, append, and try again when somebody else was faster."""
    stream = store.stream("session", "s", NOTES)
    for number in range(int(rounds)):
        while True:
            version = stream.refresh()
            try:
                stream.append(notes(version + 1, f"{me} {number}"), version)
            except VersionConflict:
                continue
            break


def take_turns(store: Store, me: str, rounds: str) -> None:
    """Take the lease, write under it that one came and went, and let it go."""
    stream = store.stream("session", "s", NOTES)
    for _ in range(int(rounds)):
        with store.lease("session:s", wait=300) as lease:
            for word in ("in", "out"):
                version = stream.refresh()
                stream.append(notes(version + 1, f"{word} {me} {lease.token}"), version, fence=lease)


def hold(store: Store, ttl: str) -> None:
    """Take the lease; when a line comes, write under it, whatever has happened since."""
    lease = store.lease("session:s", ttl=float(ttl))
    say("held")
    sys.stdin.readline()
    stream = store.stream("session", "s", NOTES)
    try:
        stream.append(notes(stream.version + 1, "late"), stream.version, fence=lease)
    except LeaseLost as error:
        say(type(error).__name__)
    else:
        say("written")


def write(store: Store, point: str = "", when: str = "", count: str = "0") -> None:
    """Append and say what is acknowledged; die at the ``count``-th call of ``point``."""
    if point:
        _die_at(point, when, int(count))
    stream = store.stream("session", "s", NOTES)
    say("writes")
    for _ in range(APPENDS):
        version = stream.version
        stream.append(notes(version + 1, *(f"{version + 1} of {BATCH}" for _ in range(BATCH))), version)
        say(stream.version)


def _die_at(point: str, when: str, count: int) -> None:
    """Have the function ``module:name`` or ``module:Class.name`` end this process as `kill -9` does."""
    module, _, path = point.partition(":")
    *outer, name = path.split(".")
    holder: Any = import_module(module)
    for part in outer:
        holder = getattr(holder, part)
    real: Callable[..., object] = getattr(holder, name)
    calls = iter(range(1, 1_000_000))

    def deadly(*arguments: object, **more: object) -> object:
        dies = next(calls) == count
        if dies and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = real(*arguments, **more)
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(holder, name, deadly)


WORKS: dict[str, Callable[..., None]] = {work.__name__: work for work in (increment, take_turns, hold, write)}

if __name__ == "__main__":
    work, url, *arguments = sys.argv[1:]
    opened = open_store(url)
    WORKS[work](opened, *arguments)
    opened.close()
