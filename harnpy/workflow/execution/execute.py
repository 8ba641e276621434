"""Carrying out a graph: stage after stage, each on the record before the next begins. Spec: 08 §7.

`Ready` says which node comes next, `kinds` what a node does, the `RunWriter` keeps the record in its file.
Whatever ends the run early, also a deadline or a crash, leaves the last checkpoint there, to resume from.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harnpy.agent.rules.ambient import place_of
from harnpy.agent.workflow_scope import WorkflowScope
from harnpy.llm.errors import MisuseError
from harnpy.session.effects import rfc3339
from harnpy.workflow.artifacts.artifact import read_artifacts
from harnpy.workflow.artifacts.selection import read_context_policy, select
from harnpy.workflow.execution.beginning import begin_run, mutation_session, replay_of, run_metadata
from harnpy.workflow.execution.options import CALLER, read_options
from harnpy.workflow.execution.ready import Ready
from harnpy.workflow.execution.recorder import RunRecorder, Usage
from harnpy.workflow.execution.stage_records import ERROR, failed, stage_metadata, stage_record
from harnpy.workflow.execution.stage_sessions import close_minted, session_of
from harnpy.workflow.graph.normalise import normalise_graph
from harnpy.workflow.graph.policies import BUILT_IN, stage_approval, stage_policy, with_granted_tools
from harnpy.workflow.graph.validate import validate
from harnpy.workflow.records.files import default_path
from harnpy.workflow.records.fixture import fixture_of
from harnpy.workflow.records.record import (
    FINALIZE,
    STAGE_COMPLETE,
    START,
    new_checkpoint,
    new_transition,
)
from harnpy.workflow.records.writer import RunWriter
from harnpy.workflow.stages import kinds
from harnpy.workflow.stages.contracts import contracts_for, read_contracts
from harnpy.workflow.stages.work import Work

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harnpy.agent.rules.ambient import Rules
    from harnpy.agent.rules.policy import Policy
    from harnpy.agent.runtime import Runtime
    from harnpy.llm.options import Options
    from harnpy.workflow.execution.options import RunOptions
    from harnpy.workflow.execution.replay import Replay

    Dict = dict[str, Any]

COMPLETED, PAUSED = "completed", "paused"


def execute(runtime: Runtime, task: str, graph: Any, artifacts: Any, options: Options) -> Dict:
    """Run a graph, whose functions are Python ones; the result dict of 08 §7.1.

    Raises `MisuseError` and `OptionError` for what can't be run, and whatever ends the task.
    """
    if graph is None:
        raise MisuseError(f"{CALLER}: missing workflow")
    effects = runtime.sessions.effects
    normal = normalise_graph(graph, effects)
    validation = validate(normal)
    if validation["errors"]:
        raise MisuseError(f"{CALLER}: invalid workflow: {'; '.join(validation['errors'])}")
    inputs = read_artifacts(artifacts, effects)
    return Execution(runtime, task, normal, inputs, read_options(options), validation).run()


class Execution:
    """One run of a graph, or as much of it as its steps allow."""

    def __init__(
        self,
        runtime: Runtime,
        task: str,
        graph: Dict,
        artifacts: Sequence[Dict],
        options: RunOptions,
        validation: Dict,
    ) -> None:
        self._runtime = runtime
        self._graph = graph
        self._options = options
        effects = self._effects = runtime.sessions.effects
        ambient = runtime.ambient()
        self._replay = replay_of(options, effects)
        run = self._run = begin_run(task, graph, artifacts, options, effects)
        mutation = mutation_session(run["id"], options, ambient, effects.new_id())
        run["metadata"] = run_metadata(run, graph, options, mutation, validation, self._replay)
        self._ready = Ready(graph, options.steps(graph), run["pending_nodes"], run["completed_nodes"])
        self._recorder = RunRecorder(runtime, run)
        outer = ambient.workflow
        self._scope = WorkflowScope(
            workflow_id=graph["id"],
            run_id=run["id"],
            mutation=mutation,
            recorders=(self._recorder, *(outer.recorders if outer else ())),
            skills=options.skills,
            skill_match=options.skill_match,
        )
        path = options.persist_path or options.resume_path or default_path(run["id"], effects)
        self._writer = RunWriter(run, path, effects, runtime.when_idle)
        self._contracts: list[Dict] | None = None

    def run(self) -> Dict:
        with self._installed():
            self._checkpoint(START)
            try:
                while (id := self._next()) is not None:
                    self._turn(id)
            finally:
                self._writer.catch_up()
            self._finish()
        run = self._run
        return {
            "status": run["status"],
            "run": run,
            "artifacts": run["artifacts"],
            "transcript": run["transcript"],
            "path": self._writer.path,
        }

    @contextmanager
    def _installed(self) -> Iterator[None]:
        """The run's mutation session, skills and approval policy are in force inside the block."""
        ambient = self._runtime.ambient()
        rules = ambient.rules.below(approval=self._options.approval)
        place = ambient.work_at(place_of(self._run["execution"]))
        with ambient.govern(rules), ambient.work_for(self._scope), place, self._recorder.listening():
            yield

    def _next(self) -> str | None:
        """The node whose turn it is."""
        if not self._ready and self._replay:  # the replayed run was resumed when it was completed
            self._ready.add(self._graph["entry"])
        return self._ready.take()

    # One turn.

    def _turn(self, id: str) -> None:
        node = self._node(id)
        run, stages = self._run, self._run["stages"]
        stage_id = f"{run['id']}:{id}:{len(stages) + 1}"
        policy = stage_policy(BUILT_IN, self._graph, node)
        rules = self._rules(node, policy)
        if self._replay is None:
            stage = self._worked(node, stage_id, policy, rules)
        else:
            stage = self._replayed(node, stage_id, self._replay)
        self._enter(stage)
        self._checkpoint(STAGE_COMPLETE)

    def _node(self, id: str) -> Dict:
        """The node as it is run: with the options' values and only the tools that it may use."""
        node = self._graph["nodes"].get(id)
        if node is None:
            raise MisuseError(f"{CALLER}: missing node {id}")
        return with_granted_tools(self._options.filled(node))

    def _rules(self, node: Dict, policy: Policy) -> Rules:
        rules = self._runtime.ambient().rules
        return rules.below(policy, stage_approval(None, self._graph, node))

    def _worked(self, node: Dict, stage_id: str, policy: Policy, rules: Rules) -> Dict:
        """The record of the node's stage, which is carried out."""
        runtime, run = self._runtime, self._run
        started_at, work = self._now(), self._work(node, stage_id)
        self._recorder.stage_usage = Usage()
        ambient, scope = runtime.ambient(), replace(self._scope, stage_id=stage_id)
        consumed: list[str] = []
        try:
            with ambient.govern(rules), ambient.work_for(scope), runtime.tools_bound(node):
                consumed += _consumed(node, run["artifacts"])
                ended = kinds.run(work)
        except Exception as error:
            if not runtime.is_failure(error):
                raise
            ended = failed(getattr(error, "message", None) or str(error))
        metadata = stage_metadata(node, policy, ended)
        usage = self._recorder.stage_usage.as_dict()
        stage = {"id": stage_id, "started_at": started_at, "finished_at": self._now(), "usage": usage}
        return stage_record(node, ended, consumed_artifact_ids=consumed, metadata=metadata, **stage)

    def _work(self, node: Dict, stage_id: str) -> Work:
        run = self._run
        if self._contracts is None:
            parse = self._effects.parse_json
            self._contracts = read_contracts(self._graph, self._runtime.files, parse)
        session = session_of(node, run["id"])
        return Work(
            runtime=self._runtime,
            node=node,
            task=run["task"],
            artifacts=run["artifacts"],
            transcript=run["transcript"],
            run_id=run["id"],
            stage_id=stage_id,
            session_id=session.id,
            stored=session.explicit,
            contracts=contracts_for(node, self._contracts),
            execution=run["execution"],
        )

    def _replayed(self, node: Dict, stage_id: str, replay: Replay) -> Dict:
        """The record of the node's stage, as the replayed run has it."""
        now = self._now()
        return {**replay.take(node["id"]), "id": stage_id, "started_at": now, "finished_at": now}

    def _enter(self, stage: Dict) -> None:
        """A stage has ended: the run goes on from it."""
        run, ids = self._run, {key: stage[key] for key in ("consumed_artifact_ids", "produced_artifact_ids")}
        run["artifacts"] += stage["artifacts"]
        if stage["transcript"] is not None and stage["branch"] != ERROR:
            run["transcript"] = stage["transcript"]
        run["stages"].append(stage)
        for edge in self._ready.complete(stage["node_id"], stage["branch"]):
            transition = new_transition(
                self._effects,
                from_stage_id=stage["id"],
                from_node_id=stage["node_id"],
                to_node_id=edge["to"],
                branch=edge["branch"],
                **ids,
            )
            run["transitions"].append(transition)

    # The record.

    def _finish(self) -> None:
        run = self._run
        run["status"] = PAUSED if self._ready else COMPLETED
        run["finished_at"] = self._now()
        run["replay_fixture"] = fixture_of(run, self._effects)
        self._checkpoint(FINALIZE)
        if run["status"] == COMPLETED:
            close_minted(self._runtime.sessions, self._graph, run["id"])

    def _checkpoint(self, reason: str) -> None:
        """Let the file hold where the run stands."""
        run, stages = self._run, self._run["stages"]
        checkpoint = new_checkpoint(
            self._effects,
            ready_nodes=self._ready.pending,
            completed_nodes=self._ready.completed,
            last_stage_id=stages[-1]["id"] if stages else None,
            reason=reason,
        )
        run["checkpoints"].append(checkpoint)
        run["pending_nodes"] = checkpoint["ready_nodes"]
        run["completed_nodes"] = checkpoint["completed_nodes"]
        run["usage"] = self._recorder.usage.as_dict()
        if reason == FINALIZE:
            self._writer.save()
        else:
            self._writer.checkpoint()

    def _now(self) -> str:
        return rfc3339(self._effects.now())


def _consumed(node: Dict, artifacts: Sequence[Dict]) -> list[str]:
    """The ids of what a node gets to see, by its context policy alone."""
    return [artifact["id"] for artifact in select(artifacts, read_context_policy(node["context_policy"]))]
