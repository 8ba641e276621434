"""A process of its own: started with nothing but what it is given, ended with all that it has started."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
import weakref
from collections.abc import Mapping
from contextlib import suppress

from harnpy.vm.errors import LimitExceeded, VmError

# A process with all that it has started: found in `/proc`, on systems that have it.
#
# What a program starts has a session of its own, so no signal to a group reaches it; and what that starts may
# outlive it. The child adopts such orphans, so that they stay below it.


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


#: What the child runs, isolated from environment and directory. It finds modules where its parent does.
_BOOT = """
import sys
sys.path[:] = sys.argv[2:]
from harnpy.isolation.child import main
main(int(sys.argv[1]))
"""
#: The exit status of a child that has no memory left to say so.
OUT_OF_MEMORY = 97
#: How a process ends by itself when it gets no memory, and when it has a fault.
_MEMORY_SIGNALS = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS)
#: How Python reports a thread for which there is no memory.
_NO_THREAD = "can't start new thread"
_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


class Process:
    """A child in a session of its own, and the embedder's end of the socket to it."""

    def __init__(self, env: Mapping[str, str], directory: str | None) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            path = [os.path.abspath(entry) for entry in sys.path]
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", _BOOT, str(theirs.fileno()), *path],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=dict(env),
                cwd=directory,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        ours.setblocking(False)
        self.socket = ours
        self.pid = self._process.pid
        #: The processes that the kernel had killed when this one began.
        self.killed_before = killed_for_memory()
        # Also when the embedder forgets the Vm, or ends.
        self._end = weakref.finalize(self, _end, self._process, ours)

    def kill(self) -> None:
        """Kill the child and what it has started; the socket reports the end."""
        _kill(self.pid)

    def end(self) -> None:
        """Kill the child and what it has started; return when it is gone."""
        self._end()

    def status(self) -> int:
        """Return how the child, which has closed its socket, has ended: as `Popen.returncode` has it."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        self.end()
        return self._process.wait()


def _end(process: subprocess.Popen[bytes], ours: socket.socket) -> None:
    ours.close()
    if process.poll() is None:
        _kill(process.pid)
        process.wait()


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        kill_below(pid)
        os.kill(pid, signal.SIGKILL)


def killed_for_memory() -> int:
    """Return how many processes the kernel has killed for want of memory; 0 where it doesn't say."""
    with suppress(OSError), open("/proc/vmstat", encoding="ascii") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("oom_kill "))
    return 0


def end_of(status: int, killed_before: int) -> str:
    """Return what is known of an end: its signal, and whether the kernel killed for want of memory."""
    if status >= 0:
        return f"with status {status}"
    starved = status == -signal.SIGKILL and killed_for_memory() > killed_before
    return f"by signal {-status}" + (", when the system had no memory left" if starved else "")


def reason(status: int, memory: int | None, cpu: float | None, killed_before: int) -> VmError:
    """The error for a child that has ended by itself in the middle of a run."""
    if status == -signal.SIGXCPU and cpu is not None:
        return exceeded("cpu", f"{cpu:g} seconds of processor time")
    if memory is not None and was_out_of_memory(status, memory):
        return exceeded("memory", f"{size_text(memory)} of memory")
    return VmError(f"the process of the isolated program has ended {end_of(status, killed_before)}")


def was_out_of_memory(status: int, memory: int) -> bool:
    """Return whether a process with a limit of memory has ended for want of it.

    It says so by its status. A signal says so only of one that had used much of it, untouched pages left out.
    """
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10
    return status == OUT_OF_MEMORY or (-status in _MEMORY_SIGNALS and 4 * used >= memory)


def is_lack_of_memory(error: BaseException) -> bool:
    """Return whether a run with a limit of memory failed for want of it: Python reports that in several ways.

    One is a variable without a value: Python lets go of a text that ``s = s + t`` can't make larger. A
    program that caught the MemoryError ends when it reads the variable.
    """
    return any(
        isinstance(each, MemoryError | SystemError | UnboundLocalError) or str(each) == _NO_THREAD
        for each in (error, error.__cause__)
    )


def exceeded(limit: str, what: str) -> LimitExceeded:
    return LimitExceeded(limit, f"the program exceeded its limit of {what}")


def read_size(given: int | str) -> int:
    """A number of bytes, as such or as ``64K``, ``512M``, ``2G``. Raises ValueError."""
    if type(given) is int and given > 0:
        return given
    text = str(given).strip().lower().removesuffix("b").removesuffix("i")
    factor = _UNITS.get(text[-1:], 1)
    digits = text[:-1] if factor > 1 else text
    if not (type(given) is str and digits.isascii() and digits.isdecimal() and int(digits) > 0):
        raise ValueError(f"{given!r} is no size of memory: write a number of bytes, or one with K, M or G")
    return int(digits) * factor


def size_text(size: int) -> str:
    """``512M`` and the like; what `read_size` reads."""
    for letter, unit in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if size % unit == 0:
            return f"{size // unit}{letter}"
    return f"{size} bytes"
