"""The report on variants of a recorded run: what each comes to, with 95 % intervals. Spec: 13 §7."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harnpy.formats import markup
from harnpy.formats.markup import Markup, count, duration, element, joined, money, page, plural
from harnpy.workflow.bundle.redactor import without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harnpy.formats.dicts import Dict

#: The figures by name: how they are called.
NAMES: Final = {
    "completed": "completed",
    "passed": "passed",
    "score": "score",
    "calls": "model calls",
    "input_tokens": "input tokens",
    "output_tokens": "output tokens",
    "cost": "cost",
    "seconds": "time",
}
_SHARES: Final = ("completed", "passed")


def html_variants(varied: Dict, env: Mapping[str, str] | None = None) -> str:
    """Return one HTML document that shows what variants came to (`harnpy.tape.variants.varied`), as JSON.

    Secrets are masked, those of ``env`` too.
    """
    found = without_secrets(varied, env)
    runs = sum(len(each["runs"]) for each in found["variants"])
    title = f"Variants of call {found['call']}"
    header = joined(
        element("div", element("h1", title), class_="title"),
        element("p", markup.mono(found["tape"]), class_="facts-line"),
        markup.facts(
            [
                ("Variants", count(len(found["variants"]))),
                ("Runs", count(runs)),
                ("Calls of judges", _judges(found.get("judges"))),
                *((f"Recorded {NAMES[name]}", recorded_figure(found, name)) for name in ("cost", "seconds")),
            ]
        ),
    )
    return page(f"{title} – {found['tape']}", "A recorded run, varied", header, _sections(found))


def _judges(used: Dict | None) -> str | None:
    return None if not used or not used["calls"] else f"{count(used['calls'])}, {money(used['cost_usd'])}"


def figures_in(varied: Dict) -> list[str]:
    """Return the names of the figures that any variant has, in order."""
    return [name for name in NAMES if any(name in each["figures"] for each in varied["variants"])]


def recorded_figure(varied: Dict, name: str) -> str:
    """Return a figure of the recorded run as text."""
    value = varied["recorded"]["is_completed" if name == "completed" else name]
    if value is None:
        return markup.NONE
    return ("yes" if value else "no") if name in _SHARES else _shown(name, value)


def figure(result: Dict, name: str) -> str:
    """Return a figure of a variant as text, with its interval."""
    estimate = result["figures"].get(name)
    if estimate is None:
        return markup.NONE
    value, low, high, n = (estimate[key] for key in ("value", "low", "high", "n"))
    if name in _SHARES:
        return f"{round(value * n)}/{n} ({low:.0%}–{high:.0%})"
    if low is None or low == high:
        return _shown(name, value)
    return f"{_shown(name, value)} ± {_shown(name, high - value)}"


def _shown(name: str, value: float) -> str:
    if name == "cost":
        return money(value)
    if name == "seconds":
        return duration(value * 1000)
    if name == "score":
        return f"{value:.2f}"
    return count(int(value)) if value == int(value) else f"{value:.1f}"


def _sections(found: Dict) -> Iterator[tuple[str, Markup]]:
    names = figures_in(found)
    heads = ("Variant", *(NAMES[name].capitalize() for name in names))
    rows: list[Sequence[Any]] = [
        (element("em", "recorded"), *(recorded_figure(found, name) for name in names)),
        *((each["name"], *(figure(each, name) for name in names)) for each in found["variants"]),
    ]
    note = "mean ± half of the 95 % interval; shares with theirs"
    yield "Figures", markup.section("Figures", markup.table(heads, rows, heads[1:]), id="figures", note=note)
    yield "Intervals", _intervals(found, names)
    cards = [_variant(each) for each in found["variants"]]
    yield "Variants", markup.section("Variants", cards, id="variants", note=plural(len(cards), "variant"))


def _intervals(found: Dict, names: Sequence[str]) -> Markup:
    """Draw each figure's intervals, one below the other on the same scale."""
    shown = []
    for name in names:
        known = [(each, each["figures"][name]) for each in found["variants"] if name in each["figures"]]
        value = found["recorded"]["is_completed" if name == "completed" else name]
        ends = [end for _, it in known for end in (it["low"], it["high"], it["value"]) if end is not None]
        ends += [] if value is None else [float(value)]
        if min(ends) == max(ends):  # all of them are the same
            continue
        low, high = (0.0, 1.0) if name in (*_SHARES, "score") else (min(0.0, *ends), max(ends))
        rows: list[tuple[str, Markup]] = []
        if value is not None:
            rows.append(("recorded", markup.track("verify", *_place(float(value), float(value), low, high))))
        for each, it in known:
            first, last = (it["value"] if it[end] is None else it[end] for end in ("low", "high"))
            rows.append((each["name"], markup.track("work", *_place(first, last, low, high))))
        scale = f"{_bound(name, low)} to {_bound(name, high)}"
        shown.append(markup.folded(NAMES[name].capitalize(), _drawn(rows), note=scale, opened=True))
    return markup.section("Intervals", shown, id="intervals", note="95 %") if shown else Markup()


def _bound(name: str, value: float) -> str:
    return f"{value:.0%}" if name in _SHARES else _shown(name, value)


def _place(first: float, last: float, low: float, high: float) -> tuple[float, float]:
    """Return where a bar begins, and its width, in percent; it has a least width and stays in its track."""
    width = min(max((last - first) / (high - low) * 100, 1.0), 100.0)
    return min(max((first - low) / (high - low) * 100, 0.0), 100.0 - width), width


def _drawn(rows: Sequence[tuple[str, Markup]]) -> Markup:
    return element(
        "ol", [element("li", element("span", name), drawn) for name, drawn in rows], class_="ranges"
    )


def _variant(result: Dict) -> Markup:
    completed = sum(run["is_completed"] for run in result["runs"])
    is_good = completed == len(result["runs"])
    head = element(
        "header",
        element("h3", result["name"]),
        markup.pill(
            f"{completed} of {len(result['runs'])} completed", markup.GOOD if is_good else markup.WAITING
        ),
    )
    judged = any(run["passed"] is not None for run in result["runs"])
    heads = ("Run", "Outcome", *(("Score", "Judged") if judged else ()), "Tokens", "Cost", "Time", "Tape")
    rows = [_run(number, run, judged) for number, run in enumerate(result["runs"], 1)]
    return element(
        "article",
        head,
        markup.listed([markup.mono(change) for change in result["changes"]], bare=True)
        if result["changes"]
        else None,
        markup.table(heads, rows, ("Run", "Score", "Tokens", "Cost", "Time")),
        class_="card",
    )


def _run(number: int, run: Dict, judged: bool) -> list[Any]:
    score = markup.NONE if run["score"] is None else f"{run['score']:.2f}"
    verdict = joined(
        markup.pill("passed" if run["passed"] else "failed"),
        element("p", run["reason"], class_="note") if run["reason"] else None,
    )
    ended = markup.pill(run["status"])
    return [
        str(number),
        joined(ended, element("p", run["error"], class_="note")) if run["error"] else ended,
        *((score, verdict) if judged else ()),
        f"{count(run['input_tokens'])} / {count(run['output_tokens'])}",
        money(run["cost"]),
        duration(run["seconds"] * 1000),
        markup.mono(run["tape"]),
    ]
