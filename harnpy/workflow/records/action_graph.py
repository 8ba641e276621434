"""The action graph of a run: which stage led to which, and which workers helped. Spec: 08 §8.4."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

from harnpy.reading.lenient import as_dict, as_text
from harnpy.workflow.records.identity_memo import IdentityMemo

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.reading.dicts import Dict
    from harnpy.workflow.records.record_types import ChildRun, RunRecord, StageRecord, Transition


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
