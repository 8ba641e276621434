"""A card for each stage: how it ended, what it said, how that was verified, and its inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.reading.lenient import as_dict, as_dicts
from harnpy.workflow.records.observability import verdict_of
from harnpy.workflow.report import parts
from harnpy.workflow.report.conversation import conversation
from harnpy.workflow.report.figures import count, duration, elapsed, money, plural
from harnpy.workflow.report.markup import Markup, element, joined
from harnpy.workflow.report.tool_call_list import tool_calls

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harnpy.reading.dicts import Dict
    from harnpy.workflow.records.record_types import StageRecord


#: Keys of a stage's metadata with a place of their own on the card.
_PROMPTS = {
    "system_prompt": "System prompt",
    "prompt": "Prompt",
    "rendered_context": "Context",
    "rendered_verification_context": "What it will be verified against",
}
_SHOWN = {*_PROMPTS, "error", "verification_contracts"}


def stage_card(number: int, stage: StageRecord, calls: Sequence[Dict]) -> Markup:
    explained = failed_verification(stage) or stage["status"] != "failed"
    why = element("strong", "Error "), element("span", why_failed(stage))
    return element(
        "article",
        _head(number, stage),
        None if explained else parts.callout(parts.BAD, *why),
        _said(stage),
        verification(stage),
        element("div", list(_folded(stage, calls)), class_="more-of-it"),
        id=f"stage-{number}",
        class_=f"card {parts.tone(stage['status'])}",
    )


def why_failed(stage: StageRecord) -> str:
    """Return the reason of a failure. All stages with the branch `failed` record the same error, so their
    outcome says more."""
    outcome = (stage["outcome"] or "failed").replace("_", " ")
    return outcome if stage["branch"] == "failed" else str(stage["metadata"].get("error") or outcome)


def failed_verification(stage: StageRecord) -> bool:
    """Return whether a stage failed its verification, which says more than the error does."""
    return stage["branch"] == "failed" and verification(stage) is not None


def _said(stage: StageRecord) -> Markup:
    said = stage["visible_text"]
    if not said:
        return element("p", "No visible text.", class_="note")
    return parts.code(said) if stage["kind"] == "verify" else parts.prose(said)


def _head(number: int, stage: StageRecord) -> Markup:
    usage = stage["usage"]
    tokens = usage["input_tokens"] + usage["output_tokens"] if usage else 0
    spent = parts.apart(
        duration(elapsed(stage)) if elapsed(stage) is not None else None,
        plural(tokens, "token") if tokens else None,
        money(usage["total_cost"]) if usage and usage["total_cost"] else None,
        plural(len(stage["attempts"]), "attempt") if len(stage["attempts"]) > 1 else None,
    )
    ended = parts.apart(
        joined("outcome ", element("b", stage["outcome"])) if stage["outcome"] else None,
        joined("branch ", element("b", stage["branch"])) if stage["branch"] else None,
    )
    return element(
        "header",
        element("span", str(number), class_="number"),
        element("h3", stage["node_id"] or "(unnamed)"),
        parts.tag(stage["kind"] or "stage"),
        parts.pill(stage["status"]),
        element("p", parts.apart(ended or None, spent or None), class_="facts-line"),
    )


def verification(stage: StageRecord) -> Markup | None:
    """Show the checks of a stage and their results, or nothing without checks."""
    found = stage["verification"]
    if not isinstance(found, dict) or found.get("kind") == "none":
        return None
    checks = found.get("checks") if isinstance(found.get("checks"), list) else [found]
    return element(
        "div",
        element("h4", "Verification"),
        element("ul", [_check(check) for check in checks or [] if isinstance(check, dict)], class_="checks"),
        _command(stage),
    )


def _check(check: Dict) -> Markup:
    ok = verdict_of(check)
    verdict = parts.pill("unknown" if ok is None else "passed" if ok else "failed")
    said = [
        joined(f" · {key} ", parts.mono(_short(check[key])))
        for key in ("expected", "actual", "value", "note", "summary", "message")
        if check.get(key) is not None
    ]
    return element("li", verdict, " ", str(check.get("kind") or "check").replace("_", " "), said)


def _short(given: Any) -> str:
    line = str(given)
    return line if len(line) <= 200 else line[:199] + "…"


def _command(stage: StageRecord) -> Markup | None:
    """Show the command that verified, with its exit status."""
    for artifact in as_dicts(stage["artifacts"]):
        data = as_dict(artifact.get("data"))
        if data.get("command"):
            status = joined(" exit status ", parts.mono(str(data.get("exit_status"))))
            return element("p", parts.mono(str(data["command"])), status, class_="command")
    return None


def _folded(stage: StageRecord, calls: Sequence[Dict]) -> Iterator[Markup]:
    metadata = stage["metadata"]
    for key, title in _PROMPTS.items():
        said = metadata.get(key)
        if isinstance(said, str) and said:
            yield parts.folded(title, parts.prose(said), note=plural(len(said.split()), "word"))
    yield conversation(stage["transcript"])
    if calls:
        yield parts.folded("Tool calls", tool_calls(calls), note=count(len(calls)))
    if stage["private_reasoning"]:
        yield parts.folded("Private reasoning", parts.prose(stage["private_reasoning"]))
    if stage["artifacts"]:
        made = as_dicts(stage["artifacts"])
        named = [
            joined(parts.tag(str(item.get("kind"))), " ", str(item.get("title") or item.get("id")))
            for item in made
        ]
        yield parts.folded("Artifacts made", parts.listed(named, bare=True), note=count(len(made)))
    rest = {
        key: item for key, item in metadata.items() if key not in _SHOWN and item not in (None, {}, [], "")
    }
    if rest:
        yield parts.folded("Policies and metadata", parts.value(rest))
