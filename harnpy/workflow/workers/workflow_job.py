"""A whole graph as a worker's job. Spec: 07 §11.2–11.3, 08 §13.1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.agent.workers.carry import RESET
from harnpy.agent.workers.worker import Outcome
from harnpy.workflow.execution.execute import execute
from harnpy.workflow.stages.stage_session import WORKER_SESSION, worker_session_id
from harnpy.workflow.workers.carried import carried_artifacts, carried_transcript

if TYPE_CHECKING:
    from harnpy.agent.runtime import Runtime
    from harnpy.agent.workers.worker import Worker
    from harnpy.reading.dicts import Dict
    from harnpy.workflow.graph.graph_types import Graph, Node


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
        if worker.restarted and worker.carry.transcript_mode == RESET:
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
        """Return the options that a later task changes: it resumes the worker's run, or starts one in a new
        file."""
        if worker.carry.resume_workflow and worker.child_run_path is not None:
            return {"resume_path": worker.child_run_path, "resume_run": None}
        return {"resume_path": None, "resume_run": None}

    def _reset(self) -> None:
        sessions = self._runtime.sessions
        for node in self._graph["nodes"].values():
            id = node["metadata"][WORKER_SESSION]
            if sessions.exists(id):
                sessions.reset(id)


def _with_session(node: Node, worker_id: str) -> Node:
    return {**node, "metadata": {WORKER_SESSION: worker_session_id(node, worker_id), **node["metadata"]}}
