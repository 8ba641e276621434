"""Run logs with those of the children, and theirs. Spec: 10 §A1.16."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from harnpy.session.children.child_runs import child_runs
from harnpy.session.errors import SessionNotFound
from harnpy.session.parts.arguments import check_session
from harnpy.session.trajectory.run_log import ChildLog, export_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.session.children.child_runs import ChildRun
    from harnpy.session.log import Session
    from harnpy.session.trajectory.run_log import RunLog

    Load = Callable[[str], Session | None]


def export_run_tree(session: Session, load: Load) -> RunLog:
    """Return what a session and its children did, and theirs.

    ``load(id)`` returns a session, or None, or raises `SessionNotFound`: that child has no log then.
    """
    check_session(session)
    return _tree(session, load, frozenset())


def _tree(session: Session, load: Load, above: frozenset[str]) -> RunLog:
    path = above | {session.id}
    runs = sorted(child_runs(session), key=lambda run: run.child_id)
    return replace(export_run(session), child_runs=[_child(run, load, path) for run in runs])


def _child(run: ChildRun, load: Load, path: frozenset[str]) -> ChildLog:
    found = None
    if run.session_id and run.session_id not in path:
        with suppress(SessionNotFound):
            found = load(run.session_id)
    return ChildLog(
        child_id=run.child_id,
        session_id=run.session_id,
        agent_id=run.agent_id,
        mode=run.mode,
        status=run.status,
        summary=run.summary,
        artifacts=run.artifacts,
        run=None if found is None else _tree(found, load, path),
        metadata=run.metadata,
    )
