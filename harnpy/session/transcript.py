"""The transcript value: messages, the events derived from them, and how they read. Spec: 08 §2.1–2.3.

Pure functions over plain dicts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.faults import paced
from harnpy.formats.display import display
from harnpy.formats.media import TEXTS

if TYPE_CHECKING:
    from harnpy.formats.dicts import Dict

#: Kinds of the events that are messages.
MESSAGE_KINDS = ("message", "tool_result")
#: Kinds of the events that say who was attached, and what they decided. Spec: 08 §1.10.
LIVE_KINDS = ("live_session_client", "live_session_permission_route")


def transcript(id: str, messages: list[Dict], events: list[Dict], assets: list[Dict], **extra: Any) -> Dict:
    """Return a transcript, with those of ``summary``, ``metadata`` and ``state`` that are set."""
    return {
        "_type": "transcript",
        "version": 2,
        "id": id,
        "messages": messages,
        "events": events,
        "assets": assets,
        **{key: value for key, value in extra.items() if value is not None},
    }


def message_event(message: Dict, id: str) -> Dict:
    """Return the event of a message: ``{id, kind, role, visibility, text, blocks, metadata?}``."""
    role, content = message.get("role"), message.get("content")
    if role is None:
        role = "user"
    if type(content) is str:  # nearly all of them
        visibility, text = _default_visibility(role), content
        blocks: list[Dict] = [{"text": content, "type": "text", "visibility": visibility}]
    else:
        blocks = content_blocks(content, role)
        visibility = _visibility(blocks, role)
        text = " ".join(filter(None, (_rendering(block) for block in paced(blocks))))
    event = {
        "id": id,
        "kind": "tool_result" if role == "tool_result" else "message",
        "role": role,
        "visibility": visibility,
        "text": text,
        "blocks": blocks,
    }
    metadata = message.get("metadata")
    return {**event, "metadata": metadata} if isinstance(metadata, dict) else event


def lifecycle_event(
    kind: str,
    text: str = "",
    role: str = "system",
    visibility: str = "internal",
    metadata: Dict | None = None,
) -> Dict:
    """Return an event that belongs to no message; the log gives it an id."""
    blocks = [{"type": "text", "text": text, "visibility": visibility}]
    event = {"kind": kind, "role": role, "visibility": visibility, "text": text, "blocks": blocks}
    return event if metadata is None else {**event, "metadata": metadata}


def content_blocks(content: Any, role: str) -> list[Dict]:
    """Return a message's content as blocks, each with a type and a visibility."""
    default = _default_visibility(role)
    if content is None:
        return []
    if isinstance(content, list):
        return [_block(item, default) for item in paced(content)]
    return [_block(content, default)]


def plain_message(message: Dict) -> Dict | None:
    """Return a loop's message as a transcript shows it (2.1, 07 §6.11), None when it shows none."""
    role = message.get("role")
    if not isinstance(role, str):
        return None
    if role == "tool" or "tool_calls" in message:
        return message
    content = message.get("content")
    if role == "user" and isinstance(content, list):
        for block in content:
            if isinstance(block, dict) and block.get("type") == "tool_result":
                result = block.get("content")
                said = result if isinstance(result, str | list) else ""
                return {"role": "tool_result", "tool_use_id": block.get("tool_use_id"), "content": said}
    if len(message) == 2 and "content" in message:
        return message
    metadata = message.get("metadata")
    plain = {"role": role, "content": content}
    return {**plain, "metadata": metadata} if isinstance(metadata, dict) else plain


def _block(item: Any, visibility: str) -> Dict:
    block = item if isinstance(item, dict) else {"text": display(item)}
    missing = {"type": "text", "visibility": visibility}
    missing = {key: default for key, default in missing.items() if block.get(key) is None}
    return {**block, **missing} if missing else block


def _default_visibility(role: str) -> str:
    return "internal" if role == "tool_result" else "public"


def _visibility(blocks: list[Dict], role: str) -> str:
    found = _default_visibility(role)
    for block in paced(blocks):
        if block["visibility"] == "public":
            return "public"
        if block["visibility"] == "internal":
            found = "internal"
    return found


_NAMED = {"tool_call", "tool_result"}
_LABELLED = {"image": "image", "input_image": "image"} | {t: t for t in ("file", "document", "attachment")}


def _rendering(block: Dict) -> str:
    """Return a block as one line of text."""
    kind = display(block["type"])
    if kind in TEXTS:
        return _text(block, ("text", "content"), "")
    if kind == "reasoning":
        return ""
    if kind in _NAMED:
        return f"<{kind}:{_text(block, ('name',), 'tool')}>"
    word = _LABELLED.get(kind)
    if word is None:
        return f"<{kind}>"
    return f"<{word}:{_text(block, ('name', 'title', 'path', 'asset_id'), word)}>"


def _text(block: Dict, keys: tuple[str, ...], default: str) -> str:
    """Return the first of ``keys`` that the block has, as text."""
    for key in keys:
        if block.get(key) is not None:
            return display(block[key])
    return default
