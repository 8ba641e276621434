"""Which version of the protocol a client and a server agree on, and what a request says. Spec: 07 §15.1."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from harnpy.mcp.client import Client
from harnpy.mcp.server_spec import ServerError, ServerSpec
from harnpy.world import World
from tests.mcp.test_client import SDK, failure
from tests.mcp.test_http import EVENTS, JSON, Script, client_of, event, result, scripted, sdk_server, text

MODERN, HANDSHAKE = "2026-07-28", "2025-11-25"

#: Answers each line with the next of its arguments, with the line's id; an empty one ends it.
ANSWERS = """
import json, sys
answers = sys.argv[2:]
note = open(sys.argv[1], "a")
for line in sys.stdin:
    asked = json.loads(line)
    print(asked["method"], file=note, flush=True)
    if "id" not in asked:
        continue
    answer = answers.pop(0)
    if not answer:
        break
    if answer != "silence":
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **json.loads(answer)}), flush=True)
"""
BEGUN = json.dumps({"result": {"protocolVersion": HANDSHAKE, "capabilities": {}, "serverInfo": {}}})
KNOWN = json.dumps({"result": {"supportedVersions": [HANDSHAKE, MODERN]}})
LISTED = json.dumps({"result": {"tools": [{"name": "t"}]}})


def refusal(code: int, **data: Any) -> str:
    return json.dumps({"error": {"code": code, "message": "no", "data": data}})


def asked(
    tmp_path: Path, *answers: str, version: str | None = None, patience: float = 60.0
) -> tuple[list[str], list[str]]:
    """The names of the tools of a server with these ``answers``, and the methods it was asked for."""
    note = tmp_path / "note"

    async def run() -> list[str]:
        world = World()
        command = (sys.executable, "-c", ANSWERS, str(note), *answers)
        spec = ServerSpec("s", command=command, protocol_version=version)
        client = Client(spec, world, lambda: world.http, patience=patience)
        await client.connect()
        try:
            return [tool["name"] for tool in await client.tools()]
        finally:
            await client.disconnect()

    names = asyncio.run(run())
    return names, note.read_text().split()


@pytest.mark.parametrize(
    ("answers", "methods"),
    [
        ([KNOWN], ["server/discover"]),
        ([refusal(-32022, supported=[MODERN, "2099-01-01"]), KNOWN], ["server/discover"] * 2),
        ([refusal(-32601), BEGUN], ["server/discover", "initialize", "notifications/initialized"]),
        ([refusal(-32602), BEGUN], ["server/discover", "initialize", "notifications/initialized"]),
        ([refusal(-32022, supported=[HANDSHAKE]), BEGUN],
         ["server/discover", "initialize", "notifications/initialized"]),
        (['{"result": {}}', BEGUN], ["server/discover", "initialize", "notifications/initialized"]),
        (['{"result": {"supportedVersions": ["2025-11-25"]}}', BEGUN],
         ["server/discover", "initialize", "notifications/initialized"]),
        ([refusal(-32601), refusal(-32022, supported=[MODERN]), KNOWN],
         ["server/discover", "initialize", "server/discover"]),
    ],
)  # fmt: skip
def test_the_newest_version_that_both_speak(tmp_path: Path, answers: list[str], methods: list[str]) -> None:
    assert asked(tmp_path, *answers, LISTED) == (["t"], [*methods, "tools/list"])


def test_a_version_that_is_asked_for_is_not_negotiated(tmp_path: Path) -> None:
    assert asked(tmp_path, LISTED, version=MODERN)[1] == ["tools/list"]
    begun = ["initialize", "notifications/initialized", "tools/list"]
    assert asked(tmp_path, BEGUN, LISTED, version=HANDSHAKE)[1][1:] == begun


def test_a_server_that_ends_when_it_is_probed_is_started_again(tmp_path: Path) -> None:
    """Servers that take nothing but `initialize` for their first message do so."""
    note = tmp_path / "note"
    picky = f"""
import json, sys
asked = json.loads(sys.stdin.readline())
with open({str(note)!r}, "a") as file:
    print(asked["method"], file=file)
if asked["method"] == "initialize":
    print(json.dumps({{"jsonrpc": "2.0", "id": asked["id"], "result": {{"protocolVersion": "{HANDSHAKE}"}}}}))
    sys.stdout.flush()
    sys.stdin.read()
