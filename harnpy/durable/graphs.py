"""Runs the graph of a job in a `Vm` of its own: each stage is a step. Spec: 08 §7, 10 §C19.1."""

from __future__ import annotations

from contextlib import suppress
from threading import Event
from typing import TYPE_CHECKING, Any, Final
from uuid import NAMESPACE_OID, uuid5

from harnpy.agent.toolbox import FILE_TOOLS, PLAN_TOOLS
from harnpy.builtins.agents.agent_functions import graph_with_python_functions
from harnpy.builtins.agents.agent_runtime import runtime_of
from harnpy.durable.stages import Awaited, VmStages
from harnpy.embedding import Vm
from harnpy.faults import Interruption
from harnpy.llm.native_tools import tool_entries
from harnpy.session.stores import StoreSettings
from harnpy.vm.errors import Interrupted
from harnpy.vm.run.tasks import start_beside
from harnpy.workflow.engines.errors import ReplayDiverged, RunError
from harnpy.workflow.execution.execute import execute
from harnpy.workflow.records.record_shapes import plain_json
from harnpy.world.clock import rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from harnpy.workflow.engines.contract import Job, Json, RunContext, Step

    Dict = dict[str, Any]

#: Options of `workflow_execute` that say how a run goes on: here its engine does.
_NOT_OPTIONS: Final = ("resume_path", "resume_run", "restart", "replay_path", "replay_run", "replay_mode")
#: Seconds between two looks whether the run is to end.
_LOOK: Final = 0.1
_WAIT: Final = "wait:"


def run(job: Job, context: RunContext, make_vm: Callable[[], Vm] = Vm) -> Json:
    """Run the job's graph, and return the record of the run. Raises `RunError` for what can't be run.

    Where a stage waits for a waitpoint, the run does, outside of its step; then it goes through its steps
    again, and the stage through what it has done.
    """
    _check_options(job)
    steps, ended = _Steps(context), Event()
    context.on_end(ended.set)
    while True:
        try:
            return _run(job, steps, ended, make_vm())
        except Awaited as awaited:
            steps.wait(awaited.waitpoint)
        except (Interrupted, Interruption):
            context.check()  # says why
            raise


def check(job: Job, run_id: str, steps: Sequence[Step], make_vm: Callable[[], Vm] = Vm) -> None:
    """Raise what `run` would for a job that takes the place of that of a run which has these steps.

    Nothing is run, and nothing written.
    """
    _check_options(job)
    with suppress(_Checked):
        _run(job, _Steps(_Trial(run_id, steps)), Event(), make_vm(), is_trial=True)


class _Checked(BaseException):
    """A job was checked; it isn't run."""


def _checked() -> None:
    raise _Checked


class _Trial:
    """A `RunContext` whose run goes no further than its records."""

    attempt = 1

    def __init__(self, run_id: str, steps: Sequence[Step]) -> None:
        self.run_id = run_id
        self.recorded = steps
        self._left = list(steps)

    def step(self, key: str, work: Callable[[], Json]) -> Json:
        if not self._left:
            raise _Checked
        return self._left.pop(0).output

    def record(self, *steps: Step) -> None:
        raise _Checked

    def wait(self, waitpoints: Sequence[str], *, key: str, timeout: float | None = None) -> Json:
        return self.step(key, dict)

    def check(self) -> None:
        """Do nothing: nobody ends it."""

    def on_end(self, call: Callable[[], None]) -> None:
        """Do nothing: nobody ends it."""


def _run(job: Job, steps: _Steps, ended: Event, vm: Vm, *, is_trial: bool = False) -> Json:
    _check_tools(job, vm)
    sessions, body = vm.sessions, job.body
    if job.store:
        sessions.stores.settings = StoreSettings(job.store, durable=True)
    steps.begin()

    def graph() -> Dict:
        _watch(vm, ended)
        runtime = runtime_of(vm)
        runtime.stages = VmStages(
            vm,
            steps.step,
            job.store or None,
            run_id=steps.run_id,
            recorded=steps.done,
            accepted=frozenset(body.get("accept_changes") or ()),
            waits=steps.waits,
            checked=_checked if is_trial else None,
        )
        options = runtime.models.options(dict(body.get("options") or {}))
        graph, artifacts = _named(body, steps, vm)
        graph = graph_with_python_functions(vm, graph)
        record: Dict = execute(runtime, body.get("task") or "", graph, artifacts, options)["run"]
        return record

    try:
        return plain_json(vm.start(graph))
    finally:
        sessions.stores.close()


