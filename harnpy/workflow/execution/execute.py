"""Running a graph: stage after stage, each on record before the next begins. Spec: 08 §7.

`Ready` decides which node comes next, `stage_kinds` runs it, `Progress` keeps the record. However a run ends
early, by a deadline or a crash too, its last checkpoint stays, to resume from.
"""

from __future__ import annotations

import sys
from collections import deque
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harnpy import telemetry
from harnpy.agent.context import WorkflowScope
from harnpy.agent.rules.policy import Policy, policy_dict, read_policy
from harnpy.faults import MisuseError
from harnpy.workflow.artifacts import read_artifacts, select_artifacts
from harnpy.workflow.execution import stage_kinds
from harnpy.workflow.execution.changes import StagesChanged, changed, check_path, digest, stages_of, text_of
from harnpy.workflow.execution.retries import joined, pause_before_next
from harnpy.workflow.execution.run_options import CALLER, DETERMINISTIC, Replay, RunOptions, read_options
from harnpy.workflow.execution.run_progress import (
    COMPLETED,
    ERROR,
    FAILED,
    Progress,
    Ready,
    RunRecorder,
    copied_usage,
    failed_stage,
    no_usage,
    stage_metadata,
    stage_record,
)
from harnpy.workflow.execution.stage_work import Work, close_minted, run_session
from harnpy.workflow.execution.verification import contracts_for, read_contracts
from harnpy.workflow.graph import NormalGraph, normalise_graph, normalise_node
from harnpy.workflow.graph_validation import (
    BUILT_IN_CEILING,
    has_rules,
    stage_approval,
    stage_policy,
    validate_graph,
    with_granted_tools,
)
from harnpy.workflow.records.observability import IdentityMemo
from harnpy.workflow.records.record import RUNNING, new_run, normalised_run
from harnpy.workflow.records.record_files import RunWriter, load_run, new_path
from harnpy.workflow.records.record_shapes import data_parts
from harnpy.world.clock import rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from harnpy.agent.context import AgentContext, Rules
    from harnpy.agent.rules.policy import CapabilityPolicy
    from harnpy.agent.runtime import Runtime
    from harnpy.formats.dicts import Dict, Options
    from harnpy.workflow.artifacts import Artifact
    from harnpy.workflow.execution.changes import Begun
    from harnpy.workflow.graph_shapes import Graph, Node
    from harnpy.workflow.records.record_shapes import RunRecord, StageRecord
    from harnpy.world import World

#: The statuses of runs with nothing left to do.
_OVER = (COMPLETED, FAILED)

# The start of a run: a new or resumed record, and its mutation session. Spec: 08 §7.8.


def begin_run(
    task: str,
    graph: Graph,
    artifacts: Sequence[Artifact],
    options: RunOptions,
    former: RunRecord | None,
    begun: Dict,
    world: World,
) -> RunRecord:
    """Return the record of a run that is about to start, or to continue the ``former`` one."""
    lineage = options.lineage
    run = former or new_run(begun["id"], world, started_at=begun["started_at"])
    known = {artifact["id"] for artifact in run["artifacts"]}
    return {
        **run,
        "workflow_id": graph["id"],
        "workflow_name": graph["name"],
        "task": task,
        "status": RUNNING,
        "finished_at": None,
        "parent_run_id": lineage.get("parent_run_id") or run["parent_run_id"],
        "root_run_id": _root(run, lineage, is_new=former is None),
        "pending_nodes": [] if _lacks_only_its_end(former) else run["pending_nodes"] or [graph["entry"]],
        "artifacts": run["artifacts"] + [made for made in artifacts if made["id"] not in known],
        "transcript": options.transcript or run["transcript"],
        "policy": {**policy_dict(BUILT_IN_CEILING)},
        "execution": options.execution or run["execution"],
        "replay_fixture": None,
    }


def _lacks_only_its_end(former: RunRecord | None) -> bool:
    """Return True if a run stopped between its last stage and its end, which could not be written."""
    if former is None or former["pending_nodes"]:
        return False
    return former["status"] == RUNNING and bool(former["stages"])