"""

    async def run() -> bool:
        world = World()
        client = Client(ServerSpec("s", command=(sys.executable, "-c", picky)), world, lambda: world.http)
        await client.connect()
        connected = client.is_connected
        await client.disconnect()
        return connected

    assert asyncio.run(run())
    assert note.read_text().split() == ["server/discover", "initialize"]


def test_a_server_that_was_reconnected_is_not_probed_again() -> None:
    async def run() -> list[Any]:
        world = World()
        client = Client(ServerSpec("sdk", command=SDK), world, lambda: world.http)
        await client.connect()
        answers = [await client.call("add", {"a": 1})]
        await client.suspend()
        answers.append(await client.call("add", {"a": 2}))
        await client.disconnect()
        return answers

    assert asyncio.run(run()) == [1, 2]


# Over HTTP.


def modern(script: Script, use: Callable[[Client], Awaitable[Any]], **how: Any) -> Any:
    return scripted(script, use, protocol_version=MODERN, **how)


def test_a_request_without_a_handshake_says_what_it_is() -> None:
    schema = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    listed = result(1, tools=[{"name": "t\u00fc", "inputSchema": schema}])
    script = Script((200, JSON, listed), (200, JSON, text(2, "hi")))

    async def use(client: Client) -> Any:
        await client.tools()
        return await client.call("t\u00fc", {"region": "eu"})

    assert modern(script, use, auth_token="key") == "hi"
    assert script.methods() == ["tools/list", "tools/call"]
    for _, headers, body in script.asked:
        assert headers["mcp-protocol-version"] == MODERN
        assert headers["mcp-method"] == body["method"]
        assert "mcp-session-id" not in headers
        meta = body["params"]["_meta"]
        assert meta["io.modelcontextprotocol/protocolVersion"] == MODERN
        assert meta["io.modelcontextprotocol/clientInfo"]["name"] == "harnpy"
        assert meta["io.modelcontextprotocol/clientCapabilities"] == {}
    called = script.asked[1][1]
    assert called["mcp-param-region"] == "eu"
    assert called["mcp-name"].startswith("=?base64?")


def test_a_tool_with_impossible_headers_is_not_offered() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "object", "x-mcp-header": "A"}}}
    listed = result(1, tools=[{"name": "bad", "inputSchema": schema}, {"name": "good"}])

    async def use(client: Client) -> list[str]:
        return [tool["name"] for tool in await client.tools()]

    assert modern(Script((200, JSON, listed)), use) == ["good"]


def test_headers_that_the_server_misses_are_looked_up() -> None:
    schema = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    missed = json.dumps({"jsonrpc": "2.0", "id": 1, "error": {"code": -32020, "message": "mismatch"}})
    listed = result(2, tools=[{"name": "t", "inputSchema": schema}])
    script = Script((400, JSON, missed), (200, JSON, listed), (200, JSON, text(3, "hi")))
    assert modern(script, lambda client: client.call("t", {"region": "eu"})) == "hi"
    assert [headers.get("mcp-param-region") for _, headers, _ in script.asked] == [None, None, "eu"]


@pytest.mark.parametrize(
    "refused", [(400, {}, "Bad Request"), (404, {}, ""), (405, JSON, "[]"), (200, {}, "")]
)
def test_a_server_that_knows_no_probe_gets_a_handshake(refused: Any) -> None:
    begun = (200, {**JSON, "MCP-Session-Id": "one"}, result(2, protocolVersion=HANDSHAKE))
    script = Script(refused, begun, (202, {}, ""), (200, JSON, text(3, "hi")))
    assert scripted(script, lambda client: client.call("t", {}), protocol_version=None) == "hi"
    assert script.methods()[:3] == ["server/discover", "initialize", "notifications/initialized"]
    assert [headers.get("mcp-method") for _, headers, _ in script.asked][:2] == ["server/discover", None]


def test_a_server_that_wants_to_know_who_asks_is_asked_once() -> None:
    script = Script((401, {}, ""))
    with pytest.raises(ServerError, match="MCP authorization required"):
        scripted(script, lambda client: client.tools(), protocol_version=None)
    assert len(script.asked) == 1


def test_a_result_that_comes_in_rounds() -> None:
    waiting = result(1, resultType="input_required", requestState="s1")
    again = result(2, resultType="input_required", requestState="s2")
    script = Script((200, JSON, waiting), (200, JSON, again), (200, JSON, text(3, "hi")))
    assert modern(script, lambda client: client.call("t", {"a": 1})) == "hi"
    assert [body["params"].get("requestState") for _, _, body in script.asked] == [None, "s1", "s2"]
    assert [body["params"]["arguments"] for _, _, body in script.asked] == [{"a": 1}] * 3


def test_a_server_that_asks_for_what_is_not_offered_is_refused() -> None:
    wanted = {"q": {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {}}}}
    waiting = result(1, resultType="input_required", inputRequests=wanted)
    outcome = modern(Script((200, JSON, waiting)), lambda client: failure(client.call("t", {})))
    assert outcome == (ServerError, "MCP: the server asks for what harnpy doesn't offer: elicitation/create")


def test_a_call_that_is_cancelled_ends_its_request(tmp_path: Path) -> None:
    """Nothing is sent for it: without a handshake, the end of a request says it."""
    note = tmp_path / "note"
    logging.disable()

    async def run() -> None:
        async with sdk_server(False) as url, client_of(url) as client:
            call = asyncio.ensure_future(client.call("wait", {"note": str(note)}))
            answers = await asyncio.gather(*(client.call("add", {"a": each}) for each in range(5)))
            assert answers == list(range(5))
            call.cancel()
            while not note.exists():
                await asyncio.sleep(0.001)

    try:
        asyncio.run(run())
    finally:
        logging.disable(logging.NOTSET)


def test_progress_and_events_of_a_request_without_a_handshake() -> None:
    notes: list[Any] = []

    def told(number: int) -> str:
        params = {"progressToken": 1, "progress": number}
        return event(json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))

    script = Script((200, EVENTS, told(1) + told(2) + event(text(1, "hi"))))

    async def use(client: Client) -> Any:
        return await client.call("t", {}, lambda *note: notes.append(note))

    assert modern(script, use) == "hi"
    assert notes == [(1, None, None), (2, None, None)]
    assert script.asked[0][2]["params"]["_meta"]["progressToken"] == 1
