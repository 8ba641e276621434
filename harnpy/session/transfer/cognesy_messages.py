"""Messages as Cognesy writes them. Spec: 10 §C17."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from harnpy.session.transfer.shapes import shape_of

if TYPE_CHECKING:
    from harnpy.session.transfer.shapes import CallPart

    Json = dict[str, Any]

#: Where a message stands as it is, when Cognesy's shape doesn't say all of it.
_OURS = "harn"


def to_cognesy(message: Json) -> Json:
    """Return a message without id and time, in Cognesy's shape."""
    shown = _shown(message)
    if from_cognesy(shown) != message:
        shown["_metadata"] = {**shown.get("_metadata", {}), _OURS: message}
    return shown


def from_cognesy(message: Json) -> Json:
    """Return the message that Cognesy's is. Raises ValueError for one without a role."""
    metadata = message.get("_metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    ours = metadata.get(_OURS)
    if isinstance(ours, dict) and isinstance(ours.get("role"), str):
        return ours
    role = message.get("role")
    if not isinstance(role, str):
        raise ValueError("it has no role")
    facts = {**metadata, **{key: message[key] for key in _FACTS if message.get(key) is not None}}
    found: Json = {"role": role, "content": message.get("content", "")}
    if message.get("name"):
        found["name"] = message["name"]
    if isinstance(facts.get("tool_calls"), list) and facts["tool_calls"]:
        found["tool_calls"] = facts["tool_calls"]
    result = facts.get("tool_result")
    if isinstance(result, dict):
        found |= _result(result)
    rest = {key: value for key, value in metadata.items() if key not in _FACTS}
    return {**found, "metadata": rest} if rest else found


_FACTS = ("tool_calls", "tool_result")


def _result(result: Json) -> Json:
    found: Json = {"role": "tool", "content": result.get("content", "")}
    for ours, theirs in (("tool_call_id", "call_id"), ("name", "tool_name")):
        if result.get(theirs):
            found[ours] = result[theirs]
    return {**found, "is_error": True} if result.get("is_error") else found


def _shown(message: Json) -> Json:
    shape = shape_of(message)
    shown: Json = {"role": shape.role}
    if isinstance(message.get("name"), str) and message["name"]:
        shown["name"] = message["name"]
    shown["content"] = [*_text_parts(shape.texts), *shape.others] if shape.others else shape.text
    if isinstance(message.get("metadata"), dict) and message["metadata"]:
        shown["_metadata"] = message["metadata"]
    if shape.calls:
        shown["tool_calls"] = [_call(call) for call in shape.calls]
    if shape.results:
        result = shape.results[0]
        shown |= {"role": "tool", "content": "\n".join(each.text for each in shape.results)}
        shown["tool_result"] = {
            "content": result.text,
            "call_id": result.id,
            "tool_name": result.name,
            "is_error": result.is_error,
        }
    return shown


def _text_parts(texts: list[str]) -> list[Json]:
    return [{"type": "text", "text": text} for text in texts]


def _call(call: CallPart) -> Json:
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        arguments = call.arguments
    return {"id": call.id, "name": call.name, "arguments": arguments}