def _root(run: RunRecord, lineage: dict[str, str], is_new: bool) -> str | None:
    root = run["root_run_id"]
    return lineage.get("root_run_id") or root if is_new else root


def replay_of(options: RunOptions, world: World) -> Replay | None:
    """Return the stages to replay, if the run is a replay. Raise `MisuseError`."""
    mode = options.replay_mode
    if mode is None:
        return None
    run = _record(options.replay_run, options.replay_path, world)
    if run is None:
        raise MisuseError("replay_mode requires replay_run or replay_path")
    if mode != DETERMINISTIC:
        raise MisuseError(f'workflow_execute: replay_mode must be "{DETERMINISTIC}" (got "{mode}")')
    return Replay(run)


def _record(given: Any, path: str | None, world: World) -> RunRecord | None:
    if given is not None:
        return normalised_run(given, world)
    return None if path is None else load_run(path, world)


def mutation_session(run_id: str, options: RunOptions, context: AgentContext, new_id: str) -> Dict:
    """Return the mutation session: on whose behalf the run changes things (08 §8.1)."""
    audit, worker, outer = options.audit, context.worker, context.workflow
    return {
        "session_id": audit["session_id"] or f"session_{new_id}",
        "parent_session_id": audit["parent_session_id"] or (outer and outer.mutation["session_id"]),
        "run_id": audit["run_id"] or run_id,
        "worker_id": audit["worker_id"] or (worker and worker.id) or options.lineage.get("parent_worker_id"),
        "execution_kind": audit["execution_kind"] or "workflow",
        "mutation_scope": audit["mutation_scope"],
        "approval_policy": audit["approval_policy"],
    }


def run_metadata(
    run: RunRecord, graph: Graph, options: RunOptions, mutation: Dict, validation: Dict, replay: Replay | None
) -> Dict:
    """Return the metadata that the executor records for a run (08 §7.8)."""
    trigger = options.trigger_event or {}
    optional = {
        "execution": run["execution"],
        "workflow_metadata": graph["metadata"] or None,
        "trigger_event": options.trigger_event,
        "trace_id": trigger.get("trace_id"),
        "replay_mode": options.replay_mode,
        "replayed_from": None if replay is None else replay.source_id,
        "delegated": options.delegated,
        **options.lineage,
    }
    return {
        **run["metadata"],
        **{key: value for key, value in optional.items() if value is not None},
        "effective_policy": policy_dict(effective_policy(graph)),
        "mutation_session": mutation,
        "workflow_version": graph["version"],
        "validation": validation,
        "max_steps": options.steps(graph, replay),
        "resumed": bool(options.resume_run is not None or options.resume_path),
        "root_run_id": run["root_run_id"],
    }


def effective_policy(graph: Graph) -> Policy:
    """Return what a normalised graph may do under the built-in ceiling. Raise `PolicyError`."""
    return BUILT_IN_CEILING.intersect(read_policy(graph["capability_policy"]))


def execute(runtime: Runtime, task: str, graph: Any, artifacts: Any, options: Options) -> Dict:
    """Run a graph, whose functions are Python callables; return the result dict of 08 §7.1.

    Raise `MisuseError` and `OptionError` for what can't run, and whatever ends the task.
    """
    if graph is None:
        raise MisuseError(f"{CALLER}: missing workflow")
    world = runtime.sessions.world
    normal = normalise_graph(graph, world)
    validation = validate_graph(normal)
    if validation["errors"]:
        raise MisuseError(f"{CALLER}: invalid workflow: {'; '.join(validation['errors'])}")
    inputs, read = read_artifacts(artifacts, world), read_options(options)
    former = _record(read.resume_run, read.resume_path, world)
    if former is not None and former["status"] in _OVER and not read.restart:
        # Its process may have been killed right after the record was written.
        return _ended(former, normal, runtime)
    return Execution(runtime, task, normal, inputs, read, former, validation).run()


