"""The subagent node: a stage that is delegated to a worker. Spec: 08 §13.3."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.agent.workers.carry import Carry
from harnpy.agent.workers.requested import read_request
from harnpy.agent.workers.worker import DELEGATED_STAGE, RUNNING
from harnpy.faults import Interruption, MisuseError
from harnpy.workflow.stages import inputs
from harnpy.workflow.stages.result_checks import verified
from harnpy.workflow.stages.work import Ended

if TYPE_CHECKING:
    from harnpy.agent.workers.worker import Worker
    from harnpy.reading.dicts import Dict
    from harnpy.workflow.artifacts.artifact_types import Artifact
    from harnpy.workflow.stages.work import Work


KIND = "worker_result"
_PRIORITY = 95
#: Keys of a worker's result that the `worker_result` artifact leaves out, at any depth: they are stored
#: elsewhere. With prompts in it, each visit of a node would show the next one all former prompts.
_ELSEWHERE = ("transcript", "artifacts", "prompt", "rendered_context")


def run_subagent(work: Work) -> Ended:
    """Delegate the stage to a worker and wait for it. Raise whatever made its run fail."""
    worker = _employed(work)
    payload = _waited(work, worker)
    marks = {"worker_id": worker.id, "worker_name": worker.name, "delegated": True}
    artifacts = [inputs.marked(artifact, marks) for artifact in payload["artifacts"]]
    inner, handle = payload["result"], worker.handle()
    result = {**inner, **payload, "artifacts": artifacts, "worker": handle}
    artifacts = [*artifacts, _receipt(work, worker, payload, marks)]
    verification = verified(work.node, inner)
    return Ended(
        result, "subagent_completed", "success", artifacts, payload["transcript"], verification, handle
    )


def _employed(work: Work) -> Worker:
    node = work.node
    metadata = node["metadata"]
    name = metadata.get("worker_name")
    return work.runtime.workers().spawn(
        DELEGATED_STAGE,
        work.task,
        name=name if isinstance(name, str) and name.strip() else node["id"],
        config={
            "node": node,
            "artifacts": list(work.artifacts),
            "contracts": list(work.contracts),
            "run_id": work.run_id,
            "stage_id": work.stage_id,
            "session_id": work.session.id,
            "stored": work.session.given,
        },
        request=read_request(work.task, node["system"], metadata),
        carry=Carry(),
        execution={**(work.execution or {})},
        caller=f"workflow stage {node['id']}",
    )


def _waited(work: Work, worker: Worker) -> Dict:
    """Return the worker's result. The worker is closed if the stage is abandoned."""
    workers = work.runtime.workers()
    try:
        workers.wait(worker, cycle=True)
    except (Exception, Interruption):
        if worker.status == RUNNING:
            workers.close(worker)
        raise
    if worker.result is None:
        raise MisuseError(worker.error or f"worker {worker.id} is {worker.status}")
    return worker.result


def _receipt(work: Work, worker: Worker, payload: Dict, marks: Dict) -> Artifact:
    """Return the artifact that says which worker did it, with its result."""
    produced = inputs.ids(payload["artifacts"])
    data = {
        "worker_id": worker.id,
        "worker_name": worker.name,
        "request": worker.request,
        "provenance": worker.provenance(),
        "execution": worker.execution,
        "payload": {**_compacted(payload), "payload_compacted": True},
        "produced_artifact_ids": produced,
    }
    return inputs.produced(
        work.node,
        work.runtime.sessions.world,
        kind=KIND,
        title=f"worker result {worker.name}",
        priority=_PRIORITY,
        data=data,
        lineage=produced,
        metadata=marks,
    )


def _compacted(payload: Dict) -> Dict:
    kept = {key: value for key, value in payload.items() if key not in _ELSEWHERE}
    return {key: _compacted(value) if isinstance(value, dict) else value for key, value in kept.items()}
