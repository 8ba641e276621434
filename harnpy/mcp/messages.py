"""JSON-RPC messages between their text and the SDK's types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_types import (
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from harnpy.text.json.reader import parse_json
from harnpy.text.json.writer import to_json

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict

#: What an error is taken for that doesn't say which one it is. Spec: 07 §15.1.
_UNKNOWN_CODE, _UNKNOWN_MESSAGE = -1, "Unknown MCP error"


def read_message(text: str) -> JSONRPCMessage | None:
    """Return the message that a text is, None for one that is no JSON-RPC message. Raises `JsonError`."""
    data = parse_json(text)
    if isinstance(data, dict) and "id" in data and "method" not in data:
        data = _answer(data)
    try:
        return jsonrpc_message_adapter.validate_python(data, by_name=False)
    except ValidationError:
        return None


def _answer(data: Dict) -> Dict:
    """An answer as JSON-RPC has it: one that has no result is an error, so that nobody waits for another."""
    if "error" not in data and isinstance(data.get("result"), dict):
        return data
    error = data.get("error")
    if not isinstance(error, dict):
        error = {} if "error" in data else {"message": "the server's answer has no result object"}
    code, message = error.get("code"), error.get("message")
    read = {
        "code": code if type(code) is int else _UNKNOWN_CODE,
        "message": message if isinstance(message, str) else _UNKNOWN_MESSAGE,
    }
    return {"jsonrpc": data.get("jsonrpc"), "id": data["id"], "error": read}


def write_message(message: JSONRPCMessage, **more: Any) -> str:
    """Return a message as one line of JSON, without its end; ``more`` are fields beside JSON-RPC's."""
    frame: dict[str, Any] = {"jsonrpc": "2.0", **more}
    if not isinstance(message, JSONRPCNotification):
        frame["id"] = message.id
    if isinstance(message, JSONRPCRequest | JSONRPCNotification):
        frame["method"] = message.method
        if message.params is not None:
            frame["params"] = message.params
    elif isinstance(message, JSONRPCResponse):
        frame["result"] = message.result
    else:
        frame["error"] = message.error.model_dump(exclude_unset=True)
    return to_json(frame)
