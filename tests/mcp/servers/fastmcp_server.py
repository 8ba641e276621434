"""A server of FastMCP, which isn't the official SDK: `stdio`, or `http PORT`. See tests/mcp/others.py."""

from __future__ import annotations

import sys
from typing import Any

import anyio
from fastmcp import Context, FastMCP  # type: ignore[import-not-found, unused-ignore]
from fastmcp.utilities.types import Image  # type: ignore[import-not-found, unused-ignore]

server: Any = FastMCP("others")


@server.tool
def numbers(n: int) -> list[int]:
    return list(range(n))


@server.tool
def shelf() -> dict[str, Any]:
    return {"shelf": "A3", "nails": 40}


@server.tool
def picture() -> Any:
    return ["seen:", Image(data=b"\x89PNG pixel", format="png")]


@server.tool
def fail() -> str:
    raise ValueError("it broke")


@server.tool(name="stock.word-2_x")
def odd() -> str:
    return "odd"


@server.tool
async def count(ctx: Context) -> str:
    for step in range(3):
        await ctx.report_progress(step, 3, f"step {step}")
    return "counted"


@server.tool
async def wait() -> None:
    await anyio.sleep_forever()


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run(show_banner=False, log_level="CRITICAL")
    else:
        server.run("http", show_banner=False, port=int(sys.argv[2]), log_level="CRITICAL")
