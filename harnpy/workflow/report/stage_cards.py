"""A card for each stage: how it ended, what it said, how that was verified, its inputs and its tool calls.

A transcript is a conversation here: who said what, the tool calls, and other events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.formats import markup
from harnpy.formats.dicts import as_dict, as_dicts, dicts_at
from harnpy.formats.json import compact_json
from harnpy.formats.markup import Markup, count, duration, elapsed, element, joined, money, plural
from harnpy.session.transcript import MESSAGE_KINDS
from harnpy.session.transfer.pages import html_of_message
from harnpy.workflow.records.observability import verdict_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harnpy.formats.dicts import Dict
    from harnpy.workflow.records.record_shapes import StageRecord


def tool_call_list(calls: Sequence[Dict]) -> Markup:
    return element("ol", [_listed_call(call) for call in calls], class_="calls")


def _listed_call(call: Dict) -> Markup:
    head = markup.apart(
        joined(
            markup.mono(str(call["tool_name"])), " ", markup.pill("rejected") if call["is_rejected"] else None
        ),
        f"turn {call['iteration']}" if call["iteration"] else None,
        duration(call["duration_ms"]) if call["duration_ms"] else None,
    )
    return element(
        "li",
        element("p", head),
        element(
            "div",
            _call_side("Arguments", call.get("arguments")),
            _call_side("Result", call.get("result")),
            class_="two",
        ),
    )


def _call_side(title: str, given: Any) -> Markup:
    shown = element("p", "none", class_="note") if given in (None, "", {}) else markup.value(given)
    return element("div", element("h5", title), shown)


def conversation(transcript: Any, title: str = "Conversation") -> Markup:
    """Show a transcript, collapsed; nothing if it has no messages and events."""
    if not isinstance(transcript, dict):
        return Markup()
    events, said = dicts_at(transcript, "events"), as_dicts(transcript.get("messages"))
    told = [
        {"role": event.get("role"), "content": str(event.get("text") or "")}
        for event in events
        if event.get("kind") in MESSAGE_KINDS
    ]
    spoken = [html_of_message({**each, "role": str(each.get("role") or "user")}) for each in said or told]
    beside = [_event(event) for event in events if event.get("kind") not in MESSAGE_KINDS]
    summary = transcript.get("summary")
    if not spoken and not beside and not summary:
        return Markup()
    return markup.folded(
        title,
        markup.callout(markup.PLAIN, element("strong", "Summary of what came before"), markup.prose(summary))
        if isinstance(summary, str) and summary
        else None,
        element("ol", spoken, class_="talk") if spoken else None,
        markup.folded("Events", element("ol", beside, class_="events"), note=plural(len(beside), "event"))
        if beside
        else None,
        note=plural(len(spoken), "message"),
    )


def _event(event: Dict) -> Markup:
    metadata = event.get("metadata")
    said = str(event.get("text") or "")
    return element(
        "li",
        markup.mono(str(event.get("kind"))),
        markup.prose(said) if said else None,
        markup.code(compact_json(metadata)) if metadata else None,
    )


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
        None if explained else markup.callout(markup.BAD, *why),
        _said(stage),
        verification(stage),
        element("div", list(_folded(stage, calls)), class_="more-of-it"),
        id=f"stage-{number}",
        class_=f"card {markup.tone(stage['status'])}",
    )


def why_failed(stage: StageRecord) -> str:
    """Return the reason of a failure. All stages with the branch `failed` record the same error, so their
    outcome says more."""
    outcome = (stage["outcome"] or "failed").replace("_", " ")
    return outcome if stage["branch"] == "failed" else str(stage["metadata"].get("error") or outcome)


def failed_verification(stage: StageRecord) -> bool:
    """Return whether a stage failed its verification, which says more than the error does."""
    return stage["branch"] == "failed" and verification(stage) is not None


def _said(stage: StageRecord) -> Markup | None:
    said = stage["visible_text"]
    if not said:
        return None
    return markup.code(said) if stage["kind"] == "verify" else markup.prose(said)


def _head(number: int, stage: StageRecord) -> Markup:
    usage = stage["usage"]
    tokens = usage["input_tokens"] + usage["output_tokens"] if usage else 0
    spent = markup.apart(
        duration(elapsed(stage)) if elapsed(stage) else None,
        plural(tokens, "token") if tokens else None,
        money(usage["total_cost"]) if usage and usage["total_cost"] else None,
        plural(len(stage["attempts"]), "attempt") if len(stage["attempts"]) > 1 else None,
    )
    ended = markup.apart(
        joined("outcome ", element("b", stage["outcome"])) if stage["outcome"] else None,
        joined("branch ", element("b", stage["branch"])) if stage["branch"] else None,
    )
    return element(
        "header",
        element("span", str(number), class_="number"),
        element("h3", stage["node_id"] or "(unnamed)"),
        markup.tag(stage["kind"] or "stage"),
        markup.pill(stage["status"]),
        element("p", markup.apart(ended or None, spent or None), class_="facts-line"),
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
    verdict = markup.pill("unknown" if ok is None else "passed" if ok else "failed")
    said = [
        joined(f" · {key} ", markup.mono(_short(check[key])))
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
            status = joined(" exit status ", markup.mono(str(data.get("exit_status"))))
            return element("p", markup.mono(str(data["command"])), status, class_="command")
    return None


def _folded(stage: StageRecord, calls: Sequence[Dict]) -> Iterator[Markup]:
    metadata = stage["metadata"]
    for key, title in _PROMPTS.items():
        said = metadata.get(key)
        if isinstance(said, str) and said:
            yield markup.folded(title, markup.prose(said), note=plural(len(said.split()), "word"))
    yield conversation(stage["transcript"])
    if calls:
        yield markup.folded("Tool calls", tool_call_list(calls), note=count(len(calls)))
    if stage["private_reasoning"]:
        yield markup.folded("Private reasoning", markup.prose(stage["private_reasoning"]))
    if stage["artifacts"]:
        made = as_dicts(stage["artifacts"])
        named = [
            joined(markup.tag(str(item.get("kind"))), " ", str(item.get("title") or item.get("id")))
            for item in made
        ]
        yield markup.folded("Artifacts made", markup.listed(named, bare=True), note=count(len(made)))
    rest = {
        key: item for key, item in metadata.items() if key not in _SHOWN and item not in (None, {}, [], "")
    }
    if rest:
        yield markup.folded("Policies and metadata", markup.value(rest))
