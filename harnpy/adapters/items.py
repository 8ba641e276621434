"""Items of the OpenAI Agents SDK as messages of a session, and back. Spec: 10 §C20.

A call and its result take the shapes that every reader of sessions knows; what these have no place for stands
beside them under ``openai_item``. What comes out equals what went in. This module needs no part of the SDK.
"""

from __future__ import annotations

from typing import Any

Item = dict[str, Any]

#: Where a message keeps what it has no other place for.
REST = "openai_item"
#: The role of items that are no message: no model is shown them.
ROLE = "item"


def message_of(item: Item) -> dict[str, Any]:
    """Return an item as a message."""
    kind = item.get("type")
    if kind == "function_call":
        function = {"name": item.get("name"), "arguments": item.get("arguments")}
        call = {"id": item.get("call_id"), "type": "function", "function": function}
        rest = _without(item, "name", "arguments", "call_id")
        return {"role": "assistant", "content": "", "tool_calls": [call], REST: rest}
    if kind == "function_call_output":
        rest = _without(item, "output", "call_id")
        return {
            "role": "tool",
            "tool_call_id": item.get("call_id"),
            "content": item.get("output"),
            REST: rest,
        }
    if isinstance(item.get("role"), str) and item["role"] != ROLE and REST not in item:
        return item
    return {"role": ROLE, REST: item}


def items_of(message: dict[str, Any]) -> list[Item]:
    """Return a message as items; one that something else has written may be several."""
    rest = message.get(REST)
    if isinstance(rest, dict):
        return [_item(message, rest)]
    if message.get("role") in ("tool", "tool_result"):
        id = message.get("tool_call_id", message.get("tool_use_id"))
        return [{"type": "function_call_output", "call_id": id, "output": message.get("content")}]
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return [message]
    said = [_without(message, "tool_calls")] if message.get("content") else []
    return said + [_call(call) for call in calls if isinstance(call, dict)]


def _item(message: dict[str, Any], rest: Item) -> Item:
    if message["role"] == ROLE:
        return rest
    if message["role"] == "tool":
        return {**rest, "call_id": message["tool_call_id"], "output": message["content"]}
    call = message["tool_calls"][0]
    return {**rest, "call_id": call["id"], **call["function"]}


def _call(call: dict[str, Any]) -> Item:
    function = call.get("function", call)
    return {
        "type": "function_call",
        "call_id": call.get("id"),
        "name": function.get("name"),
        "arguments": function.get("arguments"),
    }


def _without(item: Item, *keys: str) -> Item:
    return {key: value for key, value in item.items() if key not in keys}
