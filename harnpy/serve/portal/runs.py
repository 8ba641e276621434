"""The pages of runs: all of them, and one with its steps in time and what it came to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.formats import markup
from harnpy.formats.markup import Markup, duration, element, joined, moment
from harnpy.serve.portal.session import request_card
from harnpy.serve.portal.shell import address, button, crumbs, field, page, tabs, time
from harnpy.workflow.engines.contract import CANCELLED, COMPLETED, ENDED, FAILED, RUNNING, WAITING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.responses import HTMLResponse

    from harnpy.client import types as t
    from harnpy.formats.markup import Child
    from harnpy.serve.service import Caller, Service


async def runs_page(service: Service, caller: Caller, query: Mapping[str, str]) -> HTMLResponse:
    status, after = query.get("status"), query.get("after")
    found = await service.runs(caller, status=status, limit=100, after=after)
    rows = [
        (
            element("a", run.name or run.id, href=address("runs", run.id)),
            markup.tag(run.kind),
            markup.pill(run.status),
            markup.count(run.steps),
            duration(_took(run)),
            time(run.created_at),
        )
        for run in found.runs
    ]
    heads = ("Run", "Kind", "Status", "Steps", "Took", "Begun")
    more = address("runs", status=status, after=found.next) if found.next else None
    return page(
        "Runs",
        tabs("Runs", status, _STATUSES, lambda each: address("runs", status=each)),
        markup.table(heads, rows, ("Steps", "Took"))
        if rows
        else element("p", "There is no run here.", class_="empty"),
        element("p", element("a", "More", href=more), class_="more") if more else None,
        caller=caller,
        here="Runs",
    )


_STATUSES = (RUNNING, WAITING, COMPLETED, FAILED, CANCELLED)


def _took(run: t.Run) -> float | None:
    begun, ended = moment(run.started_at), moment(run.ended_at)
    return None if begun is None or ended is None else max(0.0, ended - begun)


async def run_page(service: Service, caller: Caller, id: str) -> HTMLResponse:
    run = await service.run(caller, id)
    steps = await steps_of(service, caller, run)
    waiting = await requests_of(service, caller, id)
    live = None if run.status in ENDED else address("runs", id, "live")
    regions = run_regions(run, steps, waiting, caller)
    return page(
        run.name or id,
        crumbs(("Runs", "/runs")),
        element("div", element("h1", run.name or id), regions["state"], class_="title"),
        regions["facts"],
        element("p", id="trouble", role="alert"),
        regions["requests"],
        regions["verbs"],
        element("div", regions["steps"], regions["result"], class_="run", data_live=live),
        caller=caller,
        here="Runs",
    )


async def requests_of(service: Service, caller: Caller, id: str) -> list[t.Request]:
    """Return what of a run waits for people."""
    return [each for each in (await service.requests(caller)).requests if each.run == id]


async def steps_of(service: Service, caller: Caller, run: t.Run) -> list[t.RunStep]:
    """Return the steps that a run has."""
    return await service.run_steps(caller, run.id)


def run_regions(
    run: t.Run, steps: Sequence[t.RunStep], waiting: Sequence[t.Request], caller: Caller
) -> dict[str, Markup]:
    """Return what of a run's page changes while it runs, by ids."""
    shown = [request_card(request, caller.may("approve")) for request in waiting]
    made: dict[str, Child] = {
        "state": markup.pill(run.status),
        "facts": _facts(run),
        "requests": shown,
        "verbs": _verbs(run) if caller.may("write") else None,
        "steps": None if _is_record(run.output) else _steps(run, steps),
        "result": _result(run),
    }
    return {
        id: element(
            "span" if id == "state" else "div",
            inside,
            id=id,
            aria_live="polite" if id == "requests" else None,
        )
        for id, inside in made.items()
    }


def _is_record(output: Any) -> bool:
    """Return whether a run came to a record, which shows its stages itself."""
    return isinstance(output, dict) and output.get("_type") == "run_record"


def _facts(run: t.Run) -> Markup:
    small = [("Run", markup.mono(run.id)), ("Begun", time(run.created_at)), ("Ended", time(run.ended_at))]
    return joined(
        markup.facts(
            [("Took", duration(_took(run))), ("Steps", markup.count(run.steps)), ("Kind", run.kind)]
        ),
        element("div", markup.facts(small), class_="small"),
        markup.callout(markup.BAD, element("strong", "Error "), run.error) if run.error else None,
    )


def _verbs(run: t.Run) -> Child:
    again = button("Resume", address("runs", run.id, "resume"))
    if run.status in ENDED:
        return element("div", again, class_="inline") if run.status != COMPLETED else None
    steer = element(
        "form",
        field("message", "Steer", required=True, autocomplete="off", placeholder="a message to the run"),
        element("button", "Send"),
        method="post",
        action=address("runs", run.id, "steer"),
        class_="inline live",
    )
    stop = button("Cancel the run", address("runs", run.id, "cancel"), kind="danger")
    return element("div", steer, again if run.left else None, stop, class_="inline")


def _steps(run: t.Run, steps: Sequence[t.RunStep]) -> Markup:
    """Show the steps as bars, each from the end of the one before, and what each came to."""
    if not steps:
        return element("p", "No step has ended yet.", class_="empty")
    ends = [moment(step.time) for step in steps]
    begun = moment(run.started_at)
    known = [at for at in (begun, *ends) if at is not None]
    first, last = (min(known), max(known)) if known else (0.0, 0.0)
    rows: list[Markup] = []
    before = begun if begun is not None else first
    for step, end in zip(steps, ends, strict=True):
        rows.append(_step(step, before, end, first, last - first))
        before = before if end is None else end
    scale = element("p", element("span", "0"), element("span", duration(last - first)), class_="scale")
    outputs = [
        markup.folded(f"{step.n}. {step.key}", markup.value(_short(step.output)), note=_kind(step.output))
        for step in steps
    ]
    return joined(
        markup.section("Timeline", element("ol", rows, class_="timeline"), scale, id="step-times"),
        markup.section(
            "Steps", element("div", outputs, class_="more-of-it"), id="outputs", note=markup.count(len(steps))
        ),
    )


_LEAST_PERCENT = 0.6


def _step(step: t.RunStep, before: float, end: float | None, first: float, span: float) -> Markup:
    took = None if end is None else max(0.0, end - before)
    shown = markup.track(None)
    if took is not None:
        width = max(100 * took / span if span else 100.0, _LEAST_PERCENT)
        shown = markup.track("work", min(100 * (before - first) / span if span else 0.0, 100 - width), width)
    name = element("span", element("span", str(step.n), class_="number"), step.key, class_="who")
    return element("li", name, shown, element("span", duration(took), class_="took"), time(step.time))


def _kind(output: Any) -> str:
    if isinstance(output, str):
        return markup.plural(len(output), "character")
    if isinstance(output, (dict, list)):
        return markup.plural(len(output), "item")
    return ""


#: How much of an output is shown, in characters.
_MOST = 20_000


def _short(output: Any) -> Any:
    if isinstance(output, str) and len(output) > _MOST:
        return f"{output[:_MOST]}…"
    return output


def _result(run: t.Run) -> Child:
    """Show what a run came to: the sections of the report where that is a record, else the value."""
    if run.output is None:
        return None
    if _is_record(run.output):
        from harnpy.faults import MisuseError
        from harnpy.workflow.report import sections_of

        try:
            return element("div", [shown for _, shown in sections_of(run.output)], class_="record")
        except MisuseError:  # a record that harnpy didn't write: shown as any other value
            pass
    return markup.section("Result", markup.value(_short(run.output)), id="output")
