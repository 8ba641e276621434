"""The states of logs, kept beside them so that a store opens without reading every log.

A cache: each file says for which size and time of the log it was made, and is ignored otherwise, unless
the log still begins with what it describes. Spec: 10 §C6.1 (``heads/``).
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from harnpy.storage.jsonl.state import State

if TYPE_CHECKING:
    from harnpy.storage.jsonl.folders import Folder

SUFFIX = ".json"


class Cached(msgspec.Struct):
    """The state of a log whose file had this size and time of change."""

    size: int
    time: int
    state: State


_CACHED = msgspec.json.Decoder(Cached)


def cached(folder: Folder | None, file: str) -> Cached | None:
    """What was kept of a log; None when there is nothing of use."""
    if folder is None:
        return None
    try:
        content = folder.read(file + SUFFIX)
        return None if content is None else _CACHED.decode(content)
    except (OSError, msgspec.DecodeError):
        return None


def save(folder: Folder, file: str, size: int, time: int, state: State) -> None:
    """Keep the state of a log. A store that can't be written to does without."""
    with suppress(OSError):
        folder.replace(file + SUFFIX, msgspec.json.encode(Cached(size, time, state)), lasting=False)


def discard(folder: Folder, file: str) -> None:
    """Forget the state of a log."""
    with suppress(OSError):
        folder.remove(file + SUFFIX)
