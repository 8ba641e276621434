"""The differences between two run records, and between two texts. Spec: 08 §8.5–8.6.

Paths, ids and times of records don't count: two runs that did the same are identical.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from harnpy.faults import BATCH, look, paced
from harnpy.formats.dicts import as_dicts
from harnpy.formats.json import compact_json
from harnpy.workflow.records.observability import LLM_TRANSCRIPT, observability
from harnpy.workflow.records.replay_fixture import option

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harnpy.formats.dicts import Dict
    from harnpy.workflow.records.record_shapes import RunRecord, StageRecord
    from harnpy.world import World

    Lines = Sequence[str]

# Line diffs: a shortest script of deletions and insertions. Spec: 08 §8.6.
#
# Myers' greedy algorithm ("An O(ND) Difference Algorithm and Its Variations", 1986), on the lines that both
# texts have: any other line is deleted or inserted in every script.


_PATH = "artifact"
#: More deletions and insertions are not looked for: their number is squared.
_MOST_ROUNDS = 2048


def unified_diff(path: str | None, before: str, after: str) -> str:
    """Return all lines of both texts, marked with a space, `-` or `+`. `-` comes first where lines are
    replaced."""
    old, new = split_lines(before), split_lines(after)
    name = path or _PATH
    return "".join([f"--- a/{name}\n", f"+++ b/{name}\n", *(f"{line}\n" for line in _marked(old, new))])


def split_lines(text: str) -> list[str]:
    """Split into lines without their ends; a line end at the very end starts no other line."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def _marked(old: Lines, new: Lines) -> Iterator[str]:
    x = y = 0
    for next_x, next_y in paced([*matching_lines(old, new), (len(old), len(new))]):
        yield from ("-" + line for line in paced(old[x:next_x]))
        yield from ("+" + line for line in paced(new[y:next_y]))
        if next_x < len(old):
            yield " " + old[next_x]
        x, y = next_x + 1, next_y + 1


def matching_lines(old: Lines, new: Lines) -> list[tuple[int, int]]:
    """Return the positions of equal lines that a shortest script keeps, in order."""
    shared = set(old) & set(new)
    xs = [x for x, line in enumerate(paced(old)) if line in shared]
    ys = [y for y, line in enumerate(paced(new)) if line in shared]
    kept = _kept([old[x] for x in paced(xs)], [new[y] for y in paced(ys)])
    return [(xs[x], ys[y]) for x, y in paced(kept)]


def _kept(old: Lines, new: Lines) -> list[tuple[int, int]]:
    """Walk back from the end along the furthest points, one step for each deletion or insertion."""
    kept = []
    rounds = _rounds(old, new)
    if rounds is None:
        return _ends(old, new)
    x, y = len(old), len(new)
    for d in paced(range(len(rounds) - 1, -1, -1)):
        diagonal = (x - y + d) // 2
        start, inserted = _step(rounds[d - 1] if d else [], diagonal, d)
        for _ in paced(range(x - start)):
            x, y = x - 1, y - 1
            kept.append((x, y))
        x, y = (x, y - 1) if inserted else (x - 1, y)
    return kept[::-1]


def _ends(old: Lines, new: Lines) -> list[tuple[int, int]]:
    """Return the lines that both begin with and end with, as kept."""
    most = min(len(old), len(new))
    begin = next((i for i in range(most) if old[i] != new[i]), most)
    end = next((i for i in range(most - begin) if old[-1 - i] != new[-1 - i]), most - begin)
    last = [(len(old) - i, len(new) - i) for i in range(end, 0, -1)]
    return [(i, i) for i in range(begin)] + last


