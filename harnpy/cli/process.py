"""The process of a command: its standard streams, and the programs that it has started."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import BinaryIO

# Standard streams that were closed before the process began (`>&-`): Python has None for them.


#: Number, name, how the null device is opened in its place, and as what.
_STREAMS = (
    (0, "stdin", os.O_RDONLY, "r"),
    (1, "stdout", os.O_RDONLY, "w"),  # for reading: writing to it fails, as it should
    (2, "stderr", os.O_WRONLY, "w"),  # nobody could be told
)


def open_closed_streams() -> None:
    """Give every standard stream a file, so that no other file takes its number."""
    for number, name, flags, mode in _STREAMS:
        if getattr(sys, name) is None:
            _open_as(number, flags)
            # Like a standard stream: stderr escapes what it can't encode, and nobody closes the number.
            stream = open(number, mode, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


def _open_as(number: int, flags: int) -> None:
    file = os.open(os.devnull, flags)
    if file != number:
        os.dup2(file, number)
        os.close(file)


# The standard streams of a command that speaks a protocol with the client that started it.


def take_streams() -> tuple[BinaryIO, BinaryIO]:
    """The client's streams, kept from the program and its child processes.

    These read nothing, and what they write to stdout goes to stderr.
    """
    reader, writer = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return reader, writer


# The programs that this process has started, and their end.


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
