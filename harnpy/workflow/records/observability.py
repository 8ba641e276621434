"""The summary of a record: graph, workers, verifications, transcripts, rounds. Spec: 08 §8.4.

All of it follows from the record. Results for a stage are kept, so each stage is examined once.
"""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.reading.lenient import as_dict, as_dicts, dicts_at
from harnpy.workflow.records.action_graph import ActionGraph
from harnpy.workflow.records.identity_memo import IdentityMemo
from harnpy.workflow.records.planner_rounds import daemon_event, planner_round
from harnpy.workflow.shapes import only

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.reading.dicts import Dict
    from harnpy.workflow.records.record_types import ChildRun, RunRecord, StageRecord
    from harnpy.world import World


VERSION = 4
LLM_TRANSCRIPT = "run:llm_transcript"
_LINEAGE = (
    "worker_id", "worker_name", "parent_stage_id", "task", "status", "session_id", "parent_session_id",
    "mutation_scope", "run_id", "run_path", "snapshot_path",
)  # fmt: skip
_COMPACTION = (
    "mode", "strategy", "archived_messages", "estimated_tokens_before", "estimated_tokens_after",
    "snapshot_asset_id",
)  # fmt: skip


def observability(run: RunRecord, world: World) -> Dict:
    """Return the `observability` of a record."""
    return Observer(world).observe(run)


class _Parts(NamedTuple):
    """What one stage contributes to each of the lists."""

    planner_rounds: list[Dict]
    verification_outcomes: list[Dict]
    transcript_pointers: list[Dict]
    compaction_events: list[Dict]
    daemon_events: list[Dict]


class Observer:
    """Summarises one run repeatedly, examining each of its parts once."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._graph = ActionGraph()
        self._stages: IdentityMemo[StageRecord, _Parts] = IdentityMemo()
        self._lineage: IdentityMemo[ChildRun, Dict] = IdentityMemo()
        self._last: tuple[Any, list[Dict], list[Dict]] | None = None

    def observe(self, run: RunRecord) -> Dict:
        parts = [self._stages.of(stage, _parts) for stage in run["stages"]]
        pointers, compactions = self._of_transcript(run["transcript"])
        rounds = [each for part in parts for each in part.planner_rounds]
        nodes, edges = self._graph.draw(run)
        return {
            "schema_version": VERSION,
            "planner_rounds": rounds,
            "research_fact_count": sum(len(each["research_facts"]) for each in rounds),
            "action_graph_nodes": nodes,
            "action_graph_edges": edges,
            "worker_lineage": [self._lineage.of(child, _lineage) for child in run["child_runs"]],
            "verification_outcomes": [each for part in parts for each in part.verification_outcomes],
            "transcript_pointers": [
                *(each for part in parts for each in part.transcript_pointers),
                *pointers,
                *_sidecar(run["persisted_path"], self._world),
            ],
            "compaction_events": [
                *(each for part in parts for each in part.compaction_events),
                *compactions,
            ],
            "daemon_events": [each for part in parts for each in part.daemon_events],
        }

    def _of_transcript(self, transcript: Any) -> tuple[list[Dict], list[Dict]]:
        """Return pointers and compactions of the run's own transcript."""
        if self._last is None or self._last[0] is not transcript:
            location = "run.transcript"
            pointers = [] if transcript is None else [_pointer("run:transcript", "run transcript", location)]
            self._last = (transcript, pointers, list(_compactions(transcript, location, None)))
        return self._last[1:]


def _parts(stage: StageRecord) -> _Parts:
    transcript, location = stage["transcript"], f"run.stages[{stage['node_id']}].transcript"
    label = f"{stage['node_id']} transcript"
    return _Parts(
        planner_round(stage),
        _verification(stage),
        [] if transcript is None else [_pointer(f"stage:{stage['id']}:transcript", label, location)],
        list(_compactions(transcript, location, stage)),
        daemon_event(stage),
    )


def _lineage(child: ChildRun) -> Dict:
    return only(child, _LINEAGE)


# Transcripts.


def _pointer(id: str, label: str, location: str) -> Dict:
    return {
        "id": id, "label": label, "kind": "embedded_transcript", "location": location, "path": None,
        "available": True,
    }  # fmt: skip


def sidecar_path(record: str) -> str:
    """Return the path of the log of model calls beside a record's file."""
    return os.path.join(f"{os.path.splitext(record)[0]}-llm", "llm_transcript.jsonl")


def _sidecar(record: str | None, world: World) -> list[Dict]:
    if record is None:
        return []
    path = sidecar_path(record)
    return [
        {
            "id": LLM_TRANSCRIPT,
            "label": "LLM transcript",
            "kind": "llm_jsonl",
            "location": path,
            "path": path,
            "available": world.sees(os.path.join(world.files.cwd(), path)),
        }
    ]


def _compactions(transcript: Any, location: str, stage: StageRecord | None) -> Iterator[Dict]:
    if not isinstance(transcript, dict):
        return
    listed = as_dicts(transcript.get("assets"))
    assets = {asset["id"]: asset for asset in listed if isinstance(asset.get("id"), str)}
    for event in dicts_at(transcript, "events"):
        if event.get("kind") != "compaction":
            continue
        details = as_dict(event.get("metadata"))
        asset_id = details.get("snapshot_asset_id")
        asset = assets.get(asset_id) if isinstance(asset_id, str) else None
        yield {
            "id": event.get("id"),
            "transcript_id": transcript.get("id"),
            "stage_id": stage and stage["id"],
            "node_id": stage and stage["node_id"],
            **{key: details.get(key) for key in _COMPACTION},
            "snapshot_location": None if asset_id is None else f"{location}.assets[{asset_id}]",
            "snapshot_path": as_dict((asset or {}).get("storage")).get("path"),
            "available": asset is not None,
        }


# Verification.


def _verification(stage: StageRecord) -> list[Dict]:
    verification = stage["verification"]
    if stage["kind"] != "verify" and verification is None:
        return []
    return [
        {
            "stage_id": stage["id"],
            "node_id": stage["node_id"],
            "status": stage["status"],
            "passed": _passed(stage),
            "summary": _summary(as_dict(verification)),
        }
    ]


def verdict_of(verification: Any) -> bool | None:
    """Return the first boolean among the keys for a verdict, if there is one."""
    found = as_dict(verification)
    verdicts = (found.get(key) for key in ("ok", "pass", "success"))
    return next((value for value in verdicts if isinstance(value, bool)), None)


def _passed(stage: StageRecord) -> bool | None:
    verdict = verdict_of(stage["verification"])
    if verdict is not None:
        return verdict
    if stage["status"] == "failed":
        return False
    return True if (stage["status"], stage["outcome"]) == ("completed", "success") else None


def _summary(verification: Dict) -> str | None:
    """Describe in a few words what was verified."""
    summary, checks = verification.get("summary"), as_dicts(verification.get("checks"))
    if isinstance(summary, str):
        return summary
    if checks:
        return f"{sum(check.get('ok') is True for check in checks)} of {len(checks)} checks passed"
    kind = verification.get("kind")
    return kind if isinstance(kind, str) else None
