"""The sections of a run besides its stages: artifacts, child runs, usage, checkpoints, spans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.reading.lenient import as_dicts
from harnpy.workflow.report import parts
from harnpy.workflow.report.figures import NONE, clock, count, duration, elapsed, money
from harnpy.workflow.report.markup import Markup, element

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.reading.dicts import Dict
    from harnpy.workflow.records.record_types import ChildRun, RunRecord, TraceSpan, UsageRecord


#: Keys of an agent's result that its stage's card shows.
_ELSEWHERE = frozenset(
    "transcript prompt system_prompt rendered_context rendered_verification_context text visible_text "
    "verification_contracts".split()
)


def artifacts(items: Any) -> Markup:
    made = as_dicts(items)
    return _section("Artifacts", [_artifact(item) for item in made], count(len(made)))


def _artifact(item: Dict) -> Markup:
    facts = parts.apart(
        item.get("source") and f"from {item['source']}",
        item.get("freshness"),
        f"about {count(item['estimated_tokens'])} tokens" if item.get("estimated_tokens") else None,
    )
    head = element(
        "header",
        element("h3", item.get("title") or item.get("id") or "(untitled)"),
        parts.tag(str(item.get("kind"))),
    )
    return element(
        "article",
        head,
        element("p", facts, class_="facts-line") if facts else None,
        parts.folded("Text", parts.prose(item["text"]), opened=len(item["text"]) < 240)
        if item.get("text")
        else None,
        parts.folded("Data", parts.value(_brief(item["data"]))) if item.get("data") is not None else None,
        class_="card slim",
    )


def _brief(data: Any) -> Any:
    if not isinstance(data, dict):
        return data
    return {
        key: "(shown with the stage)" if key in _ELSEWHERE and item else item for key, item in data.items()
    }


def child_runs(children: Sequence[ChildRun]) -> Markup:
    return _section("Child runs", [_child(child) for child in children], count(len(children)))


def _child(child: ChildRun) -> Markup:
    return element(
        "article",
        element(
            "header", element("h3", child["worker_name"] or child["worker_id"]), parts.pill(child["status"])
        ),
        parts.prose(child["task"]) if child["task"] else None,
        parts.facts(
            [
                ("Run", parts.mono(child["run_id"]) if child["run_id"] else None),
                ("Took", duration(elapsed(child)) if elapsed(child) is not None else None),
                ("May change", child["mutation_scope"]),
                ("Record", parts.mono(child["run_path"]) if child["run_path"] else None),
            ]
        ),
        parts.folded("Request", parts.value(child["request"])) if child["request"] else None,
        parts.folded("Provenance", parts.value(child["provenance"])) if child["provenance"] else None,
        class_="card slim",
    )


def usage(run: RunRecord) -> Markup:
    """Show the usage of each stage and in total."""
    heads = ("Stage", "Input tokens", "Output tokens", "Calls", "Model time", "Cost", "Models")
    used = [(stage["node_id"], stage["usage"]) for stage in run["stages"] if stage["usage"]]
    if not used and not run["usage"]:
        return Markup()
    total = _used("Total", run["usage"]) if run["usage"] else ()
    rows = [_used(name, spent) for name, spent in used]
    return parts.section("Usage", parts.table(heads, rows, heads[1:6], total), id="usage")


def _used(name: str, spent: UsageRecord) -> Sequence[str]:
    return (
        name,
        count(spent["input_tokens"]),
        count(spent["output_tokens"]),
        count(spent["call_count"]),
        duration(spent["total_duration_ms"]) if spent["total_duration_ms"] else NONE,
        money(spent["total_cost"]) if spent["total_cost"] else NONE,
        ", ".join(spent["models"]) or NONE,
    )


def checkpoints(run: RunRecord) -> Markup:
    heads = ("Reason", "Completed", "Ready", "Saved")
    rows = [
        (
            point["reason"].replace("_", " "),
            ", ".join(point["completed_nodes"]) or NONE,
            ", ".join(point["ready_nodes"]) or NONE,
            clock(point["persisted_at"]),
        )
        for point in run["checkpoints"]
    ]
    return _section("Checkpoints", [parts.table(heads, rows)] if rows else [], count(len(rows)))


def spans(traced: Sequence[TraceSpan]) -> Markup:
    heads = ("Kind", "Name", "Took")
    rows = [(span["kind"], span["name"], duration(span["duration_ms"])) for span in traced]
    return parts.table(heads, rows, ("Took",))


def _section(title: str, content: Sequence[Markup], note: str) -> Markup:
    """Return a section, or an empty one if there is nothing to show."""
    return (
        parts.section(title, content, id=title.lower().replace(" ", "-"), note=note) if content else Markup()
    )
