"""The standard streams of a command that speaks a protocol with the client that started it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import BinaryIO


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
