"""A client of servers at a URL: the SDK's, and one that says what a test wants. Spec: 07 §15.1."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from harnpy import Vm
from harnpy.mcp.client import Client
from harnpy.mcp.server_spec import ConnectionFault, ServerError, ServerSpec, ToolError, Unreadable
from harnpy.world import World
from harnpy.world.egress import Egress, EgressBlocked
from harnpy.world.http import RealHttp
from tests.mcp.servers.sdk import server
from tests.mcp.test_client import failure
from tests.worlds import OwnWorld

Headers = dict[str, str]


@asynccontextmanager
async def client_of(url: str, egress: Egress | None = None, **described: Any) -> AsyncIterator[Client]:
    http = RealHttp().behind(egress or Egress())
    client = Client(ServerSpec("web", "http", url=url, **described), World(), lambda: http)
    await client.connect()
    try:
        yield client
    finally:
        await client.disconnect()


# The SDK's server.


@asynccontextmanager
async def sdk_server(json_response: bool) -> AsyncIterator[str]:
    app = server.streamable_http_app(json_response=json_response)
    running = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, lifespan="on"))
    serving = asyncio.ensure_future(running.serve())
    while not running.started:
        await asyncio.sleep(0.001)
    try:
        yield f"http://127.0.0.1:{running.servers[0].sockets[0].getsockname()[1]}/mcp"
    finally:
        running.should_exit = True
        await serving


@pytest.mark.parametrize("version", [None, "2025-11-25"])
@pytest.mark.parametrize("json_response", [False, True])
def test_with_a_server_of_the_sdk(json_response: bool, version: str | None, tmp_path: Path) -> None:
    note = tmp_path / "note"
    # One that answers with JSON alone doesn't look whether anybody is still there, unless it is told.
    notices = version is not None or not json_response
    logging.disable()

    async def run() -> Any:
        async with sdk_server(json_response) as url, client_of(url, protocol_version=version) as client:
            tool, given = ("wait", {"note": str(note)}) if notices else ("add", {"a": 1})
            waiting = asyncio.ensure_future(client.call(tool, given))
            notes: list[Any] = []
            results = [
                [tool["name"] for tool in await client.tools()],
                await client.call("add", {"a": 1, "b": 41}),
                await client.call("count", {}, lambda *told: notes.append(told)),
                len(notes),
                await failure(client.call("fail", {})),
                await client.resource("text://a"),
                (await client.prompt("greeting", {"name": "Ada"}))["messages"][0]["content"]["text"],
                await asyncio.gather(*(client.call("add", {"a": each}) for each in range(100))),
            ]
            waiting.cancel()
            while notices and not note.exists():
                await asyncio.sleep(0.001)
            return results

    try:
        results = asyncio.run(run())
    finally:
        logging.disable(logging.NOTSET)
    assert results == [
        ["add", "fail", "count", "wait"],
        42,
        "counted",
        0 if json_response else 3,
        (ToolError, "Error executing tool fail: it broke"),
        "A",
        "Hello, Ada",
        list(range(100)),
    ]


# A server that says what a test wants.


class Script:
    """Answers requests in turn with ``(status, headers, body)``; remembers what it was asked."""

    def __init__(self, *answers: tuple[int, Headers, str]) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, Headers, Any]] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in head[1:-1])}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        self.asked.append((head[0].split()[0], headers, json.loads(body) if body else None))
        status, more, text = self.answers.pop(0) if self.answers else (202, {}, "")
        lines = [f"HTTP/1.1 {status} X", "Connection: close", *(f"{k}: {v}" for k, v in more.items())]
        writer.write("\r\n".join([*lines, "", text]).encode())
        writer.close()

    def methods(self) -> list[str]:
        return [(asked or {}).get("method", kind) for kind, _, asked in self.asked]


JSON = {"Content-Type": "application/json"}
EVENTS = {"Content-Type": "text/event-stream"}


def result(id: Any, **fields: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": id, "result": fields})


def text(id: Any, said: str) -> str:
    return result(id, content=[{"type": "text", "text": said}])


def event(data: str, **fields: str) -> str:
    lines = [*(f"{name}: {value}" for name, value in fields.items()), f"data: {data}"]
    return "\n".join([*lines, "", ""])


BEGUN = (200, {**JSON, "MCP-Session-Id": "one"}, result(1, protocolVersion="2025-06-18"))
TAKEN = (202, {}, "")


def scripted(script: Script, use: Callable[[Client], Awaitable[Any]], **how: Any) -> Any:
    """What ``use`` returns, with a client of the handshake unless ``how`` says otherwise."""
    how.setdefault("protocol_version", "2025-11-25")

    async def run() -> Any:
        listening = await asyncio.start_server(script, "127.0.0.1", 0)
        host, port = listening.sockets[0].getsockname()
        async with listening, client_of(f"http://{host}:{port}/mcp", **how) as client:
            return await use(client)

    return asyncio.run(run())


def test_what_every_request_says() -> None:
    script = Script(BEGUN, TAKEN, (200, JSON, text(2, "hi")))
    answer = scripted(script, lambda client: client.call("t", {}), auth_token="key", proxy_server_name="far")
    assert answer == "hi"
    assert script.methods() == ["initialize", "notifications/initialized", "tools/call", "DELETE"]
    for number, (_, headers, body) in enumerate(script.asked):
        assert headers["authorization"] == "Bearer key"
        assert headers["accept"] == "application/json, text/event-stream"
        assert headers["mcp-protocol-version"] == ("2025-11-25" if number == 0 else "2025-06-18")
        assert headers.get("mcp-session-id") == (None if number == 0 else "one")
        assert body is None or body["serverName"] == "far"
    first = script.asked[0][2]
    assert first["params"]["capabilities"] == {}
    assert first["params"]["clientInfo"]["name"] == "harnpy"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ((401, {}, ""), (ServerError, "MCP authorization required")),
        (
            (200, JSON, '{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"no"}}'),
            (ServerError, "MCP error (-32000): no"),
        ),
        (
            (400, JSON, '{"jsonrpc":"2.0","id":null,"error":{"code":-32600}}'),
            (ServerError, "MCP error (-32600): Unknown MCP error"),
        ),
        (
            (500, {}, "sorry"),
            (
                Unreadable,
                "MCP HTTP response parse error (status 500): expected value at line 1 column 1",
            ),
        ),
        (
            (200, JSON, "[]"),
            (
                Unreadable,
                "MCP HTTP response parse error (status 200): the body is no JSON-RPC response",
            ),
        ),
        (
            (200, EVENTS, event('{"jsonrpc":"2.0","method":"notifications/message"}')),
            (
                Unreadable,
                "MCP HTTP response parse error (status 200): the event stream ended without an answer",
            ),
        ),
    ],
)
def test_failures(answer: tuple[int, Headers, str], expected: tuple[type, str]) -> None:
    assert scripted(Script(BEGUN, TAKEN, answer), lambda client: failure(client.call("t", {}))) == expected


def test_a_server_that_can_not_be_reached() -> None:
    async def run() -> tuple[type, str]:
        async with client_of("http://127.0.0.1:1/mcp"):
            raise AssertionError("connected")

    assert asyncio.run(failure(run())) == (
        ConnectionFault,
        "MCP HTTP request error: connection refused by 127.0.0.1 (http://127.0.0.1:1/mcp)",
    )


def test_events_before_the_answer_are_requests_and_progress_of_the_server() -> None:
    asked = json.dumps({"jsonrpc": "2.0", "id": "mine", "method": "roots/list"})
    told = json.dumps(
        {
            "jsonrpc": "2.0",
            "method": "notifications/progress",
            "params": {"progressToken": 1, "progress": 0.5},
        }
    )
    stream = event(told) + ": nothing\n\n" + event(asked) + event("not JSON") + event(text(2, "hi"))
    script = Script(BEGUN, TAKEN, (200, EVENTS, stream))
    notes: list[Any] = []

    async def use(client: Client) -> Any:
        answer = await client.call("t", {}, lambda *note: notes.append(note))
        while len(script.asked) < 4:
            await asyncio.sleep(0.001)
        return answer

    assert scripted(script, use) == "hi"
    assert notes == [(0.5, None, None)]
    assert script.asked[3][2]["error"] == {"code": -32601, "message": "Method not found: roots/list"}


def test_a_stream_that_breaks_off_is_continued_where_it_was() -> None:
    begun = event("{}", id="e1", retry="1")
    script = Script(BEGUN, TAKEN, (200, EVENTS, begun), (200, EVENTS, event(text(2, "hi"), id="e2")))
    assert scripted(script, lambda client: client.call("t", {})) == "hi"
    assert script.asked[3][0] == "GET"
    assert script.asked[3][1]["last-event-id"] == "e1"


def test_a_session_that_the_server_has_lost_is_begun_anew_once() -> None:
    again = (200, {**JSON, "MCP-Session-Id": "two"}, result(3))
    script = Script(BEGUN, TAKEN, (404, {}, ""), again, TAKEN, (200, JSON, text(4, "hi")))
    assert scripted(script, lambda client: client.call("t", {})) == "hi"
    assert script.asked[3][1].get("mcp-session-id") is None
    assert script.asked[5][1]["mcp-session-id"] == "two"

    lost_again = Script(BEGUN, TAKEN, (404, {}, ""), again, TAKEN, (404, {}, ""))
    kind, message = scripted(lost_again, lambda client: failure(client.call("t", {})))
    assert issubclass(kind, ConnectionFault)
    assert message == "MCP HTTP response parse error (status 404): the server has lost the session"


def test_what_may_not_be_reached_is_not() -> None:
    class Closing(Egress):
        """Admits the first two requests."""

        def __init__(self) -> None:
            super().__init__()
            self.asked: list[str] = []

        def admit(self, surface: str, url: str, host: str | None = None) -> None:
            self.asked.append(surface)
            if len(self.asked) > 2:
                raise EgressBlocked(surface, url, "127.0.0.1", 1, "no allow rule matched")

    egress, script = Closing(), Script(BEGUN, TAKEN)

    async def use(client: Client) -> None:
        with pytest.raises(EgressBlocked):
            await client.call("t", {})

    scripted(script, use, egress=egress)
    assert set(egress.asked) == {"mcp_connect"}
    assert script.methods() == ["initialize", "notifications/initialized"]


def test_a_program_names_a_server_by_its_url() -> None:
    """The server's own name is in what it says of itself."""

    async def ask() -> None:
        async with sdk_server(json_response=True) as url:
            program = f"""
                let c = mcp_connect("{url}")
                println(mcp_call(c, "add", {{a: 1, b: 2}}))
                let info = mcp_server_info(c)
                println([info.name == "{url}", info.server.name])
                mcp_disconnect(c)
                println(try {{ mcp_connect("{url}", ["x"]) }} catch (e) {{ e }})
            """
            vm = Vm(OwnWorld(written.append, written.append))
            await asyncio.to_thread(vm.run_source, program)

    written: list[str] = []
    asyncio.run(ask())
    assert "".join(written).splitlines() == [
        "3",
        f"[true, {server.name}]",
        "mcp_connect: a server at a URL takes no args; declare its auth_token in harn.toml",
    ]
