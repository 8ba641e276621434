"""The summary of a record: graph, workers, verifications, transcripts, rounds. Spec: 08 §8.4; 07 §6.11, §9.4.

All of it follows from the record. Results for a stage are kept by identity, so each stage is examined once.
This is safe because a part of a record is never changed in place (see `RunWriter`).
"""

from __future__ import annotations

import os.path
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from harnpy.formats.dicts import as_dict, as_dicts, as_text, as_texts, dicts_at
from harnpy.formats.shapes import only

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harnpy.formats.dicts import Dict
    from harnpy.workflow.records.record_shapes import ChildRun, RunRecord, StageRecord, Transition
    from harnpy.world import World

P = TypeVar("P")
T = TypeVar("T")


class IdentityMemo(Generic[P, T]):
    """Results by the parts they were computed from. It keeps the parts, so that no other object gets their
    ids."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[P, T]] = {}

    def __contains__(self, part: P) -> bool:
        return id(part) in self._made

    def of(self, part: P, make: Callable[[P], T]) -> T:
        """Return ``make(part)``, computed once."""
        known = self._made.get(id(part))
        if known is None:
            known = self._made[id(part)] = (part, make(part))
        return known[1]

    def of_all(self, parts: list[P], make: Callable[[P], T]) -> list[T]:
        """Return the results for several parts, most of which are known."""
        made = self._made
        return [made[id(part)][1] if id(part) in made else self.of(part, make) for part in parts]


# The action graph of a run: which stage led to which, and which workers helped. Spec: 08 §8.4.


CONDITION = "condition"
_BLANK = dict.fromkeys(("status", "outcome", "stage_id", "node_id", "worker_id", "run_id", "run_path"), None)


class ActionGraph:
    """Draws the graph of one run repeatedly; a node or edge that stays the same is the same object."""

    def __init__(self) -> None:
        self._stages: IdentityMemo[StageRecord, Dict] = IdentityMemo()
        self._workers: IdentityMemo[ChildRun, Dict] = IdentityMemo()
        self._edges: dict[tuple[str, str, str, str | None], Dict] = {}

    def draw(self, run: RunRecord) -> tuple[list[Dict], list[Dict]]:
        """Return nodes (the run, its trigger, stages in order, workers) and edges."""
        return list(self._draw_nodes(run)), list(self._draw_edges(run))

    def _draw_nodes(self, run: RunRecord) -> Iterator[Dict]:
        trigger, former = _trigger(run), as_text(run["metadata"].get("replay_of_event_id"))
        trace_id = None if trigger is None else trigger.get("trace_id")
        yield _node(
            f"run:{run['id']}", "run", run["workflow_name"] or run["workflow_id"], trace_id, run_id=run["id"],
            run_path=run["persisted_path"], status=run["status"], outcome=run["status"],
            metadata={"workflow_id": run["workflow_id"]},
        )  # fmt: skip
        if trigger is not None:
            yield _trigger_node(trigger, trace_id)
        if former is not None:
            yield _node(
                f"trigger:{former}", "trigger", former, trace_id, status="historical",
                outcome="replayed_from", metadata={},
            )  # fmt: skip
        for stage in run["stages"]:
            yield self._stages.of(stage, lambda each: _stage_node(each, run["id"], trace_id))
        for child in run["child_runs"]:
            yield self._workers.of(child, lambda each: _worker_node(each, trace_id))

    def _draw_edges(self, run: RunRecord) -> Iterator[Dict]:
        root, trigger = f"run:{run['id']}", _trigger(run)
        start, entry = root, "entry"
        if trigger is not None:
            start, entry = f"trigger:{trigger['id']}", "trigger_dispatch"
            yield self._edge(root, start, "entry", trigger["id"])
        stages = _Stages(run["stages"])
        steps = [(stages.source(step), stages.target(step), step["branch"]) for step in run["transitions"]]
        reached = {target["id"] for _, target, _ in steps if target is not None}
        for stage in run["stages"]:
            if stage["id"] not in reached:
                yield self._edge(start, f"stage:{stage['id']}", entry, None)
        for source, target, branch in steps:
            if target is not None:
                gate = source is not None and source["kind"] == CONDITION
                origin = start if source is None else f"stage:{source['id']}"
                kind = "predicate_gate" if gate else "transition"
                yield self._edge(origin, f"stage:{target['id']}", kind, branch)
        for child in run["child_runs"]:
            known = child["parent_stage_id"] in stages.places
            origin = f"stage:{child['parent_stage_id']}" if known else root
            yield self._edge(origin, f"worker:{child['worker_id']}", "delegates", child["worker_name"])
        former = as_text(run["metadata"].get("replay_of_event_id"))
        if former is not None:
            yield self._edge(f"trigger:{former}", start, "replay_chain", "replay chain")

    def _edge(self, source: str, target: str, kind: str, label: str | None) -> Dict:
        made = {"from_id": source, "to_id": target, "kind": kind, "label": label}
        return self._edges.setdefault((source, target, kind, label), made)


class _Stages:
    """Finds the stage that a transition came from, and the one it led to: the node's first after that."""

    def __init__(self, stages: list[StageRecord]) -> None:
        self._stages = stages
        self.places = {stage["id"]: place for place, stage in enumerate(stages)}
        self._of_node: dict[str, list[int]] = {}
        for place, stage in enumerate(stages):
            self._of_node.setdefault(stage["node_id"], []).append(place)

    def source(self, step: Transition) -> StageRecord | None:
        place = self.places.get(step["from_stage_id"] or "")
        return None if place is None else self._stages[place]

    def target(self, step: Transition) -> StageRecord | None:
        places = self._of_node.get(step["to_node_id"], [])
        index = bisect_right(places, self.places.get(step["from_stage_id"] or "", -1))
        return self._stages[places[index]] if index < len(places) else None


