"""The map node: the same work for every item, several at a time. Spec: 08 §7.6.

A node that describes work runs a stage of its own for each item; otherwise the items themselves become
artifacts.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import NAMESPACE_OID, uuid5

from harnpy.agent.tasks import in_turn
from harnpy.agent.tool_registry import failure_reason
from harnpy.formats.shapes import made, only
from harnpy.llm.native_tools import tool_entries
from harnpy.workflow.artifacts import KIND, normalised_artifact
from harnpy.workflow.execution import stage_work
from harnpy.workflow.execution.stage import run_stage
from harnpy.workflow.execution.stage_work import Ended
from harnpy.workflow.graph import is_plain_model_policy
from harnpy.workflow.graph_shapes import ContextPolicy, Contract
from harnpy.workflow.records.record_shapes import plain_json

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from harnpy.agent.tasks import Attempt
    from harnpy.formats.dicts import Dict
    from harnpy.workflow.artifacts import Artifact
    from harnpy.workflow.execution.stage_work import Work
    from harnpy.workflow.graph_shapes import MapPolicy, Node

ALL, FIRST, QUORUM = "all", "first", "quorum"
COMPLETED, PARTIAL, FAILED = "completed", "partial", "failed"


class _Item(NamedTuple):
    """The input of a branch. ``value`` is the item itself, ``artifact`` the artifact it came from, if any;
    ``number`` starts at 1, ``total`` is how many there are."""

    number: int
    total: int
    value: Any
    artifact: Artifact | None

    @property
    def lineage(self) -> list[str]:
        return [] if self.artifact is None else [self.artifact["id"]]

    @property
    def text(self) -> str | None:
        return self.value if isinstance(self.value, str) else None


class _Branch(NamedTuple):
    result: Dict
    artifacts: list[Artifact]


class _Branches(NamedTuple):
    """The work of each branch, and how they are run: work that never waits needs no tasks."""

    do: Callable[[Work, _Item], _Branch]
    start: Callable[[Sequence[Callable[[], Any]], int], Generator[Attempt, None, None]]


def run_map(work: Work) -> Ended:
    """Run the node for as many items as its join strategy needs."""
    items = _items(work)
    strategy = work.node["join_policy"]["strategy"] or ALL
    if _is_executable(work.node):
        branches = _Branches(_done_as_stage, work.runtime.tasks.as_they_end)
    else:
        branches = _Branches(_turned_to_artifact, in_turn)
    completed, failures, artifacts = _collect(work, strategy, items, branches)
    artifacts.sort(key=lambda artifact: artifact["metadata"]["index"])
    status, text = COMPLETED, f"mapped {len(artifacts)} of {len(items)} items"
    if failures:
        status = PARTIAL
        if not artifacts:
            status, text = FAILED, f"map failed after {len(failures)} branch failures"
    result = {
        "status": status,
        "text": text,
        "visible_text": text,
        "join_strategy": strategy,
        "completed": completed,
        "failures": failures,
    }
    return Ended(result, "mapped", FAILED if status == FAILED else "mapped", artifacts, work.transcript)


# The items.


def _items(work: Work) -> list[_Item]:
    policy = _policy(work)
    limit = policy["max_items"]
    most = None if limit is None else max(0, limit)
    values = policy["items"][:most]
    if policy["items"]:  # artifacts are data, so functions are left out
        return [_Item(at, len(values), plain_json(value), None) for at, value in enumerate(values, 1)]
    kind = policy["item_artifact_kind"]
    artifacts = stage_work.selected_artifacts(work.node, work.artifacts)
    artifacts = [artifact for artifact in artifacts if kind in (None, "", artifact["kind"])][:most]
    total = len(artifacts)
    return [_Item(at, total, _value(artifact), artifact) for at, artifact in enumerate(artifacts, 1)]


def _value(artifact: Artifact) -> Any:
    return artifact["text"] if artifact["data"] is None else artifact["data"]


def _policy(work: Work) -> MapPolicy:
    return work.node["map_policy"]


# The branches.


def _collect(
    work: Work, strategy: str, items: list[_Item], branches: _Branches
) -> tuple[list[Dict], list[Dict], list[Artifact]]:
    """Run the branches: return those that completed, those that failed, and the artifacts produced."""
    total = len(items)
    wanted = _wanted(work, strategy, total)
    calls = [partial(branches.do, work, item) for item in items]
    completed: list[Dict] = []
    failures: list[Dict] = []
    artifacts: list[Artifact] = []
    with closing(branches.start(calls, _limit(work, total))) as attempts:
        for attempt in attempts if wanted else ():
            if attempt.error is not None:
                failures.append(_failure(work, attempt))
                continue
            result, made = attempt.result
            completed.append(
                {
                    "index": attempt.position,
                    "status": result["status"],
                    "result": result,
                    "artifact_count": len(made),
                }
            )
            artifacts += made
            if len(completed) >= wanted:
                break
    by_index = itemgetter("index")
    return sorted(completed, key=by_index), sorted(failures, key=by_index), artifacts


def _failure(work: Work, attempt: Attempt) -> Dict:
    assert attempt.error is not None
    if not work.runtime.is_failure(attempt.error):
        raise attempt.error
    return {"index": attempt.position, "status": FAILED, "error": failure_reason(attempt.error)}


def _wanted(work: Work, strategy: str, total: int) -> int:
    """Return how many branches must complete before the others don't matter."""
    if strategy == FIRST:
        return min(1, total)
    if strategy == QUORUM:
        least = work.node["join_policy"]["min_completed"] or 1
        return min(max(1, least), total)
    return total


