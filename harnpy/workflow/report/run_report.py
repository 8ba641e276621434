"""The report on one run: its task, its course and its results."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

from harnpy.workflow.bundle.redactor import without_secrets
from harnpy.workflow.bundle.tool_calls import tool_calls as calls_of
from harnpy.workflow.records.plain_json import plain
from harnpy.workflow.records.record_shapes import RUN
from harnpy.workflow.report import parts
from harnpy.workflow.report.conversation import conversation
from harnpy.workflow.report.figures import clock, count, duration, elapsed, money, plural
from harnpy.workflow.report.markup import Markup, element, joined
from harnpy.workflow.report.page import page
from harnpy.workflow.report.people_section import TITLE, people
from harnpy.workflow.report.run_sections import artifacts, checkpoints, child_runs, spans, usage
from harnpy.workflow.report.stage_cards import stage_card, why_failed
from harnpy.workflow.report.timeline import timeline
from harnpy.workflow.report.tool_call_list import tool_calls
from harnpy.workflow.shapes import read
from harnpy.workflow.viz.pictures import run_chart
from harnpy.workflow.viz.svg import svg

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from harnpy.workflow.records.record_types import RunRecord, StageRecord


def html_report(run: Mapping[str, Any], env: Mapping[str, str] | None = None) -> str:
    """Return one HTML document that shows a run record, secrets masked, those of ``env`` too.

    Raise `MisuseError` for a field of the record that has a wrong type.
    """
    record = known(run, env)
    name = name_of(record)
    return page(f"{name} – {record['status']}", "Workflow run", _header(record, name), _sections(record))


def known(run: Mapping[str, Any], env: Mapping[str, str] | None = None) -> RunRecord:
    """Return the record with every key and without secrets."""
    masked: RunRecord = without_secrets(read(RUN, plain(run)), env)
    return masked


def name_of(run: RunRecord) -> str:
    return str(run["workflow_name"] or run["workflow_id"] or run["id"] or "run")


def figures_of(run: RunRecord) -> list[tuple[str, Any]]:
    """Return what a run took: time, money, tokens."""
    usage = run["usage"]
    tokens = (usage["input_tokens"], usage["output_tokens"]) if usage else (0, 0)
    return [
        ("Duration", duration(elapsed(run))),
        ("Cost", money(usage and usage["total_cost"])),
        (
            "Tokens",
            joined(count(tokens[0]), element("small", " in "), count(tokens[1]), element("small", " out")),
        ),
        ("Model calls", count(usage and usage["call_count"])),
        ("Stages", count(len(run["stages"]))),
    ]


def _header(run: RunRecord, name: str) -> Markup:
    models = ", ".join(run["usage"]["models"] if run["usage"] else ())
    small = [
        ("Run", parts.mono(run["id"]) if run["id"] else None),
        ("Started", clock(run["started_at"]) if run["started_at"] else None),
        ("Models", models),
        ("Part of", parts.mono(run["parent_run_id"]) if run["parent_run_id"] else None),
    ]
    return joined(
        element("div", element("h1", name), parts.pill(run["status"]), class_="title"),
        element("blockquote", run["task"]) if run["task"] else None,
        parts.facts(figures_of(run)),
        _trouble(run),
        element("div", parts.facts(small), class_="small"),
    )


def _trouble(run: RunRecord) -> Markup | None:
    """Show what went wrong before anything else: most readers come for it."""
    stages = list(enumerate(run["stages"], 1))
    failed = [(at, stage) for at, stage in stages if stage["status"] == "failed"]
    if not failed:
        return None
    said = f"{len(failed)} of {plural(len(stages), 'stage')} failed"
    mended = [_mended(at, stage, stages) for at, stage in failed]
    return parts.callout(
        parts.WAITING if all(mended) else parts.BAD,
        element("strong", said),
        parts.listed(
            joined(
                _to_stage(at, stage),
                f": {why_failed(stage)}",
                joined("; completed as ", _to_stage(*later)) if later else None,
            )
            for (at, stage), later in zip(failed, mended, strict=True)
        ),
    )


def _mended(
    at: int, stage: StageRecord, stages: list[tuple[int, StageRecord]]
) -> tuple[int, StageRecord] | None:
    """Return the node's last later stage, if that one didn't fail."""
    later = [(place, other) for place, other in stages[at:] if other["node_id"] == stage["node_id"]]
    return later[-1] if later and later[-1][1]["status"] != "failed" else None


def _to_stage(at: int, stage: StageRecord) -> Markup:
    return element("a", f"{at} {stage['node_id']}", href=f"#stage-{at}")


def _sections(run: RunRecord) -> Iterator[tuple[str, Markup]]:
    calls = calls_of(run)
    if run["stages"]:
        yield "Timeline", parts.section("Timeline", timeline(run), id="timeline")
        yield "Path", parts.section("Path", _path(run), id="path")
        cards = [
            stage_card(at, stage, [call for call in calls if call["stage_id"] == stage["id"]])
            for at, stage in enumerate(run["stages"], 1)
        ]
        yield "Stages", parts.section("Stages", cards, id="stages", note=count(len(cards)))
    else:
        yield "", element("p", "This run has no stages.", class_="note")
    ids = {stage["id"] for stage in run["stages"]}
    others = [call for call in calls if call["stage_id"] not in ids]
    if others:
        yield (
            "Tool calls",
            parts.section("Tool calls", tool_calls(others), id="tool-calls", note=count(len(others))),
        )
    yield TITLE, people(run)
    yield "Child runs", child_runs(run["child_runs"])
    yield "Artifacts", artifacts(run["artifacts"])
    yield "Usage", usage(run)
    yield "Checkpoints", checkpoints(run)
    yield "Rest", _rest(run)


def _path(run: RunRecord) -> Markup:
    """Show the chart as a separate image, so that its style and the page's don't mix."""
    drawn = svg(run_chart(run), f"The path of {name_of(run)}")
    source = b64encode(drawn.encode("utf-8", "replace")).decode()
    picture = element("img", src=f"data:image/svg+xml;base64,{source}", alt="The path as a chart")
    steps = [
        joined(
            element("b", step["from_node_id"] or "start"),
            " → ",
            element("b", step["to_node_id"]),
            joined(" on ", parts.tag(step["branch"])) if step["branch"] else None,
        )
        for step in run["transitions"]
    ]
    pending = ", ".join(run["pending_nodes"])
    steps_taken = element(
        "div",
        element("ol", [element("li", step) for step in steps]) if steps else None,
        element("p", f"Left to do: {pending}", class_="note") if pending else None,
    )
    return element("div", element("div", picture, class_="picture", tabindex="0"), steps_taken, class_="path")


def _rest(run: RunRecord) -> Markup:
    rest = {
        "Handoffs": run["handoffs"],
        "Policy": run["policy"],
        "Execution": run["execution"],
        "Replay fixture": run["replay_fixture"],
        "Metadata": {key: value for key, value in run["metadata"].items() if key != "hitl"},
    }
    folded = [
        conversation(run["transcript"], "The run's own transcript"),
        parts.folded("Trace spans", spans(run["trace_spans"]), note=count(len(run["trace_spans"])))
        if run["trace_spans"]
        else None,
        *(parts.folded(title, parts.value(value)) for title, value in rest.items() if value),
    ]
    return (
        parts.section("Rest", element("div", folded, class_="more-of-it"), id="rest")
        if any(folded)
        else Markup()
    )
