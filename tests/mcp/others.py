"""Tries harnpy's client with servers that other people wrote: ``python -m tests.mcp.others``.

FastMCP from PyPI, over stdio and HTTP, with and without a handshake, and the server "everything" from npm are
used in a loop: structured content, images, errors, progress, cancellation, odd names. They are installed in a
temporary directory, which takes a package index and `npm`, so CI doesn't run it. A line for each says what
was done, and how long a call took.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import subprocess
import tempfile
import time
import venv
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from harnpy.mcp.client import Client
from harnpy.mcp.server_spec import ServerSpec, ToolError
from harnpy.world import World

_FASTMCP, _EVERYTHING = "fastmcp", "@modelcontextprotocol/server-everything"
_SERVER = Path(__file__).parent / "servers" / "fastmcp_server.py"
_VERSIONS = (None, "2025-11-25")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=20, help="how often each server is used (20)")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as place:
        python, everything = _installed_python(place), _installed_node(place)
        asyncio.run(_try_all(python, everything, rounds))


def _installed_python(place: str) -> str:
    home = os.path.join(place, "python")
    venv.create(home, with_pip=True)
    python = os.path.join(home, "bin", "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", _FASTMCP], check=True)
    return python


def _installed_node(place: str) -> str:
    home = os.path.join(place, "node")
    os.mkdir(home)
    subprocess.run(["npm", "install", "--silent", "--prefix", home, _EVERYTHING], check=True, cwd=home)
    return os.path.join(home, "node_modules", ".bin", "mcp-server-everything")


async def _try_all(python: str, everything: str, rounds: int) -> None:
    for version in _VERSIONS:
        spec = ServerSpec("f", command=(python, str(_SERVER), "stdio"), protocol_version=version)
        await _try("FastMCP, stdio", spec, _use_fastmcp, rounds)
        async with _listening(python) as url:
            await _try("FastMCP, http", ServerSpec("f", "http", url=url, protocol_version=version),
                       _use_fastmcp, rounds)  # fmt: skip
    await _try("everything, stdio", ServerSpec("e", command=(everything, "stdio")), _use_everything, rounds)


@asynccontextmanager
async def _listening(python: str) -> AsyncIterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    process = await asyncio.create_subprocess_exec(python, str(_SERVER), "http", str(port))
    try:
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                break
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        await process.wait()


async def _try(name: str, spec: ServerSpec, use: Any, rounds: int) -> None:
    world, calls = World(), 0
    begin = time.perf_counter()
    async with AsyncExitStack() as stack:
        http = world.http
        client = Client(spec, world, lambda: http, patience=30)
        await client.connect()
        stack.push_async_callback(client.disconnect)
        connected = time.perf_counter()
        for _ in range(rounds):
            calls += await use(client)
        took = time.perf_counter() - connected
        version = client._transport.version if client._transport else ""
    print(f"{name:18} {version:11} connected in {connected - begin:.2f} s, {calls} calls, "
          f"{1000 * took / calls:.1f} ms each", flush=True)  # fmt: skip


async def _use_fastmcp(client: Client) -> int:
    names = {tool["name"] for tool in await client.tools()}
    assert "stock.word-2_x" in names, names
    assert [await client.call("numbers", {"n": n}) for n in range(3)] == [[], [0], [0, 1]]
    assert await client.call("shelf", {}) == {"shelf": "A3", "nails": 40}
    assert [block["type"] for block in (await client.answer("picture", {})).blocks] == ["text", "image"]
    assert await client.call("stock.word-2_x", {}) == "odd"
    await _fails(client, "fail", {}, "it broke")
    await _fails(client, "numbers", {"n": "x"}, "")
    notes: list[Any] = []
    assert await client.call("count", {}, lambda *note: notes.append(note)) == "counted"
    assert notes == [(step, 3, f"step {step}") for step in range(3)], notes
    await _cancelled(client, "wait", {})
    return 11


async def _use_everything(client: Client) -> int:
    assert "echo" in {tool["name"] for tool in await client.tools()}
    assert await client.call("echo", {"message": "hi"}) == "Echo: hi"
    assert set(await client.call("get-structured-content", {"location": "New York"})) >= {"temperature"}
    blocks = (await client.answer("get-tiny-image", {})).blocks
    assert "image" in {block["type"] for block in blocks}, blocks
    links = (await client.answer("get-resource-links", {"count": 2})).blocks
    assert sum(block["text"].startswith("[resource: ") for block in links) == 2, links
    await _fails(client, "echo", {}, "message")
    notes: list[Any] = []
    given = {"duration": 0.2, "steps": 4}
    await client.call("trigger-long-running-operation", given, lambda *note: notes.append(note))
    assert [note[0] for note in notes] == [1, 2, 3, 4], notes
    await _cancelled(client, "trigger-long-running-operation", {"duration": 60, "steps": 2})
    return 8


async def _fails(client: Client, tool: str, given: dict[str, Any], why: str) -> None:
    with pytest.raises(ToolError, match=why):
        await client.call(tool, given)


async def _cancelled(client: Client, tool: str, given: dict[str, Any]) -> None:
    """Cancel a call; the connection goes on."""
    call = asyncio.ensure_future(client.call(tool, given))
    await asyncio.sleep(0.02)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    assert client.is_connected


if __name__ == "__main__":
    main()
