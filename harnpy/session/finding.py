"""Finding an event of a log by its number, for those that refer to it. Spec: 10 §C4."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import ref

from harnpy.storage.memory import MemoryStream

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.session.events import Event
    from harnpy.storage.contract import Stream


def finder(stream: Stream) -> Callable[[int], Event | None]:
    """Return what finds an event of ``stream``.

    It keeps no stream in memory alive: the events of a closed session would keep all the others.
    """
    where = ref(stream) if isinstance(stream, MemoryStream) else (lambda: stream)

    def find(seq: int) -> Event | None:
        known = where()
        return None if known is None or seq < 1 else next(known.read(seq - 1, seq), None)

    return find
