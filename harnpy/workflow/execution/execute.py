"""Running a graph: stage after stage, each on record before the next begins. Spec: 08 §7.

`Ready` decides which node comes next, `stage_kinds` runs it, `Progress` keeps the record. However a run ends
early, by a deadline or a crash too, its last checkpoint stays, to resume from.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harnpy.agent.workflow_scope import WorkflowScope
from harnpy.faults import MisuseError
from harnpy.workflow.artifacts.artifact import read_artifacts
from harnpy.workflow.artifacts.selection import read_context_policy, select
from harnpy.workflow.execution.begin_run import begin_run, mutation_session, replay_of, run_metadata
from harnpy.workflow.execution.ready_queue import Ready
from harnpy.workflow.execution.run_options import CALLER, read_options
from harnpy.workflow.execution.run_progress import COMPLETED, Progress
from harnpy.workflow.execution.run_recorder import RunRecorder, Usage
from harnpy.workflow.execution.stage_records import failed, stage_metadata, stage_record
from harnpy.workflow.graph.normalise import normalise_graph
from harnpy.workflow.graph.policies import BUILT_IN, stage_approval, stage_policy, with_granted_tools
from harnpy.workflow.graph.validate import validate
from harnpy.workflow.records.record_files import default_path
from harnpy.workflow.records.record_writer import RunWriter
from harnpy.workflow.stages import stage_kinds
from harnpy.workflow.stages.stage_session import close_minted, run_session
from harnpy.workflow.stages.verification_contracts import contracts_for, read_contracts
from harnpy.workflow.stages.work import Work

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harnpy.agent.context import Rules
    from harnpy.agent.rules.policy import Policy
    from harnpy.agent.runtime import Runtime
    from harnpy.reading.dicts import Dict
    from harnpy.reading.lenient import Options
    from harnpy.workflow.artifacts.artifact_types import Artifact
    from harnpy.workflow.execution.replay import Replay
    from harnpy.workflow.execution.run_options import RunOptions
    from harnpy.workflow.graph.graph_types import Graph, Node
    from harnpy.workflow.records.record_types import StageRecord


def execute(runtime: Runtime, task: str, graph: Any, artifacts: Any, options: Options) -> Dict:
    """Run a graph, whose functions are Python callables; return the result dict of 08 §7.1.

    Raise `MisuseError` and `OptionError` for what can't run, and whatever ends the task.
    """
    if graph is None:
        raise MisuseError(f"{CALLER}: missing workflow")
    world = runtime.sessions.world
    normal = normalise_graph(graph, world)
    validation = validate(normal)
    if validation["errors"]:
        raise MisuseError(f"{CALLER}: invalid workflow: {'; '.join(validation['errors'])}")
    inputs = read_artifacts(artifacts, world)
    return Execution(runtime, task, normal, inputs, read_options(options), validation).run()


class Execution:
    """One run of a graph, or as much of it as its steps allow."""

    def __init__(
        self,
        runtime: Runtime,
        task: str,
        graph: Graph,
        artifacts: Sequence[Artifact],
        options: RunOptions,
        validation: Dict,
    ) -> None:
        self._runtime = runtime
        self._graph = graph
        self._options = options
        world = self._world = runtime.sessions.world
        context = runtime.context()
        self._replay = replay_of(options, world)
        run = self._run = begin_run(task, graph, artifacts, options, world)
        mutation = mutation_session(run["id"], options, context, world.ids.new())
        run["metadata"] = run_metadata(run, graph, options, mutation, validation, self._replay)
        ready = Ready(graph, options.steps(graph, self._replay), run["pending_nodes"], run["completed_nodes"])
        path = options.persist_path or options.resume_path
        # A stage's own rules don't decide about the record of the run.
        files = world.held().files if path else world.held().state_files
        path = path or default_path(run["id"], world)
        self._recorder = RunRecorder(runtime, run)
        writer = RunWriter(run, path, world, runtime.tasks.when_idle, files)
        self._progress = Progress(ready, writer, self._recorder, world)
        self._scope = WorkflowScope(
            workflow_id=graph["id"],
            run_id=run["id"],
            mutation=mutation,
            recorders=(self._recorder,),
            skills=options.skills,
            skill_match=options.skill_match,
        ).inside(context.workflow)
        self._contracts: list[Dict] | None = None

    def run(self) -> Dict:
        with self._installed():
            with self._progress.saved():
                while (id := self._next()) is not None:
                    self._runtime.tasks.go_on()
                    self._turn(id)
            self._progress.end()
        run = self._run
        if run["status"] == COMPLETED:
            close_minted(self._runtime.sessions, self._graph, run["id"])
        return {
            "status": run["status"],
            "run": run,
            "artifacts": run["artifacts"],
            "transcript": run["transcript"],
            "path": run["persisted_path"],
        }

    @contextmanager
    def _installed(self) -> Iterator[None]:
        """Put the run's mutation session, skills and approval policy in force inside the block."""
        context = self._runtime.context()
        rules = context.rules.one_deeper(CALLER).below(approval=self._options.approval)
        place = context.work_at(self._run["execution"])
        governed = context.govern(rules, caller_rules=context.rules)
        with governed, context.work_for(self._scope), place, self._recorder.listening():
            yield

    def _next(self) -> str | None:
        """Return the id of the node that comes next."""
        ready = self._progress.ready
        if not ready and self._replay:  # the replayed run had been resumed after it was completed
            ready.add(self._graph["entry"])
        return ready.take()

    # One turn.

    def _turn(self, id: str) -> None:
        node, stage_id = self._node(id), self._progress.stage_id(id)
        policy = stage_policy(BUILT_IN, self._graph, node)
        rules = self._rules(node, policy)
        if self._replay is None:
            stage = self._worked(node, stage_id, policy, rules)
        else:
            stage = self._replayed(node, stage_id, self._replay)
        self._progress.add(stage)

    def _node(self, id: str) -> Node:
        """Return the node as it runs: with the run's options and only the tools that it may use."""
        node = self._graph["nodes"].get(id)
        if node is None:
            raise MisuseError(f"{CALLER}: missing node {id}")
        return with_granted_tools(self._options.filled(node))

    def _rules(self, node: Node, policy: Policy) -> Rules:
        rules = self._runtime.context().rules.below(policy, stage_approval(None, self._graph, node))
        return rules.placed(self._runtime.workplace.real_root)

    def _worked(self, node: Node, stage_id: str, policy: Policy, rules: Rules) -> StageRecord:
        """Run the node's stage and return its record."""
        runtime, run = self._runtime, self._run
        started_at, work = self._progress.now(), self._work(node, stage_id)
        self._recorder.stage_usage = Usage()
        context, scope = runtime.context(), replace(self._scope, stage_id=stage_id)
        consumed: list[str] = []
        try:
            with context.govern(rules), context.work_for(scope), runtime.tools_bound(node):
                consumed += _consumed(node, run["artifacts"])
                ended = stage_kinds.run(work)
        except Exception as error:
            if not runtime.is_failure(error):
                raise
            ended = failed(getattr(error, "message", None) or str(error))
        return stage_record(
            node,
            ended,
            id=stage_id,
            started_at=started_at,
            finished_at=self._progress.now(),
            usage=self._recorder.stage_usage.as_dict(),
            consumed_artifact_ids=consumed,
            metadata=stage_metadata(node, policy, ended),
        )

    def _work(self, node: Node, stage_id: str) -> Work:
        run = self._run
        if self._contracts is None:
            self._contracts = self._read_contracts()
        return Work(
            runtime=self._runtime,
            node=node,
            task=run["task"],
            artifacts=run["artifacts"],
            transcript=run["transcript"],
            run_id=run["id"],
            stage_id=stage_id,
            session=run_session(node, run["id"]),
            contracts=contracts_for(node, self._contracts),
            execution=run["execution"],
        )

    def _read_contracts(self) -> list[Dict]:
        """Return the contracts of all nodes; each reads its file under its own rules."""
        contracts, context = [], self._runtime.context()
        for id in sorted(self._graph["nodes"]):
            node = self._node(id)
            if node["verify"] is not None:
                with context.govern(self._rules(node, stage_policy(BUILT_IN, self._graph, node))):
                    contracts += read_contracts({id: node}, self._runtime.read_text)
        return contracts

    def _replayed(self, node: Node, stage_id: str, replay: Replay) -> StageRecord:
        """Return the record of the node's stage from the replayed run."""
        now = self._progress.now()
        return {**replay.take(node["id"]), "id": stage_id, "started_at": now, "finished_at": now}


def _consumed(node: Node, artifacts: Sequence[Artifact]) -> list[str]:
    """Return the ids of the artifacts that a node sees, by its context policy alone."""
    return [artifact["id"] for artifact in select(artifacts, read_context_policy(node["context_policy"]))]
