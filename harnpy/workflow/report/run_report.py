"""The report on one run: its task, its course and its results."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

from harnpy.agent.people import QUESTION, requests_of
from harnpy.formats import markup
from harnpy.formats.dicts import as_dicts, dicts_at
from harnpy.formats.markup import (
    NONE,
    Markup,
    clock,
    count,
    duration,
    elapsed,
    element,
    joined,
    moment,
    money,
    page,
    pill,
    plural,
)
from harnpy.formats.shapes import read
from harnpy.workflow.bundle.redactor import without_secrets
from harnpy.workflow.bundle.sections import tool_calls as calls_of
from harnpy.workflow.chart_svg import svg
from harnpy.workflow.graph_charts import run_chart
from harnpy.workflow.records.record_shapes import RunRecord, plain_json
from harnpy.workflow.report.stage_cards import conversation, stage_card, tool_call_list, why_failed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harnpy.formats.dicts import Dict
    from harnpy.formats.markup import Cell, Child
    from harnpy.workflow.records.record_shapes import ChildRun, StageRecord, TraceSpan, UsageRecord

# A timeline: when each stage ran and for how long, as bars.


_LEAST_PERCENT = 0.6


def timeline(run: RunRecord) -> Markup:
    """Show the bars of all stages; a stage without times has none."""
    stages = run["stages"]
    starts = [moment(stage["started_at"]) for stage in stages]
    known = [at for at in (*starts, *(moment(stage["finished_at"]) for stage in stages)) if at is not None]
    first, last = (min(known), max(known)) if known else (0.0, 0.0)
    rows = [
        _row(at, stage, start, first, last - first)
        for at, (stage, start) in enumerate(zip(stages, starts, strict=True), 1)
    ]
    scale = (
        element("p", element("span", "0"), element("span", duration(last - first)), class_="scale")
        if known
        else None
    )
    return element("div", element("ol", rows, class_="timeline"), scale)


def _row(number: int, stage: StageRecord, start: float | None, first: float, span: float) -> Markup:
    took = elapsed(stage)
    bar = markup.track(None)
    if start is not None and took is not None:
        left = 100 * (start - first) / span if span else 0.0
        width = max(100 * took / span if span else 100.0, _LEAST_PERCENT)
        left = min(left, 100 - width)
        bar = markup.track(kind_of(stage), left, width)
    place = element("span", str(number), class_="number")
    name = element("a", stage["node_id"] or "(unnamed)", href=f"#stage-{number}")
    return element(
        "li",
        element("span", place, name, element("span", stage["kind"], class_="kind"), class_="who"),
        bar,
        element("span", duration(took) if took else None, class_="took"),
        element("span", pill(stage["status"]), class_="how"),
    )


def kind_of(stage: StageRecord) -> str:
    """Return the style of a bar: a failure, a verification, or other work."""
    if stage["status"] == "failed":
        return "failed"
    return "verify" if stage["kind"] == "verify" else "work"


# What a run asked people, and what they replied. Spec: 08 §8.1, `metadata.hitl`.


PEOPLE_TITLE = "People"
#: Parts of a payload that are shown as the request itself.
_SHOWN = frozenset(["prompt", "action", "reason"])


def people_section(run: RunRecord) -> Markup:
    """Show each request with its status and its replies; nothing if nobody was asked."""
    requests = requests_of(run["metadata"].get("hitl"), run["hitl_questions"])
    if not requests:
        return Markup()
    items = [element("li", _request(request)) for request in requests]
    return markup.section(
        PEOPLE_TITLE,
        element("ol", items, class_="questions"),
        id=PEOPLE_TITLE.lower(),
        note=count(len(items)),
    )


def _request(request: Dict) -> list[Child]:
    """A request; in what programs and bundles hold, any value may be of another kind than it should."""
    kind, payload = _word(request.get("kind")), request.get("payload")
    more = (
        {key: value for key, value in payload.items() if key not in _SHOWN}
        if isinstance(payload, dict)
        else {}
    )
    return [
        element(
            "p",
            markup.pill(_word(request.get("status")) or "pending"),
            markup.tag(kind.replace("_", " ")) if kind not in ("", QUESTION) else None,
        ),
        _said(request.get("prompt")),
        element(
            "p", markup.apart(_word(request.get("agent")), _time(request.get("requested_at"))), class_="note"
        ),
        markup.folded("Details", markup.value(more)) if more else None,
        *(_response(response) for response in dicts_at(request, "responses")),
    ]


def _response(response: Dict) -> Markup:
    verdict = {
        ("approved", True): "approved",
        ("approved", False): "denied",
        ("accepted", True): "accepted",
    }
    decided = next((word for (key, value), word in verdict.items() if response.get(key) is value), None)
    who = markup.apart(_word(response.get("reviewer")), decided, _time(response.get("responded_at")))
    return element(
        "div",
        element("p", who, class_="note"),
        _said(response.get("answer")),
        _said(response.get("reason")),
        class_="said",
    )


def _said(given: Any) -> Child:
    """A text, or a value in its place, such as the length of one that was left out."""
    if given is None or given == "":
        return None
    return markup.prose(given) if isinstance(given, str) else markup.value(given)


def _word(given: Any) -> str:
    return given if isinstance(given, str) else ""


def _time(stamp: Any) -> str | None:
    return clock(stamp) if stamp else None


# The sections of a run besides its stages: artifacts, child runs, usage, checkpoints, spans.


#: Keys of an agent's result that its stage's card shows.
_ELSEWHERE = frozenset(
    "transcript prompt system_prompt rendered_context rendered_verification_context text visible_text "
    "verification_contracts".split()
)


def artifacts_section(items: Any) -> Markup:
    made = as_dicts(items)
    return _section("Artifacts", [_artifact(item) for item in made], count(len(made)))


def _artifact(item: Dict) -> Markup:
    facts = markup.apart(
        item.get("source") and f"from {item['source']}",
        item.get("freshness"),
        f"about {count(item['estimated_tokens'])} tokens" if item.get("estimated_tokens") else None,
    )
    head = element(
        "header",
        element("h3", item.get("title") or item.get("id") or "(untitled)"),
        markup.tag(str(item.get("kind"))),
    )
    return element(
        "article",
        head,
        element("p", facts, class_="facts-line") if facts else None,
        markup.folded("Text", markup.prose(item["text"]), opened=len(item["text"]) < 240)
        if item.get("text")
        else None,
        markup.folded("Data", markup.value(_brief(item["data"]))) if item.get("data") is not None else None,
        class_="card slim",
    )


def _brief(data: Any) -> Any:
    if not isinstance(data, dict):
        return data
    return {
        key: "(shown with the stage)" if key in _ELSEWHERE and item else item for key, item in data.items()
    }


def child_runs_section(children: Sequence[ChildRun]) -> Markup:
    return _section("Child runs", [_child(child) for child in children], count(len(children)))


def _child(child: ChildRun) -> Markup:
    return element(
        "article",
        element(
            "header", element("h3", child["worker_name"] or child["worker_id"]), markup.pill(child["status"])
        ),
        markup.prose(child["task"]) if child["task"] else None,
        markup.facts(
            [
                ("Run", markup.mono(child["run_id"]) if child["run_id"] else None),
                ("Took", duration(elapsed(child)) if elapsed(child) else None),
                ("May change", child["mutation_scope"]),
                ("Record", markup.mono(child["run_path"]) if child["run_path"] else None),
            ]
        ),
        markup.folded("Request", markup.value(child["request"])) if child["request"] else None,
        markup.folded("Provenance", markup.value(child["provenance"])) if child["provenance"] else None,
        class_="card slim",
    )


def usage_section(run: RunRecord) -> Markup:
    """Show the usage of each stage and in total: stages and columns that have some."""
    names = ("Stage", "Input tokens", "Output tokens", "Calls", "Model time", "Cost", "Models")
    used = [_used(stage["node_id"], stage["usage"]) for stage in run["stages"] if stage["usage"]]
    rows = [row for row in used if any(row[1:])]
    total = _used("Total", run["usage"]) if run["usage"] else ("",) * len(names)
    kept = [at for at in range(len(names)) if any(row[at] for row in (*rows, total))]
    if not rows and not any(total[1:]):
        return Markup()
    heads, *cells = ([row[at] or NONE for at in kept] for row in (names, *rows, total))
    foot = cells.pop() if any(total[1:]) else []
    return markup.section("Usage", markup.table(heads, cells[: len(rows)], heads[1:], foot), id="usage")


def _used(name: str, spent: UsageRecord) -> Sequence[str]:
    """Return the cells of a row, "" for what is zero."""
    return (
        name,
        *(count(spent[key]) if spent[key] else "" for key in ("input_tokens", "output_tokens", "call_count")),
        duration(spent["total_duration_ms"]) if spent["total_duration_ms"] else "",
        money(spent["total_cost"]) if spent["total_cost"] else "",
        ", ".join(spent["models"]),
    )


def checkpoints_section(run: RunRecord) -> Markup:
    heads = ("Reason", "Completed", "Ready", "Saved")
    rows = [
        (
            point["reason"].replace("_", " "),
            ", ".join(point["completed_nodes"]),
            ", ".join(point["ready_nodes"]),
            clock(point["persisted_at"]),
        )
        for point in run["checkpoints"]
    ]
    return _section("Checkpoints", [markup.table(heads, rows)] if rows else [], count(len(rows)))


def spans_section(traced: Sequence[TraceSpan]) -> Markup:
    heads = ("Kind", "Name", "Took")
    rows = [(span["kind"], span["name"], duration(span["duration_ms"])) for span in traced]
    return markup.table(heads, rows, ("Took",))


def _section(title: str, content: Sequence[Markup], note: str) -> Markup:
    """Return a section, or an empty one if there is nothing to show."""
    return (
        markup.section(title, content, id=title.lower().replace(" ", "-"), note=note) if content else Markup()
    )


def html_report(run: Mapping[str, Any], env: Mapping[str, str] | None = None) -> str:
    """Return one HTML document that shows a run record, secrets masked, those of ``env`` too.

    Raise `MisuseError` for a field of the record that has a wrong type.
    """
    record = known(run, env)
    name = name_of(record)
    return page(f"{name} – {record['status']}", "Workflow run", _header(record, name), _sections(record))


def cell_of_run(run: Mapping[str, Any], env: Mapping[str, str] | None = None) -> Cell:
    """Return a run's stages as a cell of a notebook, secrets masked.

    Raise `MisuseError` for a field of the record that has a wrong type.
    """
    record = known(run, env)
    rows = [
        (stage["node_id"], stage["kind"], stage["status"], why_failed(stage), duration(elapsed(stage)))
        for stage in record["stages"]
    ]
    pairs = [("", record["status"]), *figures_of(record)]
    return markup.cell(f"Run {name_of(record)}", pairs, ("Stage", "Kind", "Status", "Outcome", "Took"), rows)


def sections_of(run: Mapping[str, Any], env: Mapping[str, str] | None = None) -> list[tuple[str, Markup]]:
    """Return the sections of a run's report by their names, secrets masked, for a page of another kind.

    Raise `MisuseError` for a field of the record that has a wrong type.
    """
    return [(name, shown) for name, shown in _sections(known(run, env)) if shown]


def known(run: Mapping[str, Any], env: Mapping[str, str] | None = None) -> RunRecord:
    """Return the record with every key and without secrets."""
    masked: RunRecord = without_secrets(read(RunRecord, plain_json(run)), env)
    return masked


def name_of(run: RunRecord) -> str:
    return str(run["workflow_name"] or run["workflow_id"] or run["id"] or "run")


def figures_of(run: RunRecord) -> list[tuple[str, Any]]:
    """Return what a run took: time, money, tokens."""
    usage, took = run["usage"], elapsed(run)
    sides = (("in", usage["input_tokens"]), ("out", usage["output_tokens"])) if usage else ()
    tokens = [joined(" ", count(number), element("small", f" {side}")) for side, number in sides if number]
    return [
        ("Duration", duration(took) if took else None),
        ("Cost", money(usage["total_cost"]) if usage and usage["total_cost"] else None),
        ("Tokens", joined(*tokens) if tokens else None),
        ("Model calls", count(usage["call_count"]) if usage and usage["call_count"] else None),
        ("Stages", count(len(run["stages"])) if run["stages"] else None),
    ]


def _header(run: RunRecord, name: str) -> Markup:
    models = ", ".join(run["usage"]["models"] if run["usage"] else ())
    small = [
        ("Run", markup.mono(run["id"]) if run["id"] else None),
        ("Started", clock(run["started_at"]) if run["started_at"] else None),
        ("Models", models),
        ("Part of", markup.mono(run["parent_run_id"]) if run["parent_run_id"] else None),
    ]
    return joined(
        element("div", element("h1", name), markup.pill(run["status"]), class_="title"),
        element("blockquote", run["task"]) if run["task"] else None,
        markup.facts(figures_of(run)),
        _trouble(run),
        element("div", markup.facts(small), class_="small"),
    )


def _trouble(run: RunRecord) -> Markup | None:
    """Show what went wrong before anything else: most readers come for it."""
    stages = list(enumerate(run["stages"], 1))
    failed = [(at, stage) for at, stage in stages if stage["status"] == "failed"]
    if not failed:
        return None
    said = f"{len(failed)} of {plural(len(stages), 'stage')} failed"
    mended = [_mended(at, stage, stages) for at, stage in failed]
    return markup.callout(
        markup.WAITING if all(mended) else markup.BAD,
        element("strong", said),
        markup.listed(
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
        yield "Timeline", markup.section("Timeline", timeline(run), id="timeline")
        yield "Path", markup.section("Path", _path(run), id="path")
        cards = [
            stage_card(at, stage, [call for call in calls if call["stage_id"] == stage["id"]])
            for at, stage in enumerate(run["stages"], 1)
        ]
        yield "Stages", markup.section("Stages", cards, id="stages", note=count(len(cards)))
    else:
        yield "", element("p", "This run has no stages.", class_="note")
    ids = {stage["id"] for stage in run["stages"]}
    others = [call for call in calls if call["stage_id"] not in ids]
    if others:
        yield (
            "Tool calls",
            markup.section("Tool calls", tool_call_list(others), id="tool-calls", note=count(len(others))),
        )
    yield PEOPLE_TITLE, people_section(run)
    yield "Child runs", child_runs_section(run["child_runs"])
    yield "Artifacts", artifacts_section(run["artifacts"])
    yield "Usage", usage_section(run)
    yield "Checkpoints", checkpoints_section(run)
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
            joined(" on ", markup.tag(step["branch"])) if step["branch"] else None,
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
        markup.folded("Trace spans", spans_section(run["trace_spans"]), note=count(len(run["trace_spans"])))
        if run["trace_spans"]
        else None,
        *(markup.folded(title, markup.value(value)) for title, value in rest.items() if value),
    ]
    return (
        markup.section("Rest", element("div", folded, class_="more-of-it"), id="rest")
        if any(folded)
        else Markup()
    )
