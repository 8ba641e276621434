"""What a program of the system writes, read to its end; a program that writes without end is refused."""

from __future__ import annotations

import os
from selectors import EVENT_READ, DefaultSelector
from subprocess import TimeoutExpired
from time import monotonic
from typing import TYPE_CHECKING

from harnpy.faults import TooLarge

if TYPE_CHECKING:
    from subprocess import Popen

#: Bytes that a program may write to each of its pipes, as many as the characters of a string.
MOST = 2**28

_CHUNK = 2**16


def written(process: Popen[bytes], timeout: float | None) -> tuple[bytes, bytes]:
    """Return what a process writes to stdout and stderr until both are closed and it has ended.

    Raises TimeoutExpired when that takes longer than ``timeout``, `TooLarge` when it is too much.
    """
    assert process.stdout is not None
    assert process.stderr is not None
    pipes = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
    ends = None if timeout is None else monotonic() + timeout

    def left() -> float | None:
        return None if ends is None else max(ends - monotonic(), 0)

    with DefaultSelector() as waiting:
        for pipe in pipes:
            waiting.register(pipe, EVENT_READ)
        while waiting.get_map():
            ready = waiting.select(left())
            if not ready or left() == 0:  # one that writes without end is always ready
                raise TimeoutExpired(process.args, timeout or 0)
            for key, _ in ready:
                if not _read(key.fd, pipes[key.fd]):
                    waiting.unregister(key.fd)
    process.wait(left())
    out, err = map(bytes, pipes.values())
    return out, err


def _read(pipe: int, into: bytearray) -> bool:
    """Read what there is. Return whether there may be more."""
    data = os.read(pipe, _CHUNK)
    into += data
    if len(into) > MOST:
        raise TooLarge(f"more than {MOST} bytes of output", MOST)
    return bool(data)
