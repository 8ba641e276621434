"""A stage as a worker's job. Spec: 07 §11.2–11.3, 08 §13.1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.agent.workers.carry import FORK, INHERIT, RESET, carried_policies, forked, read_carry
from harnpy.agent.workers.requested import requested_policies
from harnpy.agent.workers.worker import DELEGATED_STAGE, STAGE, Outcome, read_execution, read_request
from harnpy.llm.errors import MisuseError
from harnpy.session.transcripts import is_transcript
from harnpy.workflow.artifacts.artifact import read_artifacts
from harnpy.workflow.artifacts.selection import read_context_policy, select
from harnpy.workflow.stages.contracts import read_contracts
from harnpy.workflow.stages.kinds import run
from harnpy.workflow.stages.stage import read_stage_node, run_stage
from harnpy.workflow.stages.work import Work

if TYPE_CHECKING:
    from harnpy.agent.runtime import Runtime
    from harnpy.agent.workers.registry import Workers
    from harnpy.agent.workers.worker import Worker
    from harnpy.workflow.stages.work import Ended

    Dict = dict[str, Any]

CALLER = "spawn_agent"
NODE = "stage"


def spawn_agent(runtime: Runtime, workers: Workers, config: Any) -> Worker:
    """The worker that a config describes. Raises `MisuseError` and `OptionError`."""
    if not isinstance(config, dict):
        raise MisuseError(f"{CALLER}: config must be a dict")
    options = runtime.models.options(config)
    task = options.string("task") or ""
    if not task.strip():
        raise MisuseError(f"{CALLER}: config.task is required")
    carry, node = read_carry(options.value("carry"), CALLER), _node(config)
    policies = requested_policies(config.get("policy"), config.get("tools"), CALLER)
    policies += carried_policies(config.get("carry"), CALLER)
    transcript = config.get("transcript")
    if transcript is not None and not is_transcript(transcript):
        raise MisuseError(f"{CALLER}: transcript must be a transcript or nil")
    artifacts = read_artifacts(config.get("artifacts"), runtime.sessions.effects)
    return workers.spawn(
        STAGE,
        task,
        name=options.string("name") or "worker",
        config={"node": node, "artifacts": artifacts, "transcript": transcript},
        request=read_request(task, node["system"], node["metadata"] or {}),
        carry=carry,
        policies=policies,
        execution=read_execution(options.value("execution"), CALLER),
        audit=options.value("audit"),
        caller=CALLER,
    )


def _node(config: Dict) -> Dict:
    """The node to run, with the config's permissions."""
    if config.get("graph") is not None:
        raise MisuseError(
            f"{CALLER}: workflow graphs are not supported yet: they will come with a later release; "
            "give `node`, a single stage"
        )
    given = config.get("node")
    if given is None:
        raise MisuseError(f"{CALLER}: config requires either graph or node")
    node = read_stage_node(given, NODE)
    permissions = config.get("permissions")
    if permissions is None:
        return node
    policy = node["model_policy"] or {}
    inner = policy.get("permissions")
    if isinstance(inner, dict) and isinstance(permissions, dict):
        permissions = {**inner, **permissions}
    return {**node, "model_policy": {**policy, "permissions": permissions}}


class StageJob:
    """A turn of the node, in a session of the worker's own unless the node names one.

    A worker that a stage of a workflow has delegated to has ``session_id``, ``stored``, ``contracts`` and the
    ids of the run in its config, and does the stage whatever the node's kind.
    """

    def __init__(self, runtime: Runtime, worker: Worker) -> None:
        self._runtime = runtime
        self._config = worker.config
        self._node: Dict = worker.config["node"]
        own = f"worker_session_{worker.id}_{self._node['id']}"
        self.session_id: str = worker.config.get("session_id") or _named_session(self._node) or own

    def run(self, worker: Worker) -> Outcome:
        started_from = self._begin(worker)
        ended = self._turn(worker)
        transcript = ended.transcript
        if started_from is not None and transcript is not None:
            transcript = {**transcript, "id": started_from["id"], "metadata": started_from["metadata"]}
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

    def _turn(self, worker: Worker) -> Ended:
        node, config = self._node, self._config
        delegated = worker.mode == DELEGATED_STAGE
        contracts = config["contracts"] if delegated else self._contracts()
        work = Work(
            runtime=self._runtime,
            node=node,
            task=worker.task,
            artifacts=self._inputs(worker),
            transcript=worker.transcript if worker.restarted else config.get("transcript"),
            run_id=config.get("run_id") or worker.id,
            stage_id=config.get("stage_id") or f"{worker.id}:{node['id']}:{len(worker.history)}",
            session_id=self.session_id,
            stored=config.get("stored", True),
            contracts=contracts,
            execution=worker.execution,
        )
        return run_stage(work) if delegated else run(work)

    def _contracts(self) -> list[Dict]:
        graph = {"nodes": {self._node["id"]: self._node}}
        return read_contracts(graph, self._runtime.files, self._runtime.sessions.effects.parse_json)

    def _begin(self, worker: Worker) -> Dict | None:
        """Let the session hold what the run goes on from; the transcript under its new id, if it gets one."""
        sessions, mode = self._runtime.sessions, worker.carry.transcript_mode
        restarted = worker.restarted
        if restarted and mode == RESET:
            if sessions.exists(self.session_id):
                sessions.reset(self.session_id)
            return None
        former = worker.transcript if restarted else self._config.get("transcript")
        if former is None:
            return None
        if restarted and mode == FORK:
            former = forked(former, self._runtime.sessions.effects.new_id())
        if not sessions.exists(self.session_id):
            sessions.open(self.session_id)
            sessions.store_transcript(self.session_id, former)
        return former if restarted and mode == FORK else None

    def _inputs(self, worker: Worker) -> list[Dict]:
        """The artifacts to work with: the last run's, unless they aren't carried over, else the config's."""
        configured: list[Dict] = self._config["artifacts"]
        if worker.carry.artifact_mode != INHERIT:
            return configured
        policy = worker.carry.context_policy
        last = worker.artifacts
        if policy is not None:
            last = select(last, read_context_policy(policy))
        return last or configured


def _named_session(node: Dict) -> str | None:
    named = (node["model_policy"] or {}).get("session_id")
    return named if isinstance(named, str) and named.strip() else None
