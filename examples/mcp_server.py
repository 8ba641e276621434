"""A small MCP server over stdio, with the standard library alone: the stock of a shop. For mcp_tools.harn.

With the SDK (`pip install mcp`) a server is shorter, and `harnpy mcp serve` turns a Harn file into one.
"""

import json
import sys

STOCK = {"nails": 40, "bolts": 7}
ITEM = {"type": "string", "description": "what is in stock"}
TOOLS = [
    {
        "name": "count",
        "description": "How many of an item there are",
        "inputSchema": {"type": "object", "properties": {"item": ITEM}, "required": ["item"]},
    },
    {
        "name": "take",
        "description": "Take some of an item",
        "inputSchema": {
            "type": "object",
            "properties": {"item": ITEM, "number": {"type": "integer"}},
            "required": ["item", "number"],
        },
    },
]


def count(item: str) -> str:
    return f"{STOCK[item]} {item}"


def take(item: str, number: int) -> str:
    if STOCK[item] < number:
        raise ValueError(f"there are only {count(item)}")
    STOCK[item] -= number
    return f"{count(item)} left"


def called(name: str, arguments: dict) -> dict:
    try:
        said, failed = {"count": count, "take": take}[name](**arguments), False
    except (KeyError, TypeError, ValueError) as error:
        said, failed = str(error), True
    return {"content": [{"type": "text", "text": said}], "isError": failed}


def result(method: str, params: dict) -> dict | None:
    if method == "initialize":
        about = {"name": "stock", "version": "1.0"}
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": about,
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return called(params["name"], params.get("arguments", {}))
    return {} if method == "ping" else None


def main() -> None:
    """Answer each request, a line of input, with a line of output."""
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue  # a notification
        answer = result(request["method"], request.get("params", {}))
        error = {"code": -32601, "message": f"Method not found: {request['method']}"}
        outcome = {"error": error} if answer is None else {"result": answer}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **outcome}), flush=True)


if __name__ == "__main__":
    main()