def _limit(work: Work, total: int) -> int:
    most = _policy(work)["max_concurrent"]
    return max(1, total if most is None or most < 1 else most)


# One branch.


def _is_executable(node: Node) -> bool:
    says = node["mode"] or node["prompt"] or node["system"] or tool_entries(node["tools"])
    return bool(says) or not is_plain_model_policy(node["model_policy"])


def _turned_to_artifact(work: Work, item: _Item) -> _Branch:
    policy, node = _policy(work), work.node
    artifact = stage_work.produced_artifact(
        node,
        work.runtime.sessions.world,
        kind=policy["output_kind"] or stage_work.output_kind(node),
        title=f"map {node['id']} item {item.number}",
        text=item.text,
        data=item.value,
        lineage=item.lineage,
        metadata={"index": item.number - 1},
    )
    text = item.text or ""
    return _Branch({"status": COMPLETED, "text": text, "visible_text": text}, [artifact])


def _done_as_stage(work: Work, item: _Item) -> _Branch:
    part = replace(
        work,
        node=_part_of(work.node, item.number, _policy(work)["output_kind"]),
        task=f"{work.task}\n\nMap item {item.number} of {item.total}",
        artifacts=[item.artifact or _as_artifact(work, item)],
        session=work.session.of_branch(item.number),
        turn_key=work.turn_key and f"{work.turn_key}:map_{item.number}",
    )
    ended = run_stage(part)
    index = {"index": item.number - 1}
    artifacts = [stage_work.marked_artifact(artifact, index) for artifact in ended.artifacts]
    return _Branch(ended.result, artifacts)


def _part_of(node: Node, number: int, output_kind: str | None) -> Node:
    """Return the node of one branch: it takes its item, whatever artifacts the map node selects."""
    return {
        **node,
        "id": f"{node['id']}_map_{number}",
        "kind": "stage",
        "context_policy": made(ContextPolicy, only(node["context_policy"], ("render",))),
        "input_contract": made(Contract, only(node["input_contract"], ("require_transcript",))),
        "output_contract": made(Contract, {"output_kinds": [output_kind or stage_work.output_kind(node)]}),
    }


def _as_artifact(work: Work, item: _Item) -> Artifact:
    kind = _policy(work)["item_artifact_kind"] or KIND
    # A branch that is entered again has the same prompt, which may show the id.
    id = (
        None
        if work.turn_key is None
        else f"artifact_{uuid5(NAMESPACE_OID, f'{work.turn_key}:{item.number}')}"
    )
    fields = {"id": id, "kind": kind, "text": item.text, "data": item.value}
    return normalised_artifact(fields, work.runtime.sessions.world)
