"""JSON-RPC messages between their text and the SDK's types."""

from __future__ import annotations

from typing import Any

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

#: What an error is taken for that doesn't say which one it is. Spec: 07 §15.1.
_UNKNOWN = {"code": -1, "message": "Unknown MCP error"}


def read_message(text: str) -> JSONRPCMessage | None:
    """Return the message that a text is, None for one that is no JSON-RPC message. Raises `JsonError`."""
    data = parse_json(text)
    if isinstance(data, dict) and "error" in data:
        error = data["error"]
        data["error"] = {**_UNKNOWN, **error} if isinstance(error, dict) else _UNKNOWN
    try:
        return jsonrpc_message_adapter.validate_python(data, by_name=False)
    except ValidationError:
        return None


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
