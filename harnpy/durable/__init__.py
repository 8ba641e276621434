"""What does the jobs of durable runs: graphs and whole programs, each in a `Vm` of its own. Spec: 10 §C19."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from harnpy.project import ManifestError
from harnpy.workflow.engines.contract import GRAPH, PROGRAM

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harnpy.embedding import Vm
    from harnpy.workflow.engines.contract import Body, Job, Json, RunContext, Step


class GraphBody:
    """Runs workflow graphs; what a run comes to is its run record. ``store`` is for jobs that name none."""

    def __init__(self, store: str) -> None:
        self._store = store

    def __call__(self, job: Job, run: RunContext) -> Json:
        return import_module("harnpy.durable.graphs").run(_stored(job, self._store), run)

    def check(self, job: Job, run_id: str, steps: Sequence[Step]) -> None:
        """Raise `StagesChanged` where a run with these records can't go on with ``job``. Runs nothing."""
        import_module("harnpy.durable.graphs").check(_stored(job, self._store), run_id, steps)


class ProgramBody:
    """Runs Harn programs; what a run comes to is its entry's value, as JSON. ``prepare(vm)`` is called with
    each Vm before its program is loaded."""

    def __init__(self, store: str, prepare: Callable[[Vm, Job], object] | None = None) -> None:
        self._store = store
        self._prepare = prepare

    def __call__(self, job: Job, run: RunContext) -> Json:
        programs = import_module("harnpy.durable.programs")
        try:
            return programs.run(_stored(job, self._store), run, **self._more(job))
        except ManifestError as error:
            # Nothing has run: nobody here trusts its project, or the project is wrong here. Others may do it.
            leave = getattr(run, "leave", None)
            if leave is not None:
                leave(error)
            raise

    def check(self, job: Job, run_id: str, steps: Sequence[Step]) -> None:
        """Raise SourceFault or `ReplayDiverged` where a run with these records can't go on with ``job``.

        The program runs as far as they go, and changes nothing.
        """
        programs = import_module("harnpy.durable.programs")
        programs.check(_stored(job, self._store), run_id, steps, **self._more(job))

    def _more(self, job: Job) -> dict[str, Any]:
        prepare = self._prepare
        return {} if prepare is None else {"prepare": lambda vm: prepare(vm, job)}


def bodies(store: str, prepare: Callable[[Vm, Job], object] | None = None) -> dict[str, Body]:
    """Return what does jobs, by their kind. Those that name no store have their sessions in ``store``."""
    return {GRAPH: GraphBody(store), PROGRAM: ProgramBody(store, prepare)}


def _stored(job: Job, store: str) -> Job:
    return replace(job, store=job.store or store)
