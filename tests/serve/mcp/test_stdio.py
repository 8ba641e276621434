"""`harnpy mcp serve` as a client starts it. Spec: 09 §11.4, §2.4."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import INVALID_REQUEST, PARSE_ERROR

from harnpy.serve.mcp_stdio import serve_stdio
from tests.serve.mcp.serving import served, text_of

FILE = """
/** Says hello. */
pub fn hello(name: string) -> string {
  println("greeting ${name}")
  return "hello ${name}"
}
pub fn sleepy() { sleep(600000) }
pub fn asked() { return read_stdin() }
pub fn last() { return await(spawn { exit(3) }) }
"""
COMMAND = (sys.executable, "-m", "harnpy", "mcp", "serve")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "hello.harn"
    path.write_text(FILE)
    return path


def request(id: int, method: str, params: dict[str, Any]) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}) + "\n"


def opening() -> str:
    who = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    initialized = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"})
    return f"{request(0, 'initialize', who)}{initialized}\n"


def call(id: int, name: str, arguments: dict[str, Any]) -> str:
    return request(id, "tools/call", {"name": name, "arguments": arguments})


def test_the_sdk_starts_it(file: Path) -> None:
    async def main() -> None:
        server = StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], str(file)])
        async with Client(server) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == [
                "hello",
                "sleepy",
                "asked",
                "last",
            ]
            calls = (client.call_tool("hello", {"name": f"n{i}"}) for i in range(100))
            results = await asyncio.gather(*calls)
            assert [text_of(result) for result in results] == [f"hello n{i}" for i in range(100)]
            assert text_of(await client.call_tool("asked", {})) == ""

    asyncio.run(main())


def test_what_was_asked_before_the_end_of_input_is_answered(tmp_path: Path) -> None:
    async def main() -> None:
        said = f"{opening()}no json\n\n{call(1, 'hello', {'name': 'ä'})}".encode()
        answered = io.BytesIO()
        async with served(tmp_path / "hello.harn", FILE) as server:
            await serve_stdio(server, io.BytesIO(said), answered)
        answers = [json.loads(line) for line in answered.getvalue().splitlines()]
        refused, answered_last = answers[1:]
        assert [answer["id"] for answer in answers] == [0, None, 1]
        assert refused["error"]["code"] == PARSE_ERROR
        assert answered_last["result"]["content"] == [{"type": "text", "text": "hello ä"}]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("line", "id", "code"),
    [
        ("{", None, PARSE_ERROR),
        ("\xff", None, PARSE_ERROR),
        ("[" * 100_000, None, PARSE_ERROR),
        ("[]", None, INVALID_REQUEST),
        ("7", None, INVALID_REQUEST),
        ('{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": [1]}', 7, INVALID_REQUEST),
        ('{"jsonrpc": "1.0", "id": "a", "method": "ping"}', "a", INVALID_REQUEST),
    ],
)
def test_a_line_that_is_no_message_is_answered(
    line: str, id: str | int | None, code: int, tmp_path: Path
) -> None:
    async def main() -> None:
        answered = io.BytesIO()
        async with served(tmp_path / "hello.harn", FILE) as server:
            await serve_stdio(server, io.BytesIO(line.encode("latin-1") + b"\n"), answered)
        (answer,) = map(json.loads, answered.getvalue().splitlines())
        assert (answer["id"], answer["error"]["code"]) == (id, code)

    asyncio.run(main())


def test_a_signal_ends_it_and_the_calls(file: Path) -> None:
    with subprocess.Popen([*COMMAND, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write((opening() + call(1, "sleepy", {}) + request(2, "ping", {})).encode())
        server.stdin.flush()
        assert json.loads(server.stdout.readline())["id"] == 0
        assert json.loads(server.stdout.readline()) == {"jsonrpc": "2.0", "id": 2, "result": {}}
        server.send_signal(signal.SIGTERM)
        assert server.stdout.read() == b""
        assert server.wait() == 124


def test_a_program_that_ends_itself_ends_the_server(file: Path) -> None:
    with subprocess.Popen([*COMMAND, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        server.stdin.write((opening() + call(1, "sleepy", {}) + call(2, "last", {})).encode())
        server.stdin.flush()
        assert server.wait() == 3


def test_a_client_that_reads_nothing_keeps_no_server(tmp_path: Path) -> None:
    """Its pipe is full, and the server ends nevertheless."""

    async def main() -> None:
        taken, given = os.pipe()
        unread, answers = os.pipe()
        async with served(tmp_path / "much.harn", 'pub fn much() { return "x".repeat(1000000) }') as server:
            with os.fdopen(taken, "rb") as reader, os.fdopen(answers, "wb", buffering=0) as writer:
                serving = asyncio.create_task(serve_stdio(server, reader, writer))
                with os.fdopen(given, "w") as client:
                    client.write(opening() + call(1, "much", {}))
                left = 1 << 15
                while left:
                    left -= len(await asyncio.to_thread(os.read, unread, left))
                serving.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await serving
                os.close(unread)

    asyncio.run(main())


class Gone(io.BytesIO):
    def write(self, data: Any) -> int:
        raise BrokenPipeError


def test_a_client_that_has_gone_ends_it(tmp_path: Path) -> None:
    async def main() -> None:
        taken, given = os.pipe()
        async with served(tmp_path / "hello.harn", FILE) as server:
            with os.fdopen(taken, "rb") as reader, os.fdopen(given, "w") as client:
                client.write(opening() + call(1, "sleepy", {}))
                client.flush()
                await serve_stdio(server, reader, Gone())

    asyncio.run(main())
