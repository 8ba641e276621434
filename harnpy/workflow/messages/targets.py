"""Which workflow a message is for, and in which directory its mailbox is. Spec: 08 §10."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.faults import MisuseError

if TYPE_CHECKING:
    from collections.abc import Sequence


_UNNAMED = "workflow"
_RUNS = ".harn-runs"
_IDS = (("workflow_id",), ("workflow",), ("run", "workflow_id"), ("result", "run", "workflow_id"))
_RECORDS = (("persisted_path",), ("path",), ("run", "persisted_path"))


class Target(NamedTuple):
    workflow_id: str
    base_dir: str


def read_target(given: Any, caller: str, root: str, cwd: str) -> Target:
    """Return the workflow that an id, a handle or a result stands for, below ``root`` unless it says where.

    Raise `MisuseError`.
    """
    if given is None:
        raise MisuseError(f"{caller}: missing target")
    id = given if isinstance(given, str) else _first_text(given, _IDS)
    if id is None:
        raise MisuseError(f"{caller}: target must be a workflow id string or dict with workflow_id/workflow")
    return Target(_last_part(id), os.path.join(cwd, _base(given) or root))


def _last_part(id: str) -> str:
    """Return a name for the workflow's directory."""
    part = os.path.basename(id.rstrip("/"))
    return _UNNAMED if part.strip() in ("", ".", "..") else part


def _base(given: Any) -> str | None:
    named = _first_text(given, (("base_dir",),))
    if named:
        return named
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
