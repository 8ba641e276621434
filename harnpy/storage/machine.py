"""The machine that a store's process runs on: who the process is, who is still there, and a clock that no
one sets.

Leases need all three. An *owner* is ``<host>:<boot id>:<pid>:<process start>``, so that a process number
that is given again names another owner. Spec: 10 §C6.
"""

from __future__ import annotations

import os
import socket
import time
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_PROC = Path("/proc")
#: The first namespace of process numbers on Linux. In another one, numbers mean other processes.
_INITIAL_NAMESPACE = 4026531836


class Machine:
    """This machine, as this process sees it. ``uptime`` is in seconds."""

    def __init__(self, uptime: Callable[[], float] | None = None) -> None:
        self.uptime = uptime or _uptime
        self._owners: dict[int, str] = {}

    @cached_property
    def boot(self) -> str:
        """What distinguishes this run of the machine from every other one."""
        try:
            return (_PROC / "sys/kernel/random/boot_id").read_text("ascii").strip()
        except OSError:
            return f"{time.time() - time.monotonic():.0f}"

    @cached_property
    def host(self) -> str:
        """The machine's name, and the namespace of its process numbers if that isn't the first one."""
        name = socket.gethostname().replace(":", "-") or "localhost"
        try:
            namespace = (_PROC / "self/ns/pid").stat().st_ino
        except OSError:
            return name
        return name if namespace == _INITIAL_NAMESPACE else f"{name}~{namespace}"

    def owner(self) -> str:
        """This process. Ask anew each time: a fork is another one."""
        pid = os.getpid()
        if pid not in self._owners:
            self._owners = {pid: f"{self.host}:{self.boot}:{pid}:{_start(pid) or '0'}"}
        return self._owners[pid]

    def is_gone(self, owner: str) -> bool:
        """Whether ``owner`` is a process of this machine that is no longer there.

        False for owners of other machines, and for what isn't in the form of an owner: nobody can tell.
        """
        host, _, rest = owner.partition(":")
        parts = rest.split(":")
        if host != self.host or len(parts) != 3 or not parts[1].isdecimal():
            return False
        boot, pid, start = parts[0], int(parts[1]), parts[2]
        if boot != self.boot:
            return True
        return _start(pid) != start if _PROC.exists() else not _exists(pid)


def _uptime() -> float:
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


def _start(pid: int) -> str | None:
    """When a process began, in ticks since the boot; None when there is none, or only its remains."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text("utf-8", "replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
