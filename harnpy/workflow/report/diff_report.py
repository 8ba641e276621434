"""The reports on the differences between two runs: two records, or two tapes. Spec: 08 §8.5, 13 §6."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.formats import markup
from harnpy.formats.json import compact_json
from harnpy.formats.markup import Markup, count, duration, element, joined, money, page, plural
from harnpy.workflow.bundle.redactor import without_secrets
from harnpy.workflow.report.run_report import figures_of, known, name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from harnpy.formats.dicts import Dict
    from harnpy.workflow.records.record_shapes import RunRecord


def html_diff(
    left: Mapping[str, Any],
    right: Mapping[str, Any],
    diff: Mapping[str, Any],
    env: Mapping[str, str] | None = None,
) -> str:
    """Return one HTML document that shows the result of `run_record_diff(left, right)`.

    Secrets are masked, those of ``env`` too.
    """
    before, after, found = known(left, env), known(right, env), without_secrets(diff, env)
    name = name_of(after)
    verdict = "identical" if found["identical"] else "different"
    header = joined(
        element("div", element("h1", name), markup.pill(verdict), class_="title"),
        element("div", _run("Before", before), _run("After", after), class_="two"),
    )
    return page(f"{name} – two runs compared", "Two runs compared", header, _sections(before, after, found))


def _run(side: str, run: RunRecord) -> Markup:
    head = element("header", element("h3", side), markup.pill(run["status"]))
    return element(
        "article",
        head,
        element("p", markup.mono(run["id"]), class_="facts-line"),
        markup.facts(figures_of(run)),
        class_="card slim",
    )


def _sections(left: RunRecord, right: RunRecord, diff: Dict) -> Iterator[tuple[str, Markup]]:
    if diff["identical"]:
        yield "", markup.callout(markup.GOOD, "The same stages, outcomes, branches, tools and results.")
    yield _changes("Stages", [_stage(change, left, right) for change in diff["stage_diffs"]])
    yield _changes("Tools", [_tool(change) for change in diff["tool_diffs"]])
    yield "Observed", _observed(diff["observability_diffs"])
    yield "Counts", _counts(left, right, diff)


def _changes(title: str, cards: Sequence[Markup]) -> tuple[str, Markup]:
    """Return a section with a card for each change, and its name; an empty one without changes."""
    note = plural(len(cards), "change")
    return title, markup.section(title, cards, id=title.lower(), note=note) if cards else Markup()


def _observed(changes: Sequence[Dict]) -> Markup:
    rows = [
        (change["section"].replace("_", " "), change["label"], markup.listed(change["details"]))
        for change in changes
    ]
    table = markup.table(("Section", "What", "Details"), rows)
    return markup.section("Observed", table, id="observed") if rows else Markup()


def _counts(left: Mapping[str, Any], right: Mapping[str, Any], diff: Dict) -> Markup:
    rows = [
        (
            f"{what.capitalize()}s",
            f"{diff[f'{what}_count_delta']:+d}",
            count(len(left[f"{what}s"])),
            count(len(right[f"{what}s"])),
        )
        for what in ("transition", "artifact", "checkpoint")
        if diff[f"{what}_count_delta"]
    ]
    heads = ("Count of", "Change", "Before", "After")
    table = markup.table(heads, rows, heads[1:])
    return markup.section("Counts", table, id="counts") if rows else Markup()


def _stage(change: Dict, left: RunRecord, right: RunRecord) -> Markup:
    mood = {"added": markup.GOOD, "removed": markup.BAD}.get(change["change"], markup.WAITING)
    said = [_said(run, change["node_id"]) for run in (left, right)]
    texts = None
    if said[0] != said[1]:
        texts = element(
            "div",
            [
                _side(title, markup.prose(text) if text else None)
                for title, text in zip(("Before", "After"), said, strict=True)
            ],
            class_="two",
        )
    return element(
        "article",
        element("header", element("h3", change["node_id"]), markup.pill(change["change"], mood)),
        markup.listed(change["details"]),
        texts,
        class_="card",
    )


def _said(run: RunRecord, node_id: str) -> str | None:
    """Return the visible text of a node's last stage; None if it never ran."""
    texts = [stage["visible_text"] or "" for stage in run["stages"] if stage["node_id"] == node_id]
    return texts[-1] if texts else None


def _side(title: str, shown: Markup | None) -> Markup:
    return element("div", element("h5", title), shown or element("p", "none", class_="note"))