def _rounds(old: Lines, new: Lines) -> list[array[int]] | None:
    """Return how far one gets in `old` with 0, 1, 2 … deletions and insertions, until both texts are done.

    None when that would be too many. In round d, item i is about the diagonal ``x - y = 2 * i - d``.
    """
    goal = len(old) - len(new)
    rounds: list[array[int]] = []
    for d in range(_MOST_ROUNDS):
        furthest = array("q")
        for i in paced(range(d + 1)):
            x, _ = _step(rounds[-1] if d else [], i, d)
            y = x - 2 * i + d
            came = x
            while x < len(old) and y < len(new) and old[x] == new[y]:
                x, y = x + 1, y + 1
                if (x - came) % BATCH == 0:
                    look()
            furthest.append(x)
        rounds.append(furthest)
        if abs(goal) <= d and (goal + d) % 2 == 0 and furthest[(goal + d) // 2] >= len(old):
            return rounds
    return None


def _step(former: Sequence[int], i: int, d: int) -> tuple[int, bool]:
    """Return where round d enters a diagonal, and whether by an insertion (else by a deletion)."""
    if d == 0:
        return 0, False
    inserts = i == 0 or (i < d and former[i - 1] < former[i])
    return (former[i], True) if inserts else (former[i - 1] + 1, False)


_MISSING = {"left": "stage missing from left run", "right": "stage missing from right run"}

#: The lists of observability that are compared: the key that names an entry, and the keys that count.
_SECTIONS = {
    "worker_lineage": ("worker_name", ("task", "status", "mutation_scope")),
    "planner_rounds": (
        "node_id",
        (
            "stage_kind", "status", "outcome", "iteration_count", "llm_call_count", "tool_execution_count",
            "tool_rejection_count", "intervention_count", "compaction_count",
            "native_text_tool_fallback_count", "native_text_tool_fallback_rejection_count",
            "empty_completion_retry_count", "tools_used", "successful_tools", "ledger_done_rejections",
            "research_facts",
        ),
    ),
    "transcript_pointers": ("label", ("kind", "location", "available")),
    "compaction_events": (
        "node_id",
        (
            "mode", "strategy", "archived_messages", "estimated_tokens_before", "estimated_tokens_after",
            "available",
        ),
    ),
    "daemon_events": ("node_id", ("daemon_state",)),
    "verification": ("node_id", ("status", "passed", "summary")),
}  # fmt: skip
#: Sections whose list has another name.
_LISTS = {"verification": "verification_outcomes"}


def run_diff(left: RunRecord, right: RunRecord, world: World) -> Dict:
    """Return what changes from ``left`` to ``right``."""
    stages = list(_stage_diffs(left, right))
    tools = list(_tool_diffs(left, right))
    observed = list(_observability_diffs(_observed(left, world), _observed(right, world)))
    deltas = {
        "transition_count_delta": len(right["transitions"]) - len(left["transitions"]),
        "artifact_count_delta": len(right["artifacts"]) - len(left["artifacts"]),
        "checkpoint_count_delta": len(right["checkpoints"]) - len(left["checkpoints"]),
    }
    changed = left["status"] != right["status"]
    return {
        "left_run_id": left["id"],
        "right_run_id": right["id"],
        "identical": not (changed or stages or tools or observed or any(deltas.values())),
        "status_changed": changed,
        "left_status": left["status"],
        "right_status": right["status"],
        "stage_diffs": stages,
        "tool_diffs": tools,
        "observability_diffs": observed,
        **deltas,
    }


def baseline_failure(path: str, difference: Dict) -> list[str]:
    """Report that a run differs from its baseline in the file ``path``, if it does."""
    if difference["identical"]:
        return []
    return [f"run differs from baseline {path} with {len(difference['stage_diffs'])} stage changes"]


# Stages.


def _stage_diffs(left: RunRecord, right: RunRecord) -> Iterator[Dict]:
    before, after = ({stage["node_id"]: stage for stage in run["stages"]} for run in (left, right))
    for node in sorted(before.keys() | after.keys()):
        if node not in before:
            yield {"node_id": node, "change": "added", "details": [_MISSING["left"]]}
        elif node not in after:
            yield {"node_id": node, "change": "removed", "details": [_MISSING["right"]]}
        else:
            details = list(_stage_details(before[node], after[node]))
            if details:
                yield {"node_id": node, "change": "changed", "details": details}


def _stage_details(before: StageRecord, after: StageRecord) -> Iterator[str]:
    old, new = _shown_stage(before), _shown_stage(after)
    for name in old:
        if old[name] != new[name]:
            yield f"{name}: {old[name]} -> {new[name]}"


def _shown_stage(stage: StageRecord) -> Dict:
    """Return the compared fields of a stage, as details show them."""
    return {
        "status": stage["status"],
        "outcome": stage["outcome"],
        "branch": option(stage["branch"]),
        "produced_artifacts": len(stage["produced_artifact_ids"]),
        "artifact_records": len(stage["artifacts"]),
    }


# Tools.


def _tool_diffs(left: RunRecord, right: RunRecord) -> Iterator[Dict]:
    before, after = _results(left), _results(right)
    for tool, args_hash in sorted(before.keys() | after.keys()):
        results = before.get((tool, args_hash)), after.get((tool, args_hash))
        if results[0] != results[1]:
            yield {
                "tool_name": tool,
                "args_hash": args_hash,
                "result_changed": True,
                "left_result": results[0],
                "right_result": results[1],
            }


def _results(run: RunRecord) -> dict[tuple[str, str], Any]:
    recordings = run["tool_recordings"]
    return {(each["tool_name"], each["args_hash"]): each["result"] for each in recordings}


# Observability.


def _observed(run: RunRecord, world: World) -> Dict:
    stored: Dict | None = run["observability"]
    return observability(run, world) if stored is None else stored


def _observability_diffs(left: Dict, right: Dict) -> Iterator[Dict]:
    for section, (name, fields) in _SECTIONS.items():
        list_name = _LISTS.get(section, section)
        before, after = (_entries(observed_run, list_name, name, fields) for observed_run in (left, right))
        for label in sorted(before.keys() | after.keys()):
            details = list(_entry_details(before.get(label, []), after.get(label, [])))
            if details:
                yield {"section": section, "label": label, "details": details}
    before_shape, after_shape = _shape(left), _shape(right)
    if before_shape != after_shape:
        details = [f"nodes/edges: {before_shape} -> {after_shape}"]
        yield {"section": "action_graph", "label": "shape", "details": details}


def _entries(observed_run: Dict, list_name: str, name: str, fields: tuple[str, ...]) -> dict[str, list[Dict]]:
    """Return the compared fields of a list's entries, by name; several may share one."""
    entries: dict[str, list[Dict]] = {}
    for entry in as_dicts(observed_run.get(list_name)):
        if entry.get("id") != LLM_TRANSCRIPT:
            label = "run" if entry.get(name) is None else str(entry[name])
            entries.setdefault(label, []).append({key: entry.get(key) for key in fields})
    return entries


def _entry_details(before: list[Dict], after: list[Dict]) -> Iterator[str]:
    if len(before) != len(after):
        yield f"entries: {len(before)} -> {len(after)}"
        return
    for old, new in zip(before, after, strict=True):
        for key in old:
            if old[key] != new[key]:
                yield f"{key}: {_shown(old[key])} -> {_shown(new[key])}"


def _shape(observed_run: Dict) -> str:
    nodes, edges = (as_dicts(observed_run.get(f"action_graph_{parts}")) for parts in ("nodes", "edges"))
    return f"{len(nodes)}/{len(edges)}"


def _shown(value: Any) -> str:
    """Return a value on one line, as JSON."""
    return value if isinstance(value, str) else compact_json(value)
