"""What does the jobs of durable runs: graphs and whole programs, each in a `Vm` of its own. Spec: 10 §C19."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from harnpy.workflow.engines.contract import GRAPH, PROGRAM

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.workflow.engines.contract import Job, Json, RunContext, Step


def run_graph(job: Job, run: RunContext) -> Json:
    """Run a workflow graph; what it comes to is its run record."""
    return import_module("harnpy.durable.graphs").run(job, run)


def check_graph(job: Job, run_id: str, steps: Sequence[Step]) -> None:
    """Raise `StagesChanged` where a run with these records can't go on with ``job``. Nothing is changed."""
    import_module("harnpy.durable.graphs").check(job, run_id, steps)


def run_program(job: Job, run: RunContext) -> Json:
    """Run a Harn program; what it comes to is its entry's value, as JSON."""
    return import_module("harnpy.durable.programs").run(job, run)


#: The bodies, by the kinds of jobs that they do.
BODIES = {GRAPH: run_graph, PROGRAM: run_program}

#: What checks a job, by its kind, before it takes the place of that of a run.
CHECKS = {GRAPH: check_graph}
