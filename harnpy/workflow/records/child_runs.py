"""The child runs in a record: those of the run's workers. Spec: 08 §8.1, §8.2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.reading.lenient import as_dict, as_text
from harnpy.workflow.records.record_shapes import CHILD_RUN, EXECUTION
from harnpy.workflow.shapes import made, read

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harnpy.workflow.records.record_types import ChildRun, StageRecord


def completed(known: Iterable[ChildRun], stages: Sequence[StageRecord]) -> list[ChildRun]:
    """Return the known child runs and those of the stages' workers, with unset fields filled in from the
    workers' handles. An entry without news stays the same object."""
    children = {child["worker_id"]: child for child in known}
    for stage in stages:
        reported = _of_stage(stage)
        if reported is not None:
            child = children.setdefault(reported["worker_id"], reported)
            known_fields: dict[str, Any] = {**child}
            news = {key: value for key, value in reported.items() if known_fields[key] in (None, "")}
            if any(value not in (None, "") for value in news.values()):
                children[reported["worker_id"]] = made(CHILD_RUN, {**known_fields, **news})
    return list(children.values())


def _of_stage(stage: StageRecord) -> ChildRun | None:
    handle = as_dict(stage["metadata"].get("worker"))
    if not as_text(handle.get("id")):
        return None
    provenance, audit = as_dict(handle.get("provenance")), as_dict(handle.get("audit"))
    execution = handle.get("execution")
    child = {
        "worker_id": handle["id"],
        "parent_stage_id": as_text(handle.get("parent_stage_id")) or stage["id"],
        "session_id": as_text(provenance.get("session_id")),
        "parent_session_id": as_text(provenance.get("parent_session_id")),
        "mutation_scope": as_text(audit.get("mutation_scope")),
        "approval_policy": audit.get("approval_policy"),
        "request": handle.get("request"),
        "provenance": handle.get("provenance"),
        "run_id": as_text(handle.get("child_run_id")),
        "run_path": as_text(handle.get("child_run_path")),
        "snapshot_path": as_text(handle.get("snapshot_path")),
        "finished_at": as_text(handle.get("finished_at")),
        "execution": read(EXECUTION, execution) if isinstance(execution, dict) else None,
    }
    texts = {key: as_text(handle.get(key)) or "" for key in ("task", "status", "started_at")}
    return made(CHILD_RUN, {**child, **texts, "worker_name": as_text(handle.get("name")) or ""})
