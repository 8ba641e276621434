"""The friction events that a program records, in memory and in a JSON Lines file. Spec: 08 §8.8."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.faults import MisuseError
from harnpy.reading.strict import read_fields
from harnpy.text.json.writer import to_json
from harnpy.workflow.friction.friction_event import normalised
from harnpy.world.files import system_reason

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.world import World
    from harnpy.world.files import Files


VARIABLE = "HARN_FRICTION_LOG"
_OPTIONS = {"enabled": "bool", "log_path": "string", "path": "string"}


class FrictionLog:
    """The events that one program has recorded so far."""

    def __init__(self) -> None:
        self.events: list[Dict] = []

    def record(self, given: Any, options: Any, world: World) -> Dict:
        """Record an event, unless that is disabled; return where it went. Raise `MisuseError`."""
        settings = read_fields(
            {} if options is None else options, _OPTIONS, "options", what="friction_record"
        )
        event = normalised(given, world, top_level_keys=True)
        if settings["enabled"] is False:
            return {"recorded": False, "sink": "disabled", "event": event}
        path, files = settings["log_path"] or settings["path"], world.files
        if not path:
            path, files = world.unguarded.environment.get(VARIABLE), world.unguarded.files
        if path:
            _append(path, event, files)
        self.events.append(event)
        sink = {"sink": "jsonl", "path": path} if path else {"sink": "memory"}
        return {"recorded": True, "event": event, **sink}


def _append(path: str, event: Dict, files: Files) -> None:
    try:
        files.write_text(path, to_json(event) + "\n", append=True)
    except (OSError, ValueError) as error:
        raise MisuseError(f"failed to write friction log: {path}: {system_reason(error)}") from error
