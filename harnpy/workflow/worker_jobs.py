"""Workers whose job is a node or a whole graph: what `spawn_agent` starts.

Spec: 07 §11.2–11.3, 08 §13.1, §13.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.agent.rules.command_policy import (
    command_policy_among,
    given_command_policy,
    without_command_policy,
)
from harnpy.agent.worker import (
    CARRY_FORK,
    CARRY_INHERIT,
    CARRY_RESET,
    DELEGATED_STAGE,
    STAGE,
    WORKFLOW,
    Outcome,
    carried_policies,
    forked_transcript,
    read_carry,
    read_execution,
    read_request,
    requested_policies,
)
from harnpy.faults import MisuseError
from harnpy.session.transcript_operations import is_transcript
from harnpy.workflow.artifacts import read_artifacts, read_context_policy, select_artifacts
from harnpy.workflow.execution.execute import execute
from harnpy.workflow.execution.stage import read_stage_node, run_stage
from harnpy.workflow.execution.stage_kinds import run_node
from harnpy.workflow.execution.stage_work import (
    WORKER_SESSION,
    StageSession,
    Work,
    worker_session,
    worker_session_id,
)
from harnpy.workflow.execution.verification import read_contracts
from harnpy.workflow.graph import normalise_graph

if TYPE_CHECKING:
    from harnpy.agent.runtime import Runtime
    from harnpy.agent.worker import Worker
    from harnpy.agent.workers import Workers
    from harnpy.formats.dicts import Dict
    from harnpy.workflow.artifacts import Artifact
    from harnpy.workflow.execution.stage_work import Ended
    from harnpy.workflow.graph_shapes import Graph, Node
    from harnpy.world import World

# What a workflow worker carries over to its next task. Spec: 07 §11.2.


def carried_artifacts(worker: Worker) -> list[Artifact]:
    """Return the artifacts to work with: the last run's if they are carried over, else the config's."""
    configured: list[Artifact] = worker.config["artifacts"]
    if worker.carry.artifact_mode != CARRY_INHERIT:
        return configured
    policy = worker.carry.context_policy
    last: list[Artifact] = worker.artifacts
    if policy is not None:
        last = select_artifacts(last, read_context_policy(policy))
    return last or configured


def carried_transcript(worker: Worker, world: World) -> Dict | None:
    """Return the transcript to continue, according to the worker's mode."""
    if not worker.restarted:
        configured: Dict | None = worker.config.get("transcript")
        return configured
    former, mode = worker.transcript, worker.carry.transcript_mode
    if former is None or mode == CARRY_RESET:
        return None
    return forked_transcript(former, world.ids.new()) if mode == CARRY_FORK else former


class StageJob:
    """Runs the node, in a session of the worker's own unless the node names one.

    If a stage of a workflow was delegated to the worker, its config also has ``session_id``, ``stored``,
    ``contracts`` and the ids of the run, and the node runs as a stage whatever its kind.
    """

    def __init__(self, runtime: Runtime, worker: Worker) -> None:
        self._runtime = runtime
        self._config = worker.config
        self._node: Node = worker.config["node"]
        self._session = _session_of(worker, self._node)
        self.session_id = self._session.id

    def run(self, worker: Worker) -> Outcome:
        former = carried_transcript(worker, self._runtime.sessions.world)
        self._begin(worker, former)
        ended = self._turn(worker, former)
        transcript = ended.transcript
        is_fork = worker.restarted and worker.carry.transcript_mode == CARRY_FORK
        if is_fork and former is not None and transcript is not None:
            transcript = {**transcript, "id": former["id"], "metadata": former["metadata"]}
        result = {
            "status": "completed",
            "mode": STAGE,
            "task": worker.task,
            "result": ended.result,
            "artifacts": ended.artifacts,
            "transcript": transcript,
            "execution": worker.execution,
        }
        return Outcome(result, transcript, ended.artifacts)

    def _begin(self, worker: Worker, former: Dict | None) -> None:
        """Fill the session with what the run continues from."""
        sessions = self._runtime.sessions
        exists = sessions.exists(self.session_id)
        if worker.restarted and worker.carry.transcript_mode == CARRY_RESET:
            if exists:
                sessions.reset(self.session_id)
        elif former is not None and not exists:
            sessions.open(self.session_id)
            sessions.store_transcript(self.session_id, former)

    def _turn(self, worker: Worker, former: Dict | None) -> Ended:
        node, config = self._node, self._config
        delegated = worker.mode == DELEGATED_STAGE
        work = Work(
            runtime=self._runtime,
            node=node,
            task=worker.task,
            artifacts=carried_artifacts(worker),
            transcript=former,
            run_id=config.get("run_id") or worker.id,
            stage_id=config.get("stage_id") or f"{worker.id}:{node['id']}:{len(worker.history)}",
            session=self._session,
            contracts=config["contracts"] if delegated else self._contracts(),
            execution=worker.execution,
            turn_key=config.get("turn_key"),
        )
        return run_stage(work) if delegated else run_node(work)

    def _contracts(self) -> list[Dict]:
        return read_contracts({self._node["id"]: self._node}, self._runtime.read_text)


def _session_of(worker: Worker, node: Node) -> StageSession:
    """Return the session of the delegated stage, else that of the node."""
    delegated = worker.config.get("session_id")
    if delegated:
        return StageSession(delegated, given=worker.config.get("stored", True))
    return worker_session(node, worker.id)