def _trigger(run: RunRecord) -> Dict | None:
    event = run["metadata"].get("trigger_event")
    return event if isinstance(event, dict) and as_text(event.get("id")) else None


def _node(id: str, kind: str, label: str, trace_id: Any, **fields: Any) -> Dict:
    return {**_BLANK, "id": id, "kind": kind, "label": label, "trace_id": trace_id, **fields}


def _trigger_node(event: Dict, trace_id: Any) -> Dict:
    facts = {key: event.get(key) for key in ("provider", "dedupe_key", "signature_status")}
    return _node(
        f"trigger:{event['id']}",
        "trigger",
        f"{as_text(event.get('provider')) or ''}:{as_text(event.get('kind')) or ''}",
        trace_id,
        status="received",
        outcome=as_dict(event.get("signature_status")).get("state"),
        metadata={**facts, "event_kind": event.get("kind")},
    )


def _stage_node(stage: StageRecord, run_id: str, trace_id: Any) -> Dict:
    worker = _worker_id(stage)
    facts = {"stage_kind": stage["kind"], "branch": stage["branch"], "worker_id": worker}
    return _node(
        f"stage:{stage['id']}",
        "predicate" if stage["kind"] == CONDITION else "stage",
        stage["node_id"],
        trace_id,
        status=stage["status"],
        outcome=stage["outcome"],
        stage_id=stage["id"],
        node_id=stage["node_id"],
        worker_id=worker,
        run_id=run_id,
        metadata={key: value for key, value in facts.items() if value is not None},
    )


def _worker_id(stage: StageRecord) -> str | None:
    """Return the id of the worker that a stage was delegated to."""
    id = stage["metadata"].get("worker_id")
    if id is None:
        id = as_dict(stage["metadata"].get("worker")).get("id")
    return id if isinstance(id, str) else None


def _worker_node(child: ChildRun, trace_id: Any) -> Dict:
    facts = {key: child[key] for key in ("worker_id", "run_id", "run_path", "status")}
    return _node(
        f"worker:{child['worker_id']}",
        "worker",
        child["worker_name"],
        trace_id,
        **facts,
        outcome=child["status"],
        stage_id=child["parent_stage_id"],
        metadata={key: child[key] for key in ("worker_name", "task")},
    )


# What an agent did in a stage, read from the stage's artifact. Spec: 08 §8.4, 07 §6.11, §9.4.


#: The counts of a round, and their names in the trace of an agent's result.
_COUNTS = {
    "iteration_count": "iterations",
    "llm_call_count": "llm_calls",
    "tool_execution_count": "tool_executions",
    "tool_rejection_count": "tool_rejections",
    "intervention_count": "interventions",
    "compaction_count": "compactions",
    "native_text_tool_fallback_count": "native_text_tool_fallbacks",
    "native_text_tool_fallback_rejection_count": "native_text_tool_fallback_rejections",
    "empty_completion_retry_count": "empty_completion_retries",
}


def planner_round(stage: StageRecord) -> list[Dict]:
    """Return the round of a stage whose agent did anything."""
    for result in _results(stage):
        trace, ledger = result["trace"], result.get("task_ledger")
        counts = {key: _count(trace.get(name)) for key, name in _COUNTS.items()}
        rejections = _count(result.get("ledger_done_rejections"))
        tools = as_dict(result.get("tools"))
        if any(counts.values()) or rejections:
            return [
                {
                    "stage_id": stage["id"],
                    "node_id": stage["node_id"],
                    "stage_kind": stage["kind"],
                    "status": stage["status"],
                    "outcome": stage["outcome"],
                    **counts,
                    "tools_used": _texts(tools.get("calls")),
                    "successful_tools": _texts(tools.get("successful")),
                    "ledger_done_rejections": rejections,
                    "task_ledger": ledger if isinstance(ledger, dict) else None,
                    "research_facts": _texts(as_dict(ledger).get("observations")),
                }
            ]
    return []


def daemon_event(stage: StageRecord) -> list[Dict]:
    """Return how a stage's daemon ended, if its agent was one: its result names its state file."""
    return [
        {
            "stage_id": stage["id"],
            "node_id": stage["node_id"],
            "daemon_state": result.get("daemon_state"),
            "snapshot_path": result["daemon_snapshot_path"],
        }
        for result in _results(stage)
        if isinstance(result.get("daemon_snapshot_path"), str)
    ]


def _results(stage: StageRecord) -> list[Dict]:
    """Return the agents' results in the stage's artifacts."""
    found = [as_dict(artifact["data"]) for artifact in stage["artifacts"]]
    return [data for data in found if isinstance(data.get("trace"), dict)]


def _count(value: Any) -> int:
    return value if type(value) is int else 0


def _texts(value: Any) -> list[str]:
    """Return the distinct texts of a list, in order."""
    return list(dict.fromkeys(as_texts(value)))


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
    """The entries of one stage in each of the lists."""

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
