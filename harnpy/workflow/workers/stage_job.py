"""A node as a worker's job. Spec: 07 §11.2–11.3, 08 §13.1, §13.3."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.agent.workers.carry import FORK, RESET
from harnpy.agent.workers.worker import DELEGATED_STAGE, STAGE, Outcome
from harnpy.workflow.stages.stage import run_stage
from harnpy.workflow.stages.stage_kinds import run
from harnpy.workflow.stages.stage_session import StageSession, worker_session
from harnpy.workflow.stages.verification_contracts import read_contracts
from harnpy.workflow.stages.work import Work
from harnpy.workflow.workers.carried import carried_artifacts, carried_transcript

if TYPE_CHECKING:
    from harnpy.agent.runtime import Runtime
    from harnpy.agent.workers.worker import Worker
    from harnpy.reading.dicts import Dict
    from harnpy.workflow.graph.graph_types import Node
    from harnpy.workflow.stages.work import Ended


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
        is_fork = worker.restarted and worker.carry.transcript_mode == FORK
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
        if worker.restarted and worker.carry.transcript_mode == RESET:
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
        )
        return run_stage(work) if delegated else run(work)

    def _contracts(self) -> list[Dict]:
        return read_contracts({self._node["id"]: self._node}, self._runtime.read_text)


def _session_of(worker: Worker, node: Node) -> StageSession:
    """Return the session of the delegated stage, else that of the node."""
    delegated = worker.config.get("session_id")
    if delegated:
        return StageSession(delegated, given=worker.config.get("stored", True))
    return worker_session(node, worker.id)