class WorkflowJob:
    """Runs the graph; the next task resumes that run, unless the worker's settings say otherwise.

    Nodes that name no session use one of the worker's.
    """

    session_id = None

    def __init__(self, runtime: Runtime, worker: Worker) -> None:
        self._runtime = runtime
        graph: Graph = worker.config["graph"]
        nodes = {id: _with_session(node, worker.id) for id, node in graph["nodes"].items()}
        self._graph: Graph = {**graph, "nodes": nodes}

    def run(self, worker: Worker) -> Outcome:
        if worker.restarted and worker.carry.transcript_mode == CARRY_RESET:
            self._reset()
        options = self._runtime.models.options(self._options(worker))
        made = execute(self._runtime, worker.task, self._graph, carried_artifacts(worker), options)
        worker.child_run_id, worker.child_run_path = made["run"]["id"], made["path"]
        return Outcome(made, made["transcript"], made["artifacts"])

    def _options(self, worker: Worker) -> Dict:
        given: Dict = worker.config["options"]
        audit = {key: worker.audit[key] for key in ("mutation_scope", "approval_policy")}
        options = {
            "execution": worker.execution or None,
            "audit": {**audit, "parent_session_id": worker.audit["session_id"]},
            "transcript": carried_transcript(worker, self._runtime.sessions.world),
            **{key: value for key, value in given.items() if value is not None},
            "parent_worker_id": worker.id,
        }
        if worker.restarted:
            options |= self._resumption(worker)
        return options

    def _resumption(self, worker: Worker) -> Dict:
        """Return the options that a later task changes: it goes on in the worker's run, at the entry if that
        is completed, or starts one in a new file."""
        if worker.carry.resume_workflow and worker.child_run_path is not None:
            return {"resume_path": worker.child_run_path, "resume_run": None, "restart": True}
        return {"resume_path": None, "resume_run": None}

    def _reset(self) -> None:
        sessions = self._runtime.sessions
        for node in self._graph["nodes"].values():
            id = node["metadata"][WORKER_SESSION]
            if sessions.exists(id):
                sessions.reset(id)


def _with_session(node: Node, worker_id: str) -> Node:
    return {**node, "metadata": {WORKER_SESSION: worker_session_id(node, worker_id), **node["metadata"]}}


# Starting a worker from a config. Spec: 07 §11.2.


CALLER = "spawn_agent"
NODE = "stage"


def spawn_agent(runtime: Runtime, workers: Workers, config: Any) -> Worker:
    """Start the worker that a config describes. Raise `MisuseError` and `OptionError`."""
    if not isinstance(config, dict):
        raise MisuseError(f"{CALLER}: config must be a dict")
    options = runtime.models.options(config)
    task = options.string("task") or ""
    if not task.strip():
        raise MisuseError(f"{CALLER}: config.task is required")
    carry = read_carry(options.value("carry"), CALLER)
    given_command_policy(config, CALLER)
    mode, work, system, asked = _work(runtime, config)
    policies = requested_policies(without_command_policy(config.get("policy")), config.get("tools"), CALLER)
    policies += carried_policies(config.get("carry"), CALLER)
    transcript = config.get("transcript")
    if transcript is not None and not is_transcript(transcript):
        raise MisuseError(f"{CALLER}: transcript must be a transcript or nil")
    artifacts = read_artifacts(config.get("artifacts"), runtime.sessions.world)
    return workers.spawn(
        mode,
        task,
        name=options.string("name") or "worker",
        config={**work, "artifacts": artifacts, "transcript": transcript},
        request=read_request(task, system, asked),
        carry=carry,
        policies=policies,
        execution=read_execution(options.value("execution"), CALLER),
        audit=options.value("audit"),
        caller=CALLER,
    )


def _work(runtime: Runtime, config: Dict) -> tuple[str, Dict, str | None, Dict]:
    """Return the worker's mode and its work, then the system prompt and the metadata of its request."""
    if config.get("graph") is not None:
        graph = normalise_graph(config["graph"], runtime.sessions.world)
        nodes = {id: _with_rules(node, config) for id, node in graph["nodes"].items()}
        options = config.get("options")
        if options is not None and not isinstance(options, dict):
            raise MisuseError(f"{CALLER}: options must be a dict")
        work = {"graph": {**graph, "nodes": nodes}, "options": options or {}}
        return WORKFLOW, work, None, graph["metadata"]
    if config.get("node") is None:
        raise MisuseError(f"{CALLER}: config requires either graph or node")
    node = read_stage_node(config["node"], NODE)
    return STAGE, {"node": _with_rules(node, config)}, node["system"], node["metadata"]


def _with_rules(node: Node, config: Dict) -> Node:
    """Return the node with the config's permissions and command policy, beside which its own ones hold."""
    policy, permissions = node["model_policy"], config.get("permissions")
    inner = policy.get("permissions")
    if isinstance(inner, dict) and isinstance(permissions, dict):
        permissions = {**inner, **permissions}
    commands = None if command_policy_among(policy) is not None else command_policy_among(config)
    added = {"permissions": permissions, "command_policy": commands}
    given: Any = {key: value for key, value in added.items() if value is not None}
    return {**node, "model_policy": {**policy, **given}} if given else node
