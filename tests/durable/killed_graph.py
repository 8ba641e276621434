"""A process that runs the graph of six stages:

    python -m tests.durable.killed_graph ENGINE URL RUN DIES_AFTER

It kills itself behind step number DIES_AFTER, if that isn't -1; else it prints the run's record. The file
``asked`` gets a line for each call of the model.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any

from harnpy import Vm
from harnpy.durable import graphs
from harnpy.workflow.engines import open_engine
from harnpy.workflow.engines.contract import GRAPH, Job, Json, RunContext
from tests.durable.processes import Model, job
from tests.support import PATIENCE


class Dying:
    """The context of a run, whose process dies behind a step."""

    def __init__(self, run: RunContext, dies_after: int) -> None:
        self._run, self._left = run, dies_after - len(run.recorded)
        self.run_id, self.attempt, self.recorded = run.run_id, run.attempt, run.recorded
        self.record, self.check, self.on_end = run.record, run.check, run.on_end

    def step(self, key: str, work: Callable[[], Json]) -> Json:
        ran: list[str] = []
        output = self._run.step(key, lambda: (ran.append(key), work())[1])
        if ran:
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            self._left -= 1
        return output

    def wait(self, waitpoints: Sequence[str], *, key: str, timeout: float | None = None) -> Json:
        return self._run.wait(waitpoints, key=key, timeout=timeout)


class Noting(Model):
    def complete(self, request: Any) -> Any:
        with open("asked", "a", encoding="utf-8") as file:
            file.write("asked\n")
        return super().complete(request)


def body(dies_after: int, url: str) -> Callable[[Job, RunContext], Json]:
    def make_vm() -> Vm:
        vm = Vm()
        vm.provide("model", Noting())
        return vm

    def run(job: Job, context: RunContext) -> Json:
        dying = context if dies_after < 0 else Dying(context, dies_after)
        return graphs.run(Job(job.kind, job.name, job.body, url), dying, make_vm)

    return run


def main(engine: str, url: str, id: str, dies_after: str) -> None:
    found = open_engine(engine, url, bodies={GRAPH: body(int(dies_after), url)})
    handle = found.start(job(), id=id) if found.get(id) is None else found.resume(id)
    print(json.dumps([handle.result(PATIENCE), [step.key for step in found.steps(id)]]), flush=True)
    found.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