def _tool(change: Dict) -> Markup:
    head = element(
        "header", element("h3", change["tool_name"]), markup.tag(f"arguments {change['args_hash']}")
    )
    sides = [
        _side(title, None if result is None else markup.value(result))
        for title, result in (("Before", change["left_result"]), ("After", change["right_result"]))
    ]
    return element("article", head, element("div", sides, class_="two"), class_="card slim")


# Two tapes, as `harnpy.tape.comparison` compares them.


def html_tapes(comparison: Dict, env: Mapping[str, str] | None = None) -> str:
    """Return one HTML document that shows the comparison of two tapes, given as JSON.

    Secrets are masked, those of ``env`` too.
    """
    found = without_secrets(comparison, env)
    before, after = found["a"], found["b"]
    verdict = "identical" if found["is_identical"] else "different"
    name = str(after["program"])
    header = joined(
        element("div", element("h1", name), markup.pill(verdict), class_="title"),
        element("div", _side_of_tapes("Before", before), _side_of_tapes("After", after), class_="two"),
        _parted(found),
    )
    return page(f"{name} – two runs compared", "Two runs compared", header, _parts(found))


def totals_of(comparison: Dict) -> list[tuple[str, str, str, str]]:
    """Return the figures of two runs: the name, both values, the difference; empty for none."""
    rows = []
    for name, key, shown in (
        ("model calls", "calls", count),
        ("input tokens", "input_tokens", count),
        ("output tokens", "output_tokens", count),
        ("cost", "cost", money),
        ("time", "seconds", _seconds),
        ("effects", "effects", count),
    ):
        old, new = (comparison[side][key] for side in ("a", "b"))
        rows.append((name, shown(old), shown(new), _change(old, new, shown)))
    old, new = (comparison[side]["status"] for side in ("a", "b"))
    rows.append(("outcome", old, new, "" if old == new else "changed"))
    return rows


def _change(old: float | None, new: float | None, shown: Callable[[Any], str]) -> str:
    if old is None or new is None or shown(abs(new - old)) == shown(0):
        return ""
    return f"{'+' if new > old else '−'}{shown(abs(new - old))}"


def _seconds(seconds: float | None) -> str:
    return duration(None if seconds is None else seconds * 1000)


def _side_of_tapes(side: str, run: Dict) -> Markup:
    value = None if run["value"] is None else markup.mono(compact_json(run["value"]))
    ended = element("p", run["error"] or value) if run["error"] or value else None
    return element(
        "article",
        element("header", element("h3", side), markup.pill(run["status"])),
        element("p", markup.mono(run["path"]), class_="facts-line"),
        element("p", branch_in_words(run), class_="note") if run["branch"] else None,
        ended,
        markup.callout(markup.WAITING, f"Its replay ends early: {run['unreplayed']}")
        if run["unreplayed"]
        else None,
        class_="card slim",
    )


def branch_in_words(side: Dict) -> str:
    """Return of what tape a run is a branch, and what was changed."""
    origin = side["branch"]
    changed = ", ".join(origin["changed"]) or "nothing changed"
    return f"{side['path']} is a branch of {origin['tape']} at call {origin['call']}: {changed}"


def _parted(found: Dict) -> Markup:
    parted = found["parted"]
    if found["is_identical"]:
        return markup.callout(markup.GOOD, "The same effects, replies, output, files and outcome.")
    if parted is None:
        return markup.callout(markup.WAITING, "Every effect is the same.")
    return markup.callout(
        markup.WAITING,
        element("strong", "They part", [" at ", markup.mono(parted["place"])] if parted["place"] else None),
        element("p", f"{place_in_both(parted)}: {parted['words']}"),
    )


def place_in_both(parted: Dict) -> str:
    """Return where two runs part, as a number of the effect, or both numbers."""
    one, other = parted["a"], parted["b"]
    if one == other or None in (one, other):
        return f"at effect {one or other}"
    return f"at effect {one}, now {other}"


def _parts(found: Dict) -> Iterator[tuple[str, Markup]]:
    heads = ("", "Before", "After", "Difference")
    rows = [(name.capitalize(), *values) for name, *values in totals_of(found)]
    yield "Totals", markup.section("Totals", markup.table(heads, rows, heads[1:]), id="totals")
    yield _pairs_of_calls(found["calls"])
    if found["output"]:
        yield "Output", markup.section("Output", markup.diff(found["output"]), id="output")
    yield _files(found["files"])
    sessions = [_session(each) for each in found["sessions"]]
    yield _diffs("Sessions", sessions, plural(len(sessions), "session"))


