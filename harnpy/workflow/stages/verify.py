"""The verify node: a command and checks, never a model. Spec: 08 §7.5."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.faults import MisuseError
from harnpy.workflow.stages.briefing import brief, result_artifact
from harnpy.workflow.stages.result_checks import verified
from harnpy.workflow.stages.visible_transcript import visible
from harnpy.workflow.stages.work import Ended
from harnpy.world.files import system_reason

if TYPE_CHECKING:
    from harnpy.agent.programs import Finished
    from harnpy.reading.dicts import Dict
    from harnpy.workflow.stages.work import Work


def run_verify(work: Work) -> Ended:
    """Run the node's command, if it has one, and make its checks."""
    runtime, node = work.runtime, work.node
    briefing = brief(runtime, node, work.session.id, work.task, work.artifacts, work.contracts)
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