def _named(body: Dict, steps: _Steps, vm: Vm) -> tuple[Any, Any]:
    """Return the job's graph and artifacts with ids and times that are the same for each process."""
    graph, artifacts = body.get("graph"), body.get("artifacts")
    run, at = steps.run_id, rfc3339(vm.world.clock.now())
    if steps.done:
        run, at = steps.done[0][1]["id"], steps.done[0][1]["started_at"]

    def id_of(kind: str, number: int) -> str:
        return f"{kind}_{uuid5(NAMESPACE_OID, f'{run}:{kind}:{number}')}"

    if isinstance(graph, dict) and not graph.get("id"):
        graph = {**graph, "id": id_of("workflow", 1)}
    if isinstance(artifacts, list) and all(isinstance(artifact, dict) for artifact in artifacts):
        artifacts = [
            {
                **artifact,
                "id": artifact.get("id") or id_of("artifact", number),
                "created_at": artifact.get("created_at") or at,
            }
            for number, artifact in enumerate(artifacts, 1)
        ]
    return graph, artifacts


class _Steps:
    """The steps of a run, which it may go through several times.

    ``done`` are those with an output, ``waits`` what the waits between them came to, by their waitpoints.
    """

    def __init__(self, context: RunContext) -> None:
        self.run_id = context.run_id
        self.done = [(step.key, step.output) for step in context.recorded if not _is_wait(step.key)]
        self.waits: dict[str, Dict] = {}
        self._context = context
        self._waits_recorded = {n: step.key for n, step in enumerate(context.recorded) if _is_wait(step.key)}
        self._asked = 0  # of the context: steps and waits
        self._known = 0  # of `done`: those that the context was asked for
        self._next = 0

    def begin(self) -> None:
        """Begin to go through the steps."""
        self._next = 0

    def step(self, key: str, work: Callable[[], Any]) -> Any:
        number, self._next = self._next, self._next + 1
        if number < self._known:
            found, output = self.done[number]
            if found != key:
                raise ReplayDiverged(self.run_id, key, found, number + 1)
            return output
        while self._asked in self._waits_recorded:
            self.wait(self._waits_recorded[self._asked].removeprefix(_WAIT))
        output = self._context.step(key, work)
        self._asked += 1
        self._known += 1
        if number == len(self.done):
            self.done.append((key, output))
        return output

    def wait(self, waitpoint: str) -> None:
        self.waits[waitpoint] = self._context.wait([waitpoint], key=f"{_WAIT}{waitpoint}")
        self._asked += 1


def _is_wait(key: str) -> bool:
    return key.startswith(_WAIT)


def _watch(vm: Vm, ended: Event) -> None:
    """Have the program end soon after ``ended`` was set, from any thread."""
    tasks = vm.tasks
    root = tasks.current

    def look(depth: int) -> None:
        while not ended.is_set():
            tasks.suspend_until(tasks.now() + _LOOK)
        root.deadlines += (tasks.now(),)
        tasks.expect_interruption()
        tasks.resume(root)

    start_beside(tasks, look, "cancellation")


def _check_options(job: Job) -> None:
    options = job.body.get("options") or {}
    for name in _NOT_OPTIONS:
        if options.get(name) is not None:
            raise RunError(
                f"job '{job.name}': option `{name}` isn't one of a durable run: its engine resumes it"
            )


def _check_tools(job: Job, vm: Vm) -> None:
    """Raise `RunError` for tools that are functions: a job is JSON, and holds none."""
    for id, tool in _tools(job.body.get("graph")):
        name = tool.get("name")
        is_declared = tool.get("executor") not in (None, "harn")
        if callable(tool.get("handler")) or not (
            is_declared or name in FILE_TOOLS or name in PLAN_TOOLS or vm.world.host.bridge is not None
        ):
            raise RunError(
                f"job '{job.name}': tool '{name}' of node '{id}' is a function, and a job holds none: run "
                "the graph from a program, with `workflow_execute` and `harnpy run --durable`"
            )


def _tools(graph: Any) -> Iterator[tuple[str, Dict]]:
    nodes = graph.get("nodes") if isinstance(graph, dict) else None
    for id, node in nodes.items() if isinstance(nodes, dict) else ():
        for tool in tool_entries(node.get("tools")) if isinstance(node, dict) else ():
            yield id, tool
