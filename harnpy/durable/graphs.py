"""Runs the graph of a job in a `Vm` of its own: each stage is a step. Spec: 08 §7, 10 §C19.1."""

from __future__ import annotations

from threading import Event
from typing import TYPE_CHECKING, Any, Final

from harnpy.agent.toolbox import FILE_TOOLS, PLAN_TOOLS
from harnpy.builtins.agents.agent_functions import graph_with_python_functions
from harnpy.builtins.agents.agent_runtime import runtime_of
from harnpy.durable.stages import VmStages
from harnpy.embedding import Vm
from harnpy.faults import Interruption
from harnpy.llm.native_tools import tool_entries
from harnpy.session.stores import StoreSettings
from harnpy.vm.errors import Interrupted
from harnpy.vm.run.tasks import start_beside
from harnpy.workflow.engines.errors import RunError
from harnpy.workflow.execution.execute import execute
from harnpy.workflow.records.record_shapes import plain_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harnpy.workflow.engines.contract import Job, Json, RunContext

    Dict = dict[str, Any]

#: Options of `workflow_execute` that say how a run goes on: here its engine does.
_NOT_OPTIONS: Final = ("resume_path", "resume_run", "restart", "replay_path", "replay_run", "replay_mode")
#: Seconds between two looks whether the run is to end.
_LOOK: Final = 0.1


def run(job: Job, context: RunContext, make_vm: Callable[[], Vm] = Vm) -> Json:
    """Run the job's graph, and return the record of the run. Raises `RunError` for what can't be run."""
    vm, body = make_vm(), job.body
    options = dict(body.get("options") or {})
    for name in _NOT_OPTIONS:
        if options.get(name) is not None:
            raise RunError(
                f"job '{job.name}': option `{name}` isn't one of a durable run: its engine resumes it"
            )
    _check_tools(job, vm)
    sessions, store = vm.sessions, job.store
    if store:
        sessions.stores.settings = StoreSettings(store, durable=True)
    ended = Event()
    context.on_end(ended.set)

    def graph() -> Dict:
        _watch(vm, ended)
        runtime = runtime_of(vm)
        recorded = [(step.key, step.output) for step in context.recorded]
        runtime.stages = VmStages(
            vm,
            context.step,
            store or None,
            run_id=context.run_id,
            recorded=recorded,
            accepted=frozenset(body.get("accept_changes") or ()),
        )
        given = runtime.models.options(options)
        task = body.get("task") or ""
        graph = graph_with_python_functions(vm, body.get("graph"))
        record: Dict = execute(runtime, task, graph, body.get("artifacts"), given)["run"]
        return record

    try:
        return plain_json(vm.start(graph))
    except (Interrupted, Interruption):
        context.check()  # says why
        raise
    finally:
        sessions.stores.close()


def _watch(vm: Vm, ended: Event) -> None:
    """Have the program end soon after ``ended`` was set, from any thread."""
    tasks = vm.tasks
    root = tasks.current

    def look(depth: int) -> None:
        while not ended.is_set():
            tasks.wake_at(tasks.current, tasks.now() + _LOOK)
            tasks.suspend()
        root.deadlines += (tasks.now(),)
        tasks.may_interrupt = True
        tasks.resume(root)

    start_beside(tasks, look, "cancellation")


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
