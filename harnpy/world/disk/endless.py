"""Reading what has no size: pipes, terminals and devices. It may never come, and never end."""

from __future__ import annotations

import os
from errno import EFBIG
from select import POLLIN, poll

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

#: The most bytes of one reading.
MOST = 64 << 20
_CHUNK = 1 << 16
#: Milliseconds between two looks while nothing comes.
_PAUSE = 20


def read_endless(file: int, look: Callable[[], object]) -> bytes:
    """Read an open file, which doesn't block, until its end. ``look`` raises when nobody waits any longer.

    Raises OSError for more than `MOST` bytes.
    """
    ready = poll()
    ready.register(file, POLLIN)
    data = bytearray()
    while True:
        look()
        if not ready.poll(_PAUSE):
            continue
        try:
            chunk = os.read(file, _CHUNK)
        except BlockingIOError:
            continue
        if not chunk:
            return bytes(data)
        data += chunk
        if len(data) > MOST:
            raise OSError(EFBIG, os.strerror(EFBIG))
