"""What a daemon's loop saves in a file, for a later run to continue from. Spec: 07 §12."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from harnpy.faults import MisuseError
from harnpy.text.json.reader import parse_json
from harnpy.text.json.writer import pretty_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harnpy.agent.workplace import Workplace
    from harnpy.reading.dicts import Dict
    from harnpy.world.files import Files

    #: What the value under each key must be.
    Shape = Mapping[str, Callable[[Any], bool]]

TYPE = "daemon_snapshot"


@dataclass(frozen=True, slots=True)
class DaemonSnapshot:
    """``visible_messages`` are what the model sees, ``recorded_messages`` all that ever entered the
    conversation. ``watch_state`` has the watched files' times as last seen.
    """

    saved_at: str
    daemon_state: str
    visible_messages: list[Dict]
    recorded_messages: list[Dict]
    transcript_summary: str | None
    transcript_events: list[Dict]
    total_text: str
    last_iteration_text: str
    all_tools_used: list[str]
    rejected_tools: list[str]
    deferred_user_messages: list[Any]
    total_iterations: int
    idle_backoff_ms: int
    last_run_exit_code: int | None
    watch_state: dict[str, int | None]

    def as_dict(self) -> Dict:
        return {"_type": TYPE, **{name: getattr(self, name) for name in _FIELDS}}


_FIELDS = tuple(field.name for field in fields(DaemonSnapshot))


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def is_list(value: Any) -> bool:
    return isinstance(value, list)


def is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_dicts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _is_times(value: Any) -> bool:
    return isinstance(value, dict) and all(type(time) in (int, type(None)) for time in value.values())


_SHAPE: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("saved_at", "daemon_state", "total_text", "last_iteration_text"), is_text),
    **dict.fromkeys(("visible_messages", "recorded_messages", "transcript_events"), _is_dicts),
    **dict.fromkeys(("all_tools_used", "rejected_tools", "deferred_user_messages"), is_list),
    **dict.fromkeys(("total_iterations", "idle_backoff_ms"), is_count),
    "transcript_summary": lambda value: value is None or is_text(value),
    "last_run_exit_code": lambda value: type(value) in (int, type(None)),
    "watch_state": _is_times,
}


class StateFiles:
    """JSON files that hold a daemon's state. Errors name ``caller``, a builtin."""

    def __init__(self, files: Files, workplace: Workplace, caller: str) -> None:
        self._files = files
        self._workplace = workplace
        self._caller = caller

    def save(self, path: str, value: Dict) -> None:
        """Write ``value``. A crash leaves the former contents."""
        try:
            self._files.replace_text(self._workplace.path(path), pretty_json(value) + "\n")
        except OSError as error:
            why = error.strerror or error
            raise MisuseError(f"{self._caller}: failed to write '{path}': {why}") from error

    def modified(self, path: str) -> int | None:
        return self._files.modified(self._workplace.path(path))

    def snapshot(self, path: str) -> DaemonSnapshot:
        read = self.load(path, TYPE, _SHAPE)
        return DaemonSnapshot(**{name: read[name] for name in _FIELDS})

    def load(self, path: str, type: str, shape: Shape) -> Dict:
        """Return the value in a file of that ``type``."""
        try:
            read = parse_json(self._files.read_text(self._workplace.path(path)))
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise MisuseError(f"{self._caller}: failed to read '{path}': {why}") from error
        problem = _problem(read, type, shape)
        if problem is not None:
            raise MisuseError(f"{self._caller}: '{path}' is no {type.replace('_', ' ')}: {problem}")
        value: Dict = read
        return value


def _problem(read: Any, type: str, shape: Shape) -> str | None:
    """Return what is wrong with a value, if anything."""
    if not isinstance(read, dict) or read.get("_type") != type:
        return f"`_type` must be {type}"
    missing = [key for key in shape if key not in read]
    if missing:
        return f"missing {', '.join(missing)}"
    wrong = next((key for key, fits in shape.items() if not fits(read[key])), None)
    return None if wrong is None else f"`{wrong}` has the wrong type"
