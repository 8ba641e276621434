"""A server of the SDK's own classes whose tools answer with every kind of content, over stdio."""

from __future__ import annotations

import base64
from typing import Any

import mcp_types as types
from mcp.server.mcpserver import Audio, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel

server = MCPServer("contents", log_level="CRITICAL")

PIXEL = b"\x89PNG pixel"


class Shelf(BaseModel):
    shelf: str
    nails: int = 40


class SearchOutput(BaseModel):
    """Looks like what the SDK makes for results that are no objects."""

    result: list[int]


@server.tool()
def numbers(n: int) -> list[int]:
    return list(range(n))


@server.tool()
def shelf() -> Shelf:
    return Shelf(shelf="A3")


@server.tool()
def found() -> SearchOutput:
    return SearchOutput(result=[1])


@server.tool()
def maybe() -> str | None:
    return None


@server.tool()
def word() -> str:
    return "nails"


@server.tool(name="stock.word/2-x_" + "y" * 80)
def odd() -> str:
    return "odd"


@server.tool(structured_output=False)
def lines() -> Any:
    return ["one", "two"]


@server.tool()
def picture() -> Image:
    return Image(data=PIXEL, format="png")


@server.tool(structured_output=False)
def page() -> Any:
    return ["before", Image(data=PIXEL, format="png"), "after"]


@server.tool(structured_output=False)
def others() -> Any:
    blob = types.BlobResourceContents(uri="file:///a.zip", mime_type="application/zip", blob="AAAA")
    drawn = types.BlobResourceContents(
        uri="file:///a.png", mime_type="image/png", blob=base64.b64encode(PIXEL).decode()
    )
    text = types.TextResourceContents(uri="file:///a.txt", text="A")
    return [
        Audio(data=b"abc", format="wav"),
        types.ResourceLink(type="resource_link", name="manual", uri="file:///m.pdf", description="How to"),
        types.EmbeddedResource(type="resource", resource=text),
        types.EmbeddedResource(type="resource", resource=blob),
        types.EmbeddedResource(type="resource", resource=drawn),
    ]


@server.tool()
def broken() -> Shelf:
    raise ToolError("the shelf fell")


if __name__ == "__main__":
    server.run()
