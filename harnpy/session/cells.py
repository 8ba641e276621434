"""Messages as cells of a notebook: a short table each, for sessions, turns and transcripts. Spec: 10 §C17."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.formats import markup
from harnpy.formats.markup import Cell, plural
from harnpy.formats.tool_messages import CALL_BLOCKS, calls_of
from harnpy.session.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harnpy.formats.markup import Child

    Message = dict[str, Any]

#: The most rows of a table: those at the end.
MOST = 30


def cell_of_messages(title: str, pairs: Iterable[tuple[str, Child]], messages: Sequence[Message]) -> Cell:
    """Return a cell with facts about messages, and the last of these."""
    rows = [(str(each.get("role") or ""), said(each), called(each)) for each in messages[-MOST:]]
    left_out = len(messages) - MOST
    if left_out > 0:
        rows.insert(0, ("…", plural(left_out, "earlier message"), ""))
    return markup.cell(title, pairs, ("Role", "Text", "Tool calls"), rows)


def cell_of(transcript: Message | Sequence[Message]) -> Cell:
    """Return a transcript of Harn's, or a list of messages, as a cell. Raises `InvalidArgument`."""
    messages: Any = transcript
    name = ""
    if isinstance(transcript, dict):
        messages, name = transcript.get("messages"), str(transcript.get("id") or "")
    if not isinstance(messages, list | tuple) or not all(isinstance(each, dict) for each in messages):
        raise InvalidArgument("a transcript is a dict with `messages`, or a list of messages")
    return cell_of_messages(f"Transcript {name}".strip(), [("", plural(len(messages), "message"))], messages)


def called(message: Message) -> str:
    """Return the names of the tools that a message calls."""
    return ", ".join(call.name or "?" for call in calls_of(message))


def said(message: Message) -> str:
    """Return what any message says, with the kinds of the parts that are no text."""
    content = message.get("content")
    parts = content if isinstance(content, list) else [content]
    return " ".join(filter(None, map(_part, parts)))


def _part(part: Any) -> str:
    if isinstance(part, dict):
        if isinstance(part.get("text"), str):
            return part["text"]  # type: ignore[no-any-return]
        kind = part.get("type")
        return "" if kind in CALL_BLOCKS else f"[{kind}]"
    return "" if part is None else str(part)
