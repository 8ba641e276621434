"""Signals that arrive while an asyncio loop waits.

Python notes a signal and calls its handler when the main thread computes again. One that another thread
receives, or that comes just before the main thread begins to wait for its sockets, wakes nobody: Ctrl-C would
have to wait for whatever the program waits for.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

_NOBODY = -1


class Wakeful:
    """Has every signal wake ``loop``, which runs in the thread that makes this, until `close`.

    Only the main thread hears of signals; in others nothing happens. Whoever wanted to be woken before is
    told of the signals, too.
    """

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._hears = threading.current_thread() is threading.main_thread()
        if self._hears:
            self._reader, self._writer = socket.socketpair()
            self._reader.setblocking(False)
            self._writer.setblocking(False)
            self._before = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
            loop.add_reader(self._reader, self._pass_on)

    def _pass_on(self) -> None:
        numbers = self._reader.recv(4096)
        if self._before != _NOBODY:
            with suppress(OSError):  # closed since, or full: woken anyway
                os.write(self._before, numbers)

    def close(self) -> None:
        if self._hears:
            signal.set_wakeup_fd(self._before)
            self._loop.remove_reader(self._reader)
            self._reader.close()
            self._writer.close()
