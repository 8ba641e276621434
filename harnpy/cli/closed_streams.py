"""Standard streams that were closed before the process began (`>&-`): Python has None for them."""

from __future__ import annotations

import os
import sys

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
