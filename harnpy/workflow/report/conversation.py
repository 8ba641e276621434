"""A transcript as a conversation: who said what, the tool calls, and other events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.reading.lenient import as_dicts, dicts_at
from harnpy.session.transcript import MESSAGE_KINDS, RESULT_ROLES
from harnpy.text.json.compact import compact_json
from harnpy.workflow.report import parts
from harnpy.workflow.report.figures import plural
from harnpy.workflow.report.markup import Markup, element, joined

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harnpy.reading.dicts import Dict


_TEXTS = ("text", "output_text", "input_text")
_THOUGHTS = ("reasoning", "thinking", "redacted_thinking")
_CALLS = ("tool_call", "tool_use", "function_call")


def conversation(transcript: Any, title: str = "Conversation") -> Markup:
    """Show a transcript, collapsed; nothing if it has no messages and events."""
    if not isinstance(transcript, dict):
        return Markup()
    events, said = dicts_at(transcript, "events"), as_dicts(transcript.get("messages"))
    spoken = [_message(message) for message in said] or [
        _turn(str(event.get("role") or "user"), parts.prose(str(event.get("text") or "")))
        for event in events
        if event.get("kind") in MESSAGE_KINDS
    ]
    beside = [_event(event) for event in events if event.get("kind") not in MESSAGE_KINDS]
    summary = transcript.get("summary")
    if not spoken and not beside and not summary:
        return Markup()
    return parts.folded(
        title,
        parts.callout(parts.PLAIN, element("strong", "Summary of what came before"), parts.prose(summary))
        if isinstance(summary, str) and summary
        else None,
        element("ol", spoken, class_="talk") if spoken else None,
        parts.folded("Events", element("ol", beside, class_="events"), note=plural(len(beside), "event"))
        if beside
        else None,
        note=plural(len(spoken), "message"),
    )


def _message(message: Dict) -> Markup:
    role = str(message.get("role") or "user")
    content = message.get("content")
    blocks = content if isinstance(content, list) else [content]
    reasoning = message.get("reasoning")
    return _turn(
        role,
        parts.folded("Reasoning", parts.prose(str(reasoning))) if reasoning else None,
        list(_blocks(blocks, parts.code if role in RESULT_ROLES else parts.prose)),
        [_call(call) for call in as_dicts(message.get("tool_calls"))],
    )


def _turn(role: str, *content: Any) -> Markup:
    inside = joined(*content) or element("p", "(nothing)", class_="note")
    who = element("span", role.replace("_", " "), class_="role")
    return element("li", who, element("div", inside, class_="said"), class_=f"turn {_side(role)}")


def _side(role: str) -> str:
    if role in RESULT_ROLES:
        return "tool"
    return role if role in ("user", "assistant", "system") else "other"


def _blocks(blocks: list[Any], show: Callable[[str], Markup]) -> Iterator[Markup]:
    """Show the blocks of a message. ``show`` is for texts: a tool's output is shown as code."""
    for block in blocks:
        if isinstance(block, str):
            if block:
                yield show(block)
        elif isinstance(block, dict):
            yield _block(block)
        elif block is not None:
            yield parts.value(block)


def _block(block: Dict) -> Markup:
    kind = str(block.get("type") or "text")
    if kind in _TEXTS:
        said = block.get("text", block.get("content"))
        return parts.prose(said) if isinstance(said, str) and said else Markup()
    if kind in _THOUGHTS:
        said = block.get("text") or block.get("thinking") or block.get("summary") or ""
        return parts.folded("Reasoning", parts.prose(str(said)))
    if kind in _CALLS:
        return _call(block)
    if kind == "tool_result":
        head = parts.apart(
            element("strong", "Result"), str(block.get("name") or block.get("tool_use_id") or "")
        )
        return element(
            "div", element("p", head), parts.value(block.get("content", block.get("text"))), class_="call"
        )
    label = next((str(block[key]) for key in ("name", "title", "path", "asset_id") if block.get(key)), "")
    return element("p", parts.tag(kind), " ", label)


def _call(call: Dict) -> Markup:
    function = call.get("function") if isinstance(call.get("function"), dict) else call
    assert isinstance(function, dict)
    arguments = next((function[key] for key in ("arguments", "input", "args") if key in function), None)
    head = element("p", element("strong", "Calls "), parts.mono(str(function.get("name") or "a tool")))
    return element("div", head, parts.value(arguments) if arguments else None, class_="call")


def _event(event: Dict) -> Markup:
    metadata = event.get("metadata")
    said = str(event.get("text") or "")
    return element(
        "li",
        parts.mono(str(event.get("kind"))),
        parts.prose(said) if said else None,
        parts.code(compact_json(metadata)) if metadata else None,
    )
