"""`harnpy run --memory --time --limit`: what a program may use, and what its process may. Spec: 09 §2.8.

`--limit` is the Vm's affair. Memory and time are the process's: the program runs in a child of this one with
the same streams. The system keeps it within its memory, and this process ends it when its time is over.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence

from harnpy.cli import FAILED, INTERRUPTED, console
from harnpy.cli.console import complain
from harnpy.isolation.process import (
    adopt_orphans,
    end_of,
    end_with,
    exceeded,
    is_lack_of_memory,
    kill_below,
    killed_for_memory,
    read_size,
    size_text,
    was_out_of_memory,
)
from harnpy.vm.errors import LimitExceeded
from harnpy.vm.limits import Limits

#: Exit statuses. Spec: 09 §1.2.
OUT_OF_MEMORY = 122
BEYOND_LIMIT = 123

#: Bytes that an interpreter needs to start and to say what went wrong.
LEAST_MEMORY = 64 << 20

_BOUNDS = ("--memory", "--time")
_BOOT = """
import json, sys
given = json.loads(sys.argv.pop(1))
sys.path[:] = given[0]
from harnpy.cli.bounds import enter
enter(*given)
from harnpy.cli.main import entry
entry()
"""
#: Seconds that the program has to end by itself when its time is over.
_GRACE = 0.5
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|)", re.ASCII)
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "": 1}


def read_seconds(text: str) -> float:
    """``10s``, ``500ms``, ``2m``, ``1h``, ``2.5``. Raises ValueError."""
    match = _DURATION.fullmatch(text)
    seconds = float(match[1]) * _SECONDS[match[2]] if match else 0
    if seconds <= 0:
        raise ValueError(f"{text!r} is no time: write a number with ms, s, m or h")
    return seconds


def read_memory(given: int | str) -> int:
    """``512M``, ``2G`` and the like, in bytes. Raises ValueError."""
    memory = read_size(given)
    if memory < LEAST_MEMORY:
        least = size_text(LEAST_MEMORY)
        raise ValueError(
            f"{size_text(memory)} of memory is too little to run any program: give at least {least}"
        )
    return memory


def read_limits(given: Iterable[str]) -> Limits | None:
    """The limits of ``NAME=NUMBER``, None when there are none. Raises ValueError."""
    limits: dict[str, float] = {}
    for each in given:
        name, _, number = each.partition("=")
        if name not in Limits.__slots__:
            raise ValueError(f"there is no limit {name!r}: there are {', '.join(Limits.__slots__)}")
        whole = number.isascii() and number.isdecimal()
        limits[name] = int(number) if whole else read_seconds(number) if name == "seconds" else 0
    return Limits(**limits) if limits else None  # type: ignore[arg-type]


def run_bounded(argv: Sequence[str], memory: int | None, seconds: float | None) -> int:
    """Run ``harnpy run ARGV`` in a process with these bounds; return the exit status."""
    words = without_bounds(argv)
    if seconds is not None:
        # First: a lower one of the user's wins.
        words = ["--limit", f"seconds={seconds:g}", *words]
    given = json.dumps([sys.path, os.getpid(), memory])
    sys.stdout.flush()
    # `-P`: no module of the working directory takes the place of ours.
    child = subprocess.Popen([sys.executable, "-P", "-c", _BOOT, given, "run", *words])
    came, killed_before = _forward_signals(child), killed_for_memory()
    try:
        status = child.wait(None if seconds is None else seconds + _GRACE)
    except subprocess.TimeoutExpired:
        kill_below(child.pid)
        child.kill()
        child.wait()
        return report(exceeded("seconds", f"{seconds:g} seconds"))
    if status >= 0:
        return status
    if came:
        return INTERRUPTED
    if memory is not None and was_out_of_memory(status, memory):
        return report(_lack_of(memory))
    complain(f"the program was ended {end_of(status, killed_before)}")
    return FAILED


def without_bounds(argv: Sequence[str]) -> list[str]:
    """The words of a command line without `--memory` and `--time`, which are this process's."""
    words: list[str] = []
    left = iter(argv)
    for word in left:
        if word == "--":
            return [*words, word, *left]
        if word in _BOUNDS:
            next(left)
        elif word.partition("=")[0] not in _BOUNDS:
            words.append(word)
    return words


def _forward_signals(child: subprocess.Popen[bytes]) -> list[int]:
    """Let the child end as every run does, and with it this process. Return the signals that come."""
    came: list[int] = []

    def forward(number: int, frame: object) -> None:
        came.append(number)
        child.send_signal(number)

    signal.signal(signal.SIGINT, forward)
    signal.signal(signal.SIGTERM, forward)
    return came


def enter(path: list[str], parent: int, memory: int | None) -> None:
    """Become the process that is bounded, and that ends with its parent."""
    end_with(parent)
    adopt_orphans()
    if memory is not None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def report(error: Exception, debug: bool = False) -> int:
    """Show that a program has gone beyond its bounds; return the exit status."""
    memory = resource.getrlimit(resource.RLIMIT_AS)[0]
    if is_lack_of_memory(error) and memory != resource.RLIM_INFINITY:
        named = _lack_of(memory)
        named.frames = getattr(error, "frames", ())
        error = named
    status = console.report_failure(error, debug)
    if not isinstance(error, LimitExceeded):
        return status
    return OUT_OF_MEMORY if error.limit == "memory" else BEYOND_LIMIT


def _lack_of(memory: int) -> LimitExceeded:
    return exceeded("memory", f"{size_text(memory)} of memory")