def _ended(run: RunRecord, graph: Graph, runtime: Runtime) -> Dict:
    """Close what a run that is over doesn't need any longer, and return the result of the run."""
    if run["status"] in _OVER:
        close_minted(runtime.sessions, graph, run["id"])
    return {
        "status": run["status"],
        "error": run["metadata"].get("error") if run["status"] == FAILED else None,
        "run": run,
        "artifacts": run["artifacts"],
        "transcript": run["transcript"],
        "path": run["persisted_path"],
    }


class Execution:
    """One run of a graph, or as much of it as its steps allow."""

    def __init__(
        self,
        runtime: Runtime,
        task: str,
        graph: Graph,
        artifacts: Sequence[Artifact],
        options: RunOptions,
        former: RunRecord | None,
        validation: Dict,
    ) -> None:
        self._runtime = runtime
        self._graph = graph
        #: Parts of the graph that are known to be plain data.
        self._plain = set(graph.parts) if isinstance(graph, NormalGraph) else set[int]()
        self._said: IdentityMemo[Policy, CapabilityPolicy] = IdentityMemo()
        self._options = options
        world = self._world = runtime.sessions.world
        context = runtime.context()
        # A run inside a stage is part of that one's step.
        self._stages = runtime.stages if context.workflow is None else None
        self._replay = replay_of(options, world)
        begun = self._begun(former is None)
        run = self._run = begin_run(task, graph, artifacts, options, former, begun, world)
        lasting = [{**artifact, "created_at": None} for artifact in artifacts]
        given = {"task": task, "artifacts": lasting, "execution": run["execution"]}
        self._given = {} if self._stages is None else {key: digest(value) for key, value in given.items()}
        mutation = mutation_session(run["id"], options, context, begun["mutation"])
        run["metadata"] = run_metadata(run, graph, options, mutation, validation, self._replay)
        ready = Ready(graph, options.steps(graph, self._replay), run["pending_nodes"], run["completed_nodes"])
        path = options.persist_path or options.resume_path
        # A stage's own rules don't decide about the record of the run.
        files = world.held().files if path else world.held().state_files
        path = path or new_path(run["id"], world)
        self._recorder = RunRecorder(runtime, run)
        writer = RunWriter(run, path, world, files, self._plain)
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
        #: The nodes of the stages that the record of a durable run has, in order.
        self._path = deque(stage.id for stage in self._stages_begun())
        self._shared: tuple[Policy, Rules] | None = None

    def _begun(self, is_new: bool) -> Dict:
        """Return what is minted once for a run: its id, unless it continues another one, its time …"""
        world, stages = self._world, self._stages
        own = None if stages is None else stages.run_id

        def begin() -> Dict:
            id = own or (world.ids.new() if is_new else "")
            return {"id": id, "started_at": rfc3339(world.clock.now()), "mutation": world.ids.new()}

        if stages is None:
            return begin()
        begun = stages.step("begin", begin)
        return {**begun, "id": own or begun["id"]}  # a fork has the record of another run

    def run(self) -> Dict:
        self._check_changes()
        if self._stages is not None and self._stages.checked is not None:
            self._stages.checked()
        with (
            self._installed(),
            telemetry.run_span(self._graph["name"] or self._graph["id"], self._run["id"]) as span,
        ):
            with self._progress.saved():
                while (id := self._next()) is not None:
                    self._runtime.tasks.go_on()
                    self._turn(id)
                self._progress.end()
            span.set({"harn.status": self._run["status"]})
        return _ended(self._run, self._graph, self._runtime)

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
        if self._path:
            id: str = self._path.popleft()
            ready.take_again(id)
            return id
        if not ready and self._replay:  # the replayed run had been resumed after it was completed
            ready.add(self._graph["entry"])
        return ready.take()

    # One turn.

    def _turn(self, id: str) -> None:
        node, stage_id = self._node(id), self._progress.stage_id(id)
        policy, rules = self._ruled(node)
        if self._replay is None:
            stage = self._attempted(node, stage_id, policy, rules)
        else:
            stage = self._replayed(node, stage_id, self._replay)
        self._progress.add(stage)

    def _attempted(self, node: Node, stage_id: str, policy: Policy, rules: Rules) -> StageRecord:
        """Run the node's stage, as often as its retry policy says, and return its record."""
        key = f"stage:{node['id']}:{len(self._run['stages']) + 1}"
        attempts: list[StageRecord] = []
        while True:
            number = len(attempts) + 1
            step = key if number == 1 else f"{key}:attempt:{number}"

            def work(number: int = number, step: str = step) -> Dict:
                return self._worked(node, stage_id, policy, rules, number, step)

            output = self._step(step, node, work)
            attempts.append(output["stage"])
            again_at = output["again_at"]
            if again_at is None:
                return joined(attempts)
            self._runtime.tasks.sleep(max(0.0, again_at - self._world.clock.now()))

    def _node(self, id: str) -> Node:
        """Return the node as it runs: with the run's options and only the tools that it may use."""
        node = self._graph["nodes"].get(id)
        if node is None and self._stages is not None and id in self._stages.accepted:
            node = normalise_node({}, id)  # it has run, and is gone from the graph
        if node is None:
            raise MisuseError(f"{CALLER}: missing node {id}")
        return with_granted_tools(self._options.filled(node))

    def _ruled(self, node: Node) -> tuple[Policy, Rules]:
        """Return the policy and the rules of a node; all that have none of their own share the graph's."""
        shares = not has_rules(node)
        if shares and self._shared is not None:
            return self._shared
        policy = stage_policy(BUILT_IN_CEILING, self._graph, node)
        ruled = policy, self._rules(node, policy)
        if shares:
            self._shared = ruled
        return ruled

    def _as_dict(self, policy: Policy) -> CapabilityPolicy:
        """Return a policy as records have it; stages with the same one share it."""
        said = policy_dict(policy)
        parts = data_parts(said)
        if parts is not None:
            self._plain |= {id(said), *parts}
        return said

    def _rules(self, node: Node, policy: Policy) -> Rules:
        rules = self._runtime.context().rules.below(policy, stage_approval(None, self._graph, node))
        return rules.placed(self._runtime.workplace.real_root)

    def _worked(
        self, node: Node, stage_id: str, policy: Policy, rules: Rules, attempt: int, step: str
    ) -> Dict:
        """Run the node's stage once. Return its record, and when it is to be run again, if it is."""
        runtime = self._runtime
        started_at, work = self._progress.now(), self._work(node, stage_id, step)
        self._recorder.stage_usage = no_usage()
        context, scope = runtime.context(), replace(self._scope, stage_id=stage_id)
        consumed: list[str] = []
        try:
            span = telemetry.stage_span(node["id"], stage_id)
            with context.govern(rules), context.work_for(scope), runtime.tools_bound(node), span:
                consumed += _consumed(node, work.artifacts)
                ended = stage_kinds.run_node(work)
        except Exception as error:
            if not runtime.is_failure(error):
                raise
            text, after = getattr(error, "message", None) or str(error), getattr(error, "retry_after", None)
            ended = failed_stage(text, runtime.category(error), after)
        stage = stage_record(
            node,
            ended,
            id=stage_id,
            started_at=started_at,
            finished_at=self._progress.now(),
            usage=copied_usage(self._recorder.stage_usage),
            consumed_artifact_ids=consumed,
            metadata=stage_metadata(node, self._said.of(policy, self._as_dict), ended, self._plain),
        )
        failure, pause = ended.result, None
        if ended.branch == ERROR:
            category, after = failure["error_category"], failure["retry_after"]
            pause = pause_before_next(node["retry_policy"], attempt, category, after)
        return {
            "stage": stage,
            "again_at": None if pause is None else self._world.clock.now() + pause,
        }

    def _work(self, node: Node, stage_id: str, step: str) -> Work:
        run, session, turn_key = self._run, run_session(node, self._run["id"]), None
        if self._stages is not None:
            self._stages.prepare(session.id)
            turn_key = f"{run['id']}:{step}"
        if self._contracts is None:
            self._contracts = self._read_contracts()
        return Work(
            runtime=self._runtime,
            node=node,
            task=run["task"],
            artifacts=self._progress.artifacts,
            transcript=run["transcript"],
            run_id=run["id"],
            stage_id=stage_id,
            session=session,
            contracts=contracts_for(node, self._contracts),
            execution=run["execution"],
            turn_key=turn_key,
        )

    def _read_contracts(self) -> list[Dict]:
        """Return the contracts of all nodes; each reads its file under its own rules."""
        contracts, context = [], self._runtime.context()
        for id in sorted(self._graph["nodes"]):
            node = self._node(id)
            if node["verify"] is not None:
                with context.govern(self._rules(node, stage_policy(BUILT_IN_CEILING, self._graph, node))):
                    contracts += read_contracts({id: node}, self._runtime.read_text)
        return contracts

    # The steps of a durable run. Spec: 10 §C19.1.

    def _step(self, key: str, node: Node, work: Callable[[], Dict]) -> Dict:
        """Return what ``work()`` returns, which runs a stage; in a durable run as a step of that."""
        stages, run, recorder = self._stages, self._run, self._recorder
        if stages is None:
            return work()
        before = {part: len(run[part]) for part in _RECORDINGS}  # type: ignore[literal-required]
        text, inputs = text_of(node), self._inputs(node)
        has_run = False

        def run_stage() -> Dict:
            nonlocal has_run
            has_run = True
            output = work()
            made: Any = {part: run[part][count:] for part, count in before.items()}  # type: ignore[literal-required]
            made |= {"usage": copied_usage(recorder.usage), "hitl": run["metadata"].get("hitl")}
            return {**output, "recordings": made, "text": text, "inputs": inputs}

        output = stages.step(key, run_stage)
        if has_run:
            return output
        problem = None if output["again_at"] is not None else changed(output, text, inputs)
        if problem is not None and node["id"] not in stages.accepted:
            raise StagesChanged(run["id"], {node["id"]: problem})
        made = output["recordings"]
        for part in _RECORDINGS:
            run[part] += made[part]  # type: ignore[literal-required]
        recorder.usage = copied_usage(made["usage"])
        if made["hitl"] is not None:
            run["metadata"] = {**run["metadata"], "hitl": made["hitl"]}
        return output

    def _inputs(self, node: Node) -> Dict:
        """Return digests of what goes into a stage beside its node and what earlier stages came to."""
        policy = policy_dict(stage_policy(BUILT_IN_CEILING, self._graph, node))
        contracts = {id: each["verify"] for id, each in self._graph["nodes"].items() if each["verify"]}
        own = {id: verify for id, verify in contracts.items() if id == node["id"]}
        local = node["metadata"].get("workflow_verification_scope") == "local_only"
        approval, skills = self._graph["approval_policy"], self._options.skills
        return {
            **self._given,
            "contracts": digest(own if local else contracts),
            "policy": digest([policy, approval]),
            "skills": digest([skills, self._options.skill_match]),
        }

    def _stages_begun(self) -> list[Begun]:
        """Return the stages that the record of a durable run has, in order."""
        recorded = () if self._stages is None or self._replay else self._stages.recorded
        return stages_of(output for key, output in recorded if key.startswith("stage:"))

    def _check_changes(self) -> None:
        """Raise `StagesChanged` where this graph would run otherwise what has run."""
        stages, graph, run = self._stages, self._graph, self._run
        if stages is None or not self._path:
            return
        ready = Ready(graph, sys.maxsize, [graph["entry"]])

        def compare(id: str, output: Dict) -> str | None:
            node = self._node(id)
            return changed(output, text_of(node), self._inputs(node))

        check_path(run["id"], self._stages_begun(), ready, stages.accepted, compare)

    def _replayed(self, node: Node, stage_id: str, replay: Replay) -> StageRecord:
        """Return the record of the node's stage from the replayed run."""
        now = self._progress.now()
        return {**replay.take(node["id"]), "id": stage_id, "started_at": now, "finished_at": now}


#: What happens in stages and stands in the record of the run, each in a list.
_RECORDINGS = ("tool_recordings", "trace_spans", "hitl_questions")


def _consumed(node: Node, artifacts: Sequence[Artifact]) -> list[str]:
    """Return the ids of the artifacts that a node sees, by its context policy alone."""
    return [artifact["id"] for artifact in select_artifacts(artifacts, node["context_policy"])]