def _pairs_of_calls(pairs: Sequence[Dict]) -> tuple[str, Markup]:
    name = "Model calls"
    if not pairs:
        return name, Markup()
    cards = [_call(pair) for pair in pairs if not pair["is_same"]]
    same = [pair for pair in pairs if pair["is_same"]]
    rows = [(numbers_of(pair), *_figures(pair)) for pair in same]
    heads = ("Call", "Model", "Reply", "Tokens", "Cost", "Time")
    table = markup.table(heads, rows, heads[3:])
    return name, markup.section(
        name,
        cards,
        markup.folded("The same in both", table, note=plural(len(same), "call")) if same else None,
        id="model-calls",
        note=f"{plural(len(cards), 'difference')} in {plural(len(pairs), 'call')}",
    )


def numbers_of(pair: Dict) -> str:
    """Return the number of a call, or those in both runs."""
    calls = [call for call in (pair["a"], pair["b"]) if call is not None]
    return " → ".join(dict.fromkeys(str(call["number"]) for call in calls))


def _figures(pair: Dict) -> tuple[str, str, str, str, str]:
    one, other = pair["a"], pair["b"]
    return (
        one["model"],
        said_of(one),
        _both(tokens_of(one), tokens_of(other)),
        _both(money(one["cost"]), money(other["cost"])),
        _both(_seconds(one["seconds"]), _seconds(other["seconds"])),
    )


def _both(one: str, other: str) -> str:
    return one if one == other else f"{one} → {other}"


def tokens_of(call: Dict) -> str:
    """Return the tokens of a call: in and out."""
    return f"{count(call['input_tokens'])} / {count(call['output_tokens'])}"


def said_of(call: Dict) -> str:
    """Return the first line of what a call came to: an error, the reply, or the tools that were called."""
    said = call["error"] or call["reply"]
    if said.strip():
        return str(said).strip().partition("\n")[0]
    return ", ".join(f"calls {name}({compact_json(given)})" for name, given in call["tools"])


def _call(pair: Dict) -> Markup:
    one, other = pair["a"], pair["b"]
    change = "added" if one is None else "removed" if other is None else "changed"
    mood = {"added": markup.GOOD, "removed": markup.BAD}.get(change, markup.WAITING)
    head = element(
        "header",
        element("span", numbers_of(pair), class_="number"),
        element("h3", (other or one)["model"]),
        markup.pill(change, mood),
    )
    asked = [
        joined(element("strong", each["what"]), ": ", markup.mono(each["a"]), " → ", markup.mono(each["b"]))
        for each in pair["asked"]
    ]
    sides = [
        _side(title, None if call is None else _reply(call))
        for title, call in (("Before", one), ("After", other))
    ]
    return element(
        "article",
        head,
        joined(element("h5", "Asked otherwise"), markup.listed(asked, bare=True)) if asked else None,
        element("div", sides, class_="two"),
        class_="card",
    )


def _reply(call: Dict) -> Markup:
    tools = [
        joined("calls ", markup.mono(str(name)), " ", markup.mono(compact_json(given)))
        for name, given in call["tools"]
    ]
    return joined(
        markup.callout(markup.BAD, call["error"]) if call["error"] else None,
        markup.prose(call["reply"]) if call["reply"] else None,
        markup.listed(tools, bare=True) if tools else None,
        element(
            "p",
            markup.apart(
                f"{tokens_of(call)} tokens",
                None if call["cost"] is None else money(call["cost"]),
                _seconds(call["seconds"]),
            ),
            class_="facts-line",
        ),
    )


def _diffs(title: str, cards: Sequence[Markup], note: str) -> tuple[str, Markup]:
    return title, markup.section(title, cards, id=title.lower(), note=note) if cards else Markup()


def _files(files: Sequence[Dict]) -> tuple[str, Markup]:
    cards = [_file(file) for file in files if file["change"] != "same"]
    same = [markup.mono(file["path"]) for file in files if file["change"] == "same"]
    if same:
        cards.append(
            markup.folded("The same in both", markup.listed(same, bare=True), note=plural(len(same), "file"))
        )
    return _diffs("Files", cards, plural(len(files), "file"))


def _file(file: Dict) -> Markup:
    mood = {"added": markup.GOOD, "removed": markup.BAD}
    pill = markup.pill(file["change"], mood.get(file["change"], markup.WAITING))
    return _diffed(file["path"], pill, file["diff"])


def _session(session: Dict) -> Markup:
    numbers = _both(count(session["a"]), count(session["b"]))
    return _diffed(session["name"], markup.tag(f"{numbers} events"), session["diff"])


def _diffed(name: str, mark: Markup, diff: str) -> Markup:
    head = element("header", element("h3", name), mark)
    return element("article", head, markup.diff(diff) if diff else None, class_="card slim")
