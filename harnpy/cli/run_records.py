"""Run records for the command line: read from files, found in a directory. Spec: 09 §8, §10."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harnpy.cli import FAILED
from harnpy.cli.console import complain, harmless
from harnpy.faults import MisuseError
from harnpy.reading.dicts import Dict
from harnpy.workflow.records import record_files
from harnpy.world import World

if TYPE_CHECKING:
    from harnpy.workflow.records.record_types import RunRecord


def load(name: str) -> RunRecord:
    """Return the record in a file, or of the run with that id. Raises `MisuseError`; see `unreadable`."""
    return record_files.load(_file(name), World())


def _file(name: str) -> str:
    """The path of a record, given as a path or as the id that `harnpy runs list` shows."""
    of_id = record_files.default_path(name, World())
    bare = "/" not in name and "." not in name
    return of_id if bare and not Path(name).exists() and Path(of_id).exists() else name


def unreadable(error: MisuseError) -> int:
    """Report that there is no record; return the exit status."""
    return refused(error, f"Failed to load run record: {error.message.partition(': ')[2]}")


def refused(error: Exception, message: str) -> int:
    """Report what is wrong, and with which file if known; return the exit status."""
    named = [harmless(file) for file in getattr(error, "__notes__", ())]
    complain("\n  --> ".join([message, *named]))
    return FAILED


class Usage(msgspec.Struct):
    total_cost: float = 0.0


class Summary(msgspec.Struct):
    """The parts of a record that a list shows; the rest of the file is skipped."""

    id: str
    workflow_id: str
    workflow_name: str | None = None
    status: str = ""
    started_at: str = ""
    finished_at: str | None = None
    stages: list[msgspec.Raw] = []
    usage: Usage | None = None
    path: str = ""

    @property
    def workflow(self) -> str:
        return self.workflow_name or self.workflow_id

    @property
    def started(self) -> str:
        """When it started, to the second."""
        time = _time(self.started_at)
        return self.started_at if time is None else time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")

    @property
    def duration_ms(self) -> int | None:
        """None for a run that isn't over, or has invalid times."""
        started, finished = _time(self.started_at), _time(self.finished_at or "")
        if started is None or finished is None:
            return None
        return round((finished - started).total_seconds() * 1000)

    @property
    def cost(self) -> float | None:
        return None if self.usage is None else self.usage.total_cost

    def as_dict(self) -> Dict:
        names = ("id", "workflow_id", "workflow_name", "status", "started_at", "finished_at", "path")
        shown = {name: getattr(self, name) for name in names}
        return {**shown, "stages": len(self.stages), "duration_ms": self.duration_ms, "cost": self.cost}


def summaries(directory: Path) -> Iterator[Summary]:
    """Yield the records in a directory and below it. Other JSON files are skipped."""
    for path in sorted(directory.rglob("*.json")):
        try:
            summary = msgspec.json.decode(path.read_bytes(), type=Summary)
        except (msgspec.DecodeError, OSError, RecursionError):
            continue
        if summary.id and summary.workflow_id:
            summary.path = str(path)
            yield summary


def _time(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else None
