"""Server-sent events as text: the frame of one, and what a program gives for one. Spec: 04 §21.5."""

from __future__ import annotations

from typing import NamedTuple

from harnpy.net.server.faults import ServerFault
from harnpy.text.display import display, type_name
from harnpy.text.json.writer import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Event(NamedTuple):
    """One event; ``name`` None is `message`, as clients have it."""

    data: str
    name: str | None = None
    id: str | None = None
    retry_ms: int | None = None

    def frame(self) -> str:
        lines = []
        if self.id is not None:
            lines.append(f"id: {self.id}")
        if self.name is not None:
            lines.append(f"event: {self.name}")
        if self.retry_ms is not None:
            lines.append(f"retry: {self.retry_ms}")
        lines.extend(f"data: {line}" for line in _lines(self.data))
        return "\n".join(lines) + "\n\n"

    def shown(self) -> dict[str, Any]:
        """Return the event as a client receives it."""
        return {
            "type": "event",
            "event": self.name or "message",
            "data": "\n".join(_lines(self.data)),
            "id": self.id,
            "retry_ms": self.retry_ms,
        }


class Comment(NamedTuple):
    """What clients ignore: it keeps a connection alive."""

    text: str

    def frame(self) -> str:
        return "".join(f": {line}\n" for line in _lines(self.text)) + "\n"

    def shown(self) -> dict[str, Any]:
        return {"type": "comment", "comment": self.text}


def event_of(given: Any) -> Event:
    """Return the event that a program gives: a dict of `EVENT`, whose keys were checked, or the data alone.

    Data that is no string is sent as JSON. Raises ServerFault.
    """
    if type(given) is not dict:
        return Event(_data(given))
    retry = given.get("retry_ms") if given.get("retry_ms") is not None else given.get("retry")
    if retry is not None and (type(retry) is not int or retry < 0):
        raise ServerFault(f"`retry_ms` of an event must be an int from 0 on, got {display(retry)}")
    return Event(_data(given.get("data")), _line(given, "event"), _line(given, "id"), retry)


def _data(value: Any) -> str:
    if value is None:
        return ""
    return value if type(value) is str else to_json(value)


def _line(given: dict[str, Any], key: str) -> str | None:
    value = given.get(key)
    if value is None:
        return None
    if type(value) not in (str, int):
        raise ServerFault(f"`{key}` of an event must be a string, got {type_name(value)}")
    text = str(value)
    if any(each in text for each in "\r\n\0"):
        raise ServerFault(f"`{key}` of an event must be one line, got {text!r}")
    return text


def _lines(text: str) -> list[str]:
    """Return the lines as clients part them: at CR LF, LF and CR, and nowhere else."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
