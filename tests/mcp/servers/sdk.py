"""A server of the SDK's own classes: `stdio`, or `http PORT`; with `json` its answers are no events."""

from __future__ import annotations

import logging
import sys

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("sdk", log_level="CRITICAL")


@server.tool()
def add(a: int, b: int = 0) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def fail() -> str:
    raise ToolError("it broke")


@server.tool()
async def count(ctx: Context) -> str:
    for step in range(3):
        await ctx.report_progress(step, 3, f"step {step}")
    return "counted"


@server.tool()
async def wait(note: str) -> str:
    """Wait for ever; say in a file that it was cancelled."""
    try:
        await anyio.sleep_forever()
    finally:
        with open(note, "w", encoding="utf-8") as file:
            file.write("cancelled")


@server.resource("text://a")
def text() -> str:
    return "A"


@server.prompt()
def greeting(name: str) -> str:
    return f"Hello, {name}"


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run()
    else:
        logging.disable()
        server.run("streamable-http", port=int(sys.argv[2]), json_response="json" in sys.argv)
