"""An MCP server over stdio without any SDK: it starts fast, and misbehaves where a test wants it to."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

TOOLS: list[dict[str, Any]] = [
    {
        "name": "add",
        "description": "Add two numbers",
        "inputSchema": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a"],
        },
        "outputSchema": {"type": "object"},
    },
    {"name": "fail", "inputSchema": {"type": "object"}},
    {"name": "refuse", "inputSchema": {"type": "object"}},
    {"name": "crash", "inputSchema": {"type": "object"}},
    {"name": "echo", "inputSchema": {"type": "object"}},
    {"name": "nothing", "inputSchema": {"type": "object"}},
    {"name": "wait", "inputSchema": {"type": "object"}},
    {"name": "progress", "inputSchema": {"type": "object"}},
]


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(text: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], **more}


def called(id: Any, name: str, given: dict[str, Any], meta: dict[str, Any]) -> None:
    if name == "add":
        send(id=id, result=text(str(given["a"] + given.get("b", 0))))
    elif name == "fail":
        lines = [{"type": "text", "text": part} for part in given.get("texts", ["it broke", "badly"])]
        send(id=id, result={"content": lines, "isError": True})
    elif name == "refuse":
        send(id=id, error=given.get("error", {"code": -32602, "message": "no such thing"}))
    elif name == "answer":
        send(id=id, **given)
    elif name == "crash":
        os._exit(3)
    elif name == "nothing":
        send(id=id, result={"content": []})
    elif name == "noise":
        sys.stdout.write("not JSON\n[1]\n\n")
        send(method="notifications/message", params={"level": "info", "data": "hello"})
        send(id="mine", method="sampling/createMessage", params={})
        send(id="ping", method="ping")
        replies = [json.loads(sys.stdin.readline()) for _ in range(2)]
        send(id=id, result=text(json.dumps({reply["id"]: _said(reply) for reply in replies})))
    elif name == "progress":
        for step in range(3):
            token = meta.get("progressToken")
            send(
                method="notifications/progress", params={"progressToken": token, "progress": step, "total": 3}
            )
        send(id=id, result=text("done"))
    elif name == "silence":
        pass
    elif name == "variable":
        send(id=id, result=text(os.environ.get(given["name"], "")))
    elif name == "pid":
        send(id=id, result=text(str(os.getpid())))
    elif name == "wait":  # until the call is cancelled, which it notes
        with open(given["started"], "w", encoding="utf-8"):
            pass
        cancelled = json.loads(sys.stdin.readline())
        with open(given["note"], "w", encoding="utf-8") as note:
            note.write(json.dumps([cancelled["method"], cancelled["params"]["requestId"] == id]))
    else:
        send(id=id, result={"content": [{"type": "text", "text": json.dumps(given)}, {"type": "image"}]})


def _said(reply: dict[str, Any]) -> Any:
    error = reply.get("error")
    return reply["result"] if error is None else [error["code"], error["message"]]


def listed(key: str, items: list[dict[str, Any]], cursor: str | None) -> dict[str, Any]:
    """One item a page."""
    at = int(cursor or 0)
    more = {"nextCursor": str(at + 1)} if at + 1 < len(items) else {}
    return {key: items[at : at + 1], **more}


def answer(message: dict[str, Any]) -> None:
    id, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    if id is None or method is None:
        return
    if method == "initialize":
        send(
            id=id, result={"protocolVersion": params["protocolVersion"], "capabilities": {}, "serverInfo": {}}
        )
    elif method == "tools/call":
        called(id, params["name"], params["arguments"], params.get("_meta", {}))
    elif method == "tools/list":
        send(id=id, result=listed("tools", TOOLS, params.get("cursor")))
    elif method == "resources/list":
        send(id=id, result=listed("resources", [{"uri": "text:a"}, {"uri": "text:b"}], params.get("cursor")))
    elif method == "resources/templates/list":
        send(id=id, result={"resourceTemplates": [{"uriTemplate": "text:{name}"}]})
    elif method == "endless/list":
        send(id=id, result={"items": [{}], "nextCursor": "again"})
    elif method == "prompts/list":
        send(id=id, result={})
    elif method == "prompts/get":
        content = {"type": "text", "text": f"Hello, {params['arguments'].get('name')}"}
        send(id=id, result={"messages": [{"role": "user", "content": content}]})
    elif method == "resources/read":
        known = {"text:a": [{"uri": "text:a", "text": "A"}], "text:none": []}
        send(id=id, result={"contents": known.get(params["uri"], [{"uri": "x"}, {"uri": "y"}])})
    else:
        send(id=id, error={"code": -32601, "message": f"Method not found: {method}"})


def main() -> None:
    options = dict(word.partition("=")[::2] for word in sys.argv[1:])
    if "note" in options:
        with open(options["note"], "a", encoding="utf-8") as note:
            note.write(f"{os.getpid()}\n")
    if "slow" in options:
        time.sleep(float(options["slow"]))
    for line in sys.stdin:
        answer(json.loads(line))
    while "stubborn" in options:
        time.sleep(60)


main()
