"""The part of a `SessionRuntime` that is about children. Spec: 10 §A1.15, §C7, §C10."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harnpy.session.children.child_runs import child_run
from harnpy.session.children.facts import BLOCKED, CANCELED, COMPLETED, FAILED, Child
from harnpy.session.errors import ChildError, ChildNotFound, SessionConflict
from harnpy.session.events import EventDraft

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.session.children.child_runs import ChildRun
    from harnpy.session.children.facts import Fact
    from harnpy.session.children.nursery import Children
    from harnpy.session.children.scheduling import ScheduledChild, Scheduler
    from harnpy.session.children.values import ChildRef, ChildResult, ChildSpec
    from harnpy.session.runtime.calling import Caller, ParentCaller, ThreadCaller
    from harnpy.session.runtime.live import LiveSession

#: Of what its parent can take in the outcome.
_TAKEN_IN: Final = (BLOCKED, COMPLETED, FAILED, CANCELED)


class Parenting:
    """Children run in threads; the log of their parent says what becomes of them (`child_runs`)."""

    _caller: ThreadCaller
    _children: Children
    _scheduler: Scheduler

    def get(self, id: str) -> LiveSession:
        raise NotImplementedError

    def spawn(self, id: str, spec: ChildSpec, *, caller: ParentCaller | None = None) -> ChildRef:
        """Have a child of session ``id`` run in a session of its own.

        It is in the log, and its session is there, when this returns. It is cancelled with the turn that
        asked for it, unless it is detached. Raises `InvalidArgument`, `SessionNotFound`, `SessionExists`, and
        `SessionBusy` inside an atomic action of the parent.
        """
        return self._children.spawn(id, spec, caller or self._caller.one())

    def wait(
        self, child_id: str, timeout: float | None = None, *, caller: Caller | None = None
    ) -> ChildResult:
        """Return what became of a child, and forget it; its log and its parent's stay.

        ``timeout`` is in seconds. Raises `ChildNotFound` for one that this runtime doesn't run, or that was
        waited for; `ChildTimeout`; `SessionBusy` in an async function of the sync runtime, which would keep
        the child from running.
        """
        if caller is None:
            self._caller.check_outside()
        return self._children.wait(child_id, timeout, caller or self._caller.one())

    def run_child(self, id: str, spec: ChildSpec, *, caller: ParentCaller | None = None) -> ChildResult:
        """`spawn` a child and `wait` for it. Whoever is cancelled meanwhile ends with the child, unless it is
        detached."""
        if caller is None:
            self._caller.check_outside()
        ref = self.spawn(id, spec, caller=caller)
        try:
            return self.wait(ref.child_id, caller=caller)
        except BaseException:
            if not spec.detached:
                self._children.end(ref.child_id)
            raise

    def schedule_child(
        self, id: str, spec: ChildSpec, *, caller: ParentCaller | None = None
    ) -> ScheduledChild:
        """Have a child begin when ``spec.due_at`` says, at once if that is past.

        Raises what `spawn` does, and `ChildError` once the runtime is closed.
        """
        return self._scheduler.schedule(id, spec, caller or self._caller.one())

    def progress_child(
        self,
        id: str,
        child_id: str,
        message: str | None = None,
        *,
        status: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> ChildRun:
        """Have the log of session ``id`` say how far a child is. Its status stays.

        Raises `ChildNotFound`.
        """
        return self._report(
            id,
            "progress",
            child_id,
            lambda run: Child(child_id, run.session_id or None).progressed(message, status, metadata),
        )

    def merge_child(
        self,
        id: str,
        child_id: str,
        *,
        artifact_ids: list[str] | None = None,
        note: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> ChildRun:
        """Have the log of session ``id`` say that a child's outcome was taken in: ``artifact_ids`` of it, all
        by default.

        Raises `ChildNotFound`, and `ChildError` for one that hasn't ended or was taken in.
        """

        def merged(run: ChildRun) -> Fact:
            if run.status not in _TAKEN_IN:
                raise ChildError(f'merge child "{child_id}": it is {run.status}', id)
            made = (
                [artifact.id for artifact in run.artifacts if artifact.id]
                if artifact_ids is None
                else artifact_ids
            )
            return Child(child_id, run.session_id or None).merged(made, note, metadata)

        return self._report(id, "merge", child_id, merged)

    def _report(self, id: str, verb: str, child_id: str, fact: Callable[[ChildRun], Fact]) -> ChildRun:
        """Write ``fact(run)`` right behind what it is about. Return the run behind it."""
        while True:
            session = self.get(id)
            seen = session.version
            run = child_run(session, child_id)
            if run is None:
                raise ChildNotFound(f'{verb} child "{child_id}": not found', id)
            type, data = fact(run)
            try:
                (event,) = session.append(EventDraft(type, data), expected_version=seen)
            except SessionConflict:
                continue
            run.take(event)
            return run
