"""Keeping a run's list of handoffs and the artifacts that hold them in step. Spec: 08 §12."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.agent import handoffs
from harnpy.workflow.artifacts import artifact
from harnpy.world.clock import rfc3339

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.workflow.artifacts.artifact_types import Artifact
    from harnpy.workflow.records.record_types import RunRecord
    from harnpy.world import World


_RECEIPT = "run_receipt"
_PRIORITY = 85


def read_handoffs(given: list[Any], world: World) -> list[Dict]:
    """Return a record's handoffs in normal form. Raise `MisuseError`."""
    return [_normal(item, world, f"handoffs[{index}]") for index, item in enumerate(given)]


def synchronise(run: RunRecord, world: World) -> None:
    """Bring the run's `handoffs` and `artifacts` in step. What doesn't change stays the same object."""
    found = (item["data"] for item in run["artifacts"] if item["kind"] == artifact.HANDOFF)
    merged: dict[str, Dict] = {}
    for handoff in (*run["handoffs"], *found):
        known = merged.get(handoff["id"])
        merged[handoff["id"]] = handoff if known is None else _merged(known, handoff)
    known_as = {item["id"]: item for item in run["handoffs"]}
    for id, handoff in merged.items():
        settled = _with_receipt(handoff, run)
        merged[id] = known_as[id] if known_as.get(id) == settled else settled
    run["handoffs"][:] = sorted(merged.values(), key=lambda handoff: str(handoff["created_at"]))
    held = {item["data"]["id"] for item in run["artifacts"] if item["kind"] == artifact.HANDOFF}
    run["artifacts"][:] = [_rewritten(item, merged, world) for item in run["artifacts"]] + [
        _holder(handoff, world) for handoff in run["handoffs"] if handoff["id"] not in held
    ]


def _normal(given: Any, world: World, path: str) -> Dict:
    return handoffs.normalise(given, f"handoff_{world.ids.new()}", rfc3339(world.clock.now()), caller=path)


def _merged(own: Dict, other: Dict) -> Dict:
    """Return ``own`` with what only ``other`` sets, and the links of both."""
    links = own["receipt_links"] + [
        link for link in other["receipt_links"] if link not in own["receipt_links"]
    ]
    unset = {key: value for key, value in other.items() if own[key] in (None, [], {})}
    return {**own, **unset, "receipt_links": links}


def _with_receipt(handoff: Dict, run: RunRecord) -> Dict:
    """Return the handoff with its run, and with a link to that run's record."""
    label = run["workflow_name"] or run["workflow_id"]
    link = {"kind": _RECEIPT, "label": label or None, "run_id": run["id"], "path": run["persisted_path"]}
    receipt = {**dict.fromkeys(("artifact_id", "href")), **link}
    links = [each for each in handoff["receipt_links"] if not _is_of_run(each, run["id"])]
    return {
        **handoff,
        "parent_run_id": handoff["parent_run_id"] or run["id"],
        "receipt_links": [*links, receipt],
    }


def _is_of_run(link: Dict, run_id: str) -> bool:
    return (link["kind"], link["run_id"]) == (_RECEIPT, run_id)


def _rewritten(item: Artifact, merged: dict[str, Dict], world: World) -> Artifact:
    """Return the artifact with its handoff brought up to date."""
    if item["kind"] != artifact.HANDOFF or item["data"] == merged[item["data"]["id"]]:
        return item
    updated: Artifact = {**item, "data": merged[item["data"]["id"]], "estimated_tokens": None}
    return {**artifact.normalised(updated, world), "title": item["title"]}


def _holder(handoff: Dict, world: World) -> Artifact:
    """Return an artifact for a handoff that has none."""
    return artifact.normalised(
        {
            "id": f"artifact_{handoff['id']}",
            "kind": artifact.HANDOFF,
            "data": handoff,
            "source": handoff["source_persona"],
            "freshness": "fresh",
            "priority": _PRIORITY,
        },
        world,
    )
