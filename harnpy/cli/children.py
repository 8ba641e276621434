"""The programs that this process has started, and their end."""

from __future__ import annotations

import os
import signal
from contextlib import suppress


def end_children() -> None:
    """End the programs that this process has started and that are still there, with their groups."""
    own = os.getpgrp()
    for child in _children():
        with suppress(OSError):  # it has ended
            if os.getpgid(child) != own:
                os.killpg(child, signal.SIGKILL)


def _children() -> list[int]:
    """The processes that the system lists as ours; where it lists none, awaiting tasks end their own."""
    found: list[int] = []
    with suppress(OSError):
        for thread in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{thread}/children") as children:
                found += map(int, children.read().split())
    return found
