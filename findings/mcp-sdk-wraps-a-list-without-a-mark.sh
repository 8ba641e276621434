#!/usr/bin/env bash
# mcp 2.3.0 (the official SDK's server): a tool that returns a list sends the same as one that returns an object.
#
# Structured content is an object, so the server puts what is none (a list, a number, a text) under the key `result`.
# Neither the result nor the schema of the tool has a mark of that. A tool whose own object has one field called `result`
# sends the same bytes, with the same schema but for its title, which is made of the function's name.
#
# Most would guess: something says that the server has wrapped a value, as FastMCP's `x-fastmcp-wrap-result` does.
#
# Why it matters: a client that unwraps takes the object apart which somebody's tool meant; one that doesn't gives the model
# and the program `{"result": …}` for each plain value. Who keeps a session can't tell later which of the two it was.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install -q --no-compile mcp==2.3.0
venv/bin/python -I - <<'EOF'
import asyncio

from mcp import Client
from mcp.server.mcpserver import MCPServer
from pydantic import BaseModel

server = MCPServer("desk", log_level="CRITICAL")


class PagesOutput(BaseModel):
    """What a tool of one's own returns: it happens to have one field, called result."""

    result: list[int]


@server.tool()
def pages() -> list[int]:
    return [3, 4]


@server.tool()
def found() -> PagesOutput:
    return PagesOutput(result=[3, 4])


def alike(schema):
    """What of a schema isn't a name or a sentence for people."""
    return {key: value for key, value in schema.items() if key not in ("title", "description")}


async def main():
    async with Client(server) as client:
        schemas = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
        results = {name: await client.call_tool(name, {}) for name in ("pages", "found")}
    sent = {name: result.structured_content for name, result in results.items()}
    print("a tool that returns a list sends:            ", sent["pages"])
    print("a tool that returns an object with that field:", sent["found"])
    print("their schemas:", schemas["pages"], schemas["found"])
    print("the metadata of both results:", [*(results["pages"].meta or {})], [*(results["found"].meta or {})])
    assert sent["pages"] == sent["found"] == {"result": [3, 4]}, "changed: a list is no longer wrapped like this"
    marks = [key for schema in schemas.values() for key in schema if key.startswith("x-")]
    assert not marks, f"changed: a schema says so by {marks}"
    own, other = ({**(result.meta or {})} for result in results.values())
    assert own == other, "changed: the metadata of the results says so"
    assert alike(schemas["pages"]) == alike(schemas["found"]), "changed: more than words differ in the schemas"


asyncio.run(main())
EOF
