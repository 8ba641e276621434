"""The persistent sink: a session's agent events as lines of a file. Spec: 08 §1.7.

The host may have them elsewhere. Else they are written when `HARN_EVENT_LOG_DIR` names a directory. A sink
that can't be written warns once and is then silent; the session continues. Secrets are masked.
"""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, Any, Protocol

from harnpy.text.json.writer import to_json

if TYPE_CHECKING:
    from harnpy.world import World

VARIABLE = "HARN_EVENT_LOG_DIR"
SIZE_LIMIT = 100 * 1024 * 1024


class Sink(Protocol):
    """Where a session's agent events go."""

    def write(self, event: dict[str, Any]) -> None:
        """Keep an event. Raises nothing: the session goes on whatever becomes of it."""


class EventSink:
    """One session's file, continued in a new one whenever it has grown to ``SIZE_LIMIT`` bytes."""

    def __init__(self, directory: str, session_id: str, world: World) -> None:
        from urllib.parse import quote

        # Any text is an id; percent-encoding keeps files distinct and inside the directory.
        self._stem = os.path.join(directory, f"event_log-{quote(session_id, '', errors='surrogatepass')}")
        self._world = world
        self._index = 0
        self._part = 0
        self._size = 0
        self._broken = False
        self._put("", append=False)

    def write(self, event: dict[str, Any]) -> None:
        """Add an event's line."""
        if self._broken:
            return
        from harnpy.text.secrets.values import mask_value

        now = round(self._world.clock.now() * 1000)
        row = {**mask_value(event), "index": self._index, "emitted_at_ms": now, "frame_depth": None}
        line = to_json(row) + "\n"
        self._index += 1
        if self._size >= SIZE_LIMIT:
            self._part, self._size = self._part + 1, 0
            self._put("", append=False)
        self._put(line, append=True)

    def _put(self, text: str, append: bool) -> None:
        suffix = f"-{self._part:06d}" if self._part else ""
        try:
            self._world.unguarded.files.write_text(f"{self._stem}{suffix}.jsonl", text, append)
        except OSError as error:
            self._broken = True
            self._world.warn("agent.event_log", f"{self._stem}: {error.strerror}")
        self._size += len(text.encode("utf-8", "surrogatepass"))
