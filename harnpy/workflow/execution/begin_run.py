"""The start of a run: a new or resumed record, and its mutation session. Spec: 08 §7.8."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.agent.rules.policy import Policy, policy_dict, read_policy
from harnpy.faults import MisuseError
from harnpy.workflow.execution.replay import Replay
from harnpy.workflow.execution.run_options import DETERMINISTIC, RunOptions
from harnpy.workflow.graph.policies import BUILT_IN
from harnpy.workflow.records.record import RUNNING, new_run, normalised
from harnpy.workflow.records.record_files import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.agent.context import AgentContext
    from harnpy.reading.dicts import Dict
    from harnpy.workflow.artifacts.artifact_types import Artifact
    from harnpy.workflow.graph.graph_types import Graph
    from harnpy.workflow.records.record_types import RunRecord
    from harnpy.world import World


def begin_run(
    task: str, graph: Graph, artifacts: Sequence[Artifact], options: RunOptions, world: World
) -> RunRecord:
    """Return the record of a run that is about to start or to continue. Raise `MisuseError`."""
    former = _former(options, world)
    lineage = options.lineage
    run = new_run(world.ids.new(), world) if former is None else former
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
        "policy": policy_dict(BUILT_IN),
        "execution": options.execution or run["execution"],
        "replay_fixture": None,
    }


def _lacks_only_its_end(former: RunRecord | None) -> bool:
    """Whether a run was interrupted between its last stage and its end, which could not be written."""
    if former is None or former["pending_nodes"]:
        return False
    return former["status"] == RUNNING and bool(former["stages"])


def _root(run: RunRecord, lineage: dict[str, str], is_new: bool) -> str | None:
    root = run["root_run_id"]
    return lineage.get("root_run_id") or root if is_new else root


def _former(options: RunOptions, world: World) -> RunRecord | None:
    """Return the run to resume, if there is one."""
    return _record(options.resume_run, options.resume_path, world)


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
        return normalised(given, world)
    return None if path is None else load(path, world)


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
    return BUILT_IN.intersect(read_policy(graph["capability_policy"]))
