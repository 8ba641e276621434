"""A process with all that it has started: found in `/proc`, on systems that have it.

What a program starts has a session of its own, so no signal to a group reaches it; and what that starts may
outlive it. The child adopts such orphans, so that they stay below it.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress

_SET_PDEATHSIG = 1
_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Become the parent of processes below this one whose own parent ends. Linux only, elsewhere nothing."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def end_with(parent: int) -> None:
    """Be killed when the thread that started this process ends. Linux only, elsewhere nothing."""
    _prctl(_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # it has ended already


def _prctl(option: int, value: int) -> None:
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def kill_below(pid: int) -> None:
    """Kill all that a process has started; the process is stopped meanwhile, unless it is this one."""
    if pid != os.getpid():
        _send(pid, signal.SIGSTOP)
    # One that is being killed may still start another.
    while found := _below(pid):
        for each in found:
            _send(each, signal.SIGKILL)


def _below(pid: int) -> list[int]:
    """The living processes below one."""
    children: dict[int, list[int]] = {}
    for each, parent in _parents():
        children.setdefault(parent, []).append(each)
    found: list[int] = []
    left = children.get(pid, [])
    while left:
        found += left
        left = [child for each in left for child in children.get(each, [])]
    return found


def _parents() -> list[tuple[int, int]]:
    """Every process that runs, and its parent."""
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc") if os.path.isdir("/proc") else []):
        with suppress(OSError), open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
            state, parent = file.read().rpartition(")")[2].split()[:2]
            if state not in "ZX":
                found.append((int(name), int(parent)))
    return found


def _send(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
