"""Which workflow a message is for, and in which directory its mailbox is. Spec: 08 §10."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.faults import MisuseError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    ProjectOf = Callable[[str], str | None]


_UNNAMED = "workflow"
_RUNS = ".harn-runs"
_IDS = (("workflow_id",), ("workflow",), ("run", "workflow_id"), ("result", "run", "workflow_id"))
_RECORDS = (("persisted_path",), ("path",), ("run", "persisted_path"))


class Target(NamedTuple):
    workflow_id: str
    base_dir: str


def read_target(given: Any, caller: str, root: str, cwd: str, project_of: ProjectOf) -> Target:
    """Return the workflow that an id, a handle or a result stands for, below ``root`` unless it says where.

    A record that is in a project, as ``project_of(directory)`` returns it, is of a workflow of that project.
    Raise `MisuseError`.
    """
    if given is None:
        raise MisuseError(f"{caller}: missing target")
    id = given if isinstance(given, str) else _first_text(given, _IDS)
    if id is None:
        raise MisuseError(f"{caller}: target must be a workflow id string or dict with workflow_id/workflow")
    named = _first_text(given, (("base_dir",),))
    if named:
        return Target(_last_part(id), os.path.join(cwd, named))
    recorded = _place_of_record(given)
    if recorded is None:
        return Target(_last_part(id), os.path.join(cwd, root))
    place = os.path.join(cwd, recorded)
    return Target(_last_part(id), project_of(place) or place)


def _last_part(id: str) -> str:
    """Return a name for the workflow's directory."""
    part = os.path.basename(id.rstrip("/"))
    return _UNNAMED if part.strip() in ("", ".", "..") else part


def _place_of_record(given: Any) -> str | None:
    record = _first_text(given, _RECORDS)
    if not record:
        return None
    directory = os.path.dirname(record)
    return os.path.dirname(directory) or "." if os.path.basename(directory) == _RUNS else directory or "."


def _first_text(given: Any, paths: Sequence[Sequence[str]]) -> str | None:
    """Return the first text found under one of the paths."""
    return next((found for path in paths if isinstance(found := _at(given, path), str)), None)


def _at(given: Any, path: Sequence[str]) -> Any:
    for key in path:
        given = given.get(key) if isinstance(given, dict) else None
    return given
