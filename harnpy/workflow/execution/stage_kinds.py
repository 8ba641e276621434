"""The kinds of nodes, and what each does. Spec: 08 §7.3, §7.5, §13.3.

| kind                | module       | outcome                               | branch               |
|---------------------|--------------|---------------------------------------|----------------------|
| fork, join          | here         | `forked`, `joined`                    | `fork`, `join`       |
| condition           | here         | `condition_true`, `condition_false`   | `true`, `false`      |
| reduce              | here         | `reduced`                             | `reduced`            |
| escalation          | here         | `escalated`                           | `escalated`          |
| verify              | here         | `verified`, `verification_failed`     | `passed`, `failed`   |
| subagent            | here         | `subagent_completed`                  | `success`            |
| map                 | map_stage.py | `mapped`                              | `mapped`, `failed`   |
| stage, any other    | stage.py     | `success`, else the result's status   | `success`, `failed`  |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.agent.rules.command_policy import given_command_policy
from harnpy.agent.worker import DELEGATED_STAGE, RUNNING, Carry, read_request
from harnpy.faults import Interruption, MisuseError
from harnpy.formats.shapes import only
from harnpy.workflow.execution import stage_work
from harnpy.workflow.execution.map_stage import run_map
from harnpy.workflow.execution.stage import run_stage, visible
from harnpy.workflow.execution.stage_work import Ended, brief_stage, result_artifact
from harnpy.workflow.execution.verification import verified
from harnpy.world.files import system_reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.agent.worker import Worker
    from harnpy.agent.workplace import Finished
    from harnpy.formats.dicts import Dict
    from harnpy.workflow.artifacts import Artifact
    from harnpy.workflow.execution.stage_work import Work

# The verify node: a command and checks, never a model. Spec: 08 §7.5.


def run_verify(work: Work) -> Ended:
    """Run the node's command, if it has one, and make its checks."""
    runtime, node = work.runtime, work.node
    briefing = brief_stage(runtime, node, work.session.id, work.task, work.artifacts, work.contracts)
    result = {**_outcome(work), **briefing.as_dict()}
    verification = verified(node, result)
    outcome, branch = ("verified", "passed") if verification["ok"] else ("verification_failed", "failed")
    artifact = result_artifact(runtime, node, result, briefing)
    return Ended(result, outcome, branch, [artifact], _transcript(work), verification)


def _outcome(work: Work) -> Dict:
    command = (work.node["verify"] or {}).get("command")
    if command is None or not str(command).strip():
        return {"status": "completed", "text": "", "visible_text": ""}
    ended = _run(work, str(command))
    text = "\n".join(filter(None, (ended.stdout, ended.stderr)))
    return {
        "status": "completed",
        "text": text,
        "visible_text": text,
        "command": command,
        "stdout": ended.stdout,
        "stderr": ended.stderr,
        "exit_status": ended.status,
        "success": ended.status == 0,
    }


def _run(work: Work, command: str) -> Finished:
    try:
        return work.runtime.workplace.run(("/bin/sh", "-lc", command), None, {})
    except (OSError, ValueError) as error:
        why = system_reason(error)
        raise MisuseError(f"workflow stage {work.node['id']} failed to run its command: {why}") from error


def _transcript(work: Work) -> Dict | None:
    """Return what others may see of the stage's session, if it exists."""
    sessions = work.runtime.sessions
    snapshot = sessions.snapshot_value(work.session.id)
    return snapshot and visible(snapshot, work.node["output_visibility"])


# The subagent node: a stage that is delegated to a worker. Spec: 08 §13.3.


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
    artifacts = [stage_work.marked_artifact(artifact, marks) for artifact in payload["artifacts"]]
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
            "turn_key": work.turn_key,
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
    produced = stage_work.artifact_ids(payload["artifacts"])
    data = {
        "worker_id": worker.id,
        "worker_name": worker.name,
        "request": worker.request,
        "provenance": worker.provenance(),
        "execution": worker.execution,
        "payload": {**_compacted(payload), "payload_compacted": True},
        "produced_artifact_ids": produced,
    }
    return stage_work.produced_artifact(
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


#: Loops name themselves in what they say of their options, and so do nodes, whose loop it would be.
_CALLER = "agent_loop"
_REASON = "manual review required"


def run_node(work: Work) -> Ended:
    """Run a node by its kind, under its command policy. Raise whatever makes the stage fail."""
    context = work.runtime.context()
    commands = context.rules.commands.inside(given_command_policy(work.node["model_policy"], _CALLER))
    with context.govern(context.rules.commanded(commands)):
        return KINDS.get(work.node["kind"], run_stage)(work)


def _fork(work: Work) -> Ended:
    return _passed_on(work, "forked", "forked", "fork")


def _join(work: Work) -> Ended:
    return _passed_on(work, "joined", "joined", "join")


def _condition(work: Work) -> Ended:
    text = "true" if _holds(work) else "false"
    return _passed_on(work, text, f"condition_{text}", text)


def _holds(work: Work) -> bool:
    artifacts, metadata = stage_work.selected_artifacts(work.node, work.artifacts), work.node["metadata"]
    wanted = metadata.get("contains_text")
    if wanted is not None:
        return any(str(wanted) in (artifact["text"] or "") for artifact in artifacts)
    kind = metadata.get("artifact_kind")
    return any(kind in (None, artifact["kind"]) for artifact in artifacts)


def _reduce(work: Work) -> Ended:
    node, world = work.node, work.runtime.sessions.world
    artifacts = stage_work.selected_artifacts(node, work.artifacts)
    texts = [artifact["text"] for artifact in artifacts if artifact["text"] is not None]
    text = node["reduce_policy"]["separator"].join(texts)
    title, lineage = f"reduce {node['id']} output", stage_work.artifact_ids(artifacts)
    artifact = stage_work.produced_artifact(node, world, title=title, text=text, lineage=lineage)
    return _passed_on(work, text, "reduced", "reduced", artifact)


def _escalation(work: Work) -> Ended:
    node, world = work.node, work.runtime.sessions.world
    policy = node["escalation_policy"]
    reason = policy["reason"] or _REASON
    data = {**only(policy, ("queue", "level")), "reason": reason}
    artifact = stage_work.produced_artifact(
        node, world, title=f"escalation {node['id']}", text=reason, data=data
    )
    return _passed_on(work, reason, "escalated", "escalated", artifact)


def _passed_on(work: Work, text: str, outcome: str, branch: str, *artifacts: Artifact) -> Ended:
    """Return the end of a node that used no model: the transcript continues unchanged."""
    result = {"status": "completed", "text": text, "visible_text": text}
    return Ended(result, outcome, branch, list(artifacts), work.transcript)


#: What runs each kind of node but `stage`.
KINDS: dict[str, Callable[[Work], Ended]] = {
    "fork": _fork,
    "join": _join,
    "condition": _condition,
    "reduce": _reduce,
    "escalation": _escalation,
    "map": run_map,
    "subagent": run_subagent,
    "verify": run_verify,
}
