"""A client of servers that run as programs: results, failures, cancellation, ends. Spec: 07 §15.1."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from harnpy.faults import Fault, MisuseError
from harnpy.mcp.client import Client
from harnpy.mcp.connection import Connection
from harnpy.mcp.server_spec import (
    ConnectionFault,
    NotStarted,
    ServerError,
    ServerLeft,
    ServerSpec,
    ToolError,
    read_server_spec,
)
from harnpy.mcp.transports import Stdio
from harnpy.version import install_command
from harnpy.world import World
from tests.support import wait_until

_SERVERS = Path(__file__).parent / "servers"
RAW = (sys.executable, str(_SERVERS / "raw.py"))
SDK = (sys.executable, str(_SERVERS / "sdk.py"), "stdio")


def using(
    use: Callable[[Client], Awaitable[Any]],
    *command: str,
    patience: float = 60.0,
    env: Any = None,
    version: str | None = None,
) -> Any:
    """What ``use(client)`` returns, with a client of the server that ``command`` starts."""

    async def run() -> Any:
        world = World()
        spec = ServerSpec("raw", command=command or RAW, env=env or {}, protocol_version=version)
        client = Client(spec, world, lambda: world.http, patience=patience)
        await client.connect()
        try:
            return await use(client)
        finally:
            await client.disconnect()

    return asyncio.run(run())


async def failure(call: Awaitable[Any]) -> tuple[type, str]:
    with pytest.raises(Fault) as caught:
        await call
    return type(caught.value), str(caught.value)


def test_lists_are_followed_to_their_end() -> None:
    async def use(client: Client) -> Any:
        tools = await client.tools()
        return [tool["name"] for tool in tools], {tool["_mcp_server"] for tool in tools}, tools[0]

    names, servers, first = using(use)
    assert names == ["add", "fail", "refuse", "crash", "echo", "nothing", "wait", "progress"]
    assert servers == {"raw"}
    assert first["inputSchema"]["required"] == ["a"]


def test_a_list_without_end_is_a_failure() -> None:
    assert using(lambda client: failure(client.listed("endless/list", "items"))) == (
        ConnectionFault,
        "MCP: 'endless/list' has no end: the cursor 'again' came twice",
    )


def test_results_are_what_programs_get_of_them() -> None:
    async def use(client: Client) -> list[Any]:
        echo = await client.call("echo", {"x": [1, 2.5, None]})
        return [
            await client.call("add", {"a": 1, "b": 41}),
            await client.call("nothing", {}),
            [json.loads(echo[0]["text"]), echo[1]],
            await client.resource("text:a"),
            await client.resource("text:none"),
            await client.resource("text:two"),
            await client.prompt("greeting", {"name": "Ada"}),
            await client.listed("prompts/list", "prompts"),
        ]

    greeting = {"role": "user", "content": {"type": "text", "text": "Hello, Ada"}}
    assert using(use) == [
        "42",
        None,
        [{"x": [1, 2.5, None]}, {"type": "image"}],
        "A",
        None,
        [{"uri": "x"}, {"uri": "y"}],
        {"messages": [greeting]},
        [],
    ]


def test_failures_say_who_failed_and_how() -> None:
    async def use(client: Client) -> list[Any]:
        return [
            await failure(client.call("fail", {})),
            await failure(client.call("fail", {"texts": []})),
            await failure(client.call("refuse", {})),
            await failure(client.call("refuse", {"error": {}})),
            await failure(client.call("refuse", {"error": {"code": "x", "message": 3}})),
            await failure(client.call("answer", {"result": 3})),
            await failure(client.call("answer", {})),
            await failure(client.request("no/such")),
        ]

    no_result = (ServerError, "MCP error (-1): the server's answer has no result object")

    assert using(use) == [
        (ToolError, "it broke\nbadly"),
        (ToolError, "{content: [], isError: true}"),
        (ServerError, "MCP error (-32602): no such thing"),
        (ServerError, "MCP error (-1): Unknown MCP error"),
        (ServerError, "MCP error (-1): Unknown MCP error"),
        no_result,
        no_result,
        (ServerError, "MCP error (-32601): Method not found: no/such"),
    ]


def test_noise_is_skipped_and_requests_of_the_server_are_answered() -> None:
    """Only `ping` has an answer; the server says which of its requests were refused."""
    answers = using(lambda client: client.call("noise", {}))
    assert json.loads(answers) == {"mine": [-32601, "Method not found: sampling/createMessage"], "ping": {}}


def test_progress_is_told() -> None:
    async def use(client: Client) -> Any:
        notes: list[Any] = []
        result = await client.call("progress", {}, lambda *note: notes.append(note))
        return result, notes

    assert using(use) == ("done", [(step, 3, None) for step in range(3)])


def test_who_reports_progress_has_its_time_anew() -> None:
    async def use() -> bool:
        transport = Stdio(read_server_spec({"name": "s", "command": "none"}), World())
        connection = Connection(transport, asyncio.create_task, 60)
        async with asyncio.timeout(3600) as limit:
            with connection._telling({}, lambda *_: None, limit) as given:
                connection._notified("notifications/progress", {**given["_meta"], "progress": 1})
            return limit.when() <= asyncio.get_running_loop().time() + 60

    assert asyncio.run(use())


def test_a_server_that_crashes_in_a_call_is_gone() -> None:
    async def use(client: Client) -> Any:
        others = [asyncio.ensure_future(failure(client.call("silence", {}))) for _ in range(3)]
        return [
            await failure(client.call("crash", {})),
            *(await asyncio.gather(*others)),
            await failure(client.call("add", {"a": 1})),
            client.is_connected,
        ]

    closed = (ServerLeft, "MCP: server closed connection")
    gone = (ConnectionFault, "MCP client is disconnected")
    assert using(use) == [closed, closed, closed, closed, gone, False]


def test_a_server_that_does_not_answer_is_not_waited_for_for_ever() -> None:
    with pytest.raises(ConnectionFault, match=r"did not respond to 'initialize' within 0\.05s"):
        using(lambda client: client.tools(), "sh", "-c", "cat > /dev/null", patience=0.05)


def test_the_server_is_told_of_a_call_that_is_cancelled(tmp_path: Path) -> None:
    note = tmp_path / "note"

    async def use(client: Client) -> None:
        call = asyncio.ensure_future(
            client.call("wait", {"note": str(note), "started": str(tmp_path / "began")})
        )
        while not (tmp_path / "began").exists():
            await asyncio.sleep(0.001)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await client.call("add", {"a": 2}) == "2"

    using(use)
    assert json.loads(note.read_text()) == ["notifications/cancelled", True]


def test_a_hundred_calls_at_once_get_their_own_answers() -> None:
    async def use(client: Client) -> Any:
        return await asyncio.gather(*(client.call("add", {"a": number}) for number in range(100)))

    assert using(use) == [str(number) for number in range(100)]


def test_a_slow_start_is_waited_for_and_the_environment_is_ours_and_more() -> None:
    async def use(client: Client) -> Any:
        return [await client.call("variable", {"name": name}) for name in ("PATH", "ADDED")]

    assert using(use, *RAW, "slow=0.1", env={"ADDED": "yes"}) == [os.environ["PATH"], "yes"]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("no-such-program",), "failed to spawn 'no-such-program': No such file or directory (os error 2)"),
        (("a\0b",), "failed to spawn 'a\0b': embedded null byte"),
    ],
)
def test_a_program_that_can_not_be_started(command: tuple[str, ...], message: str) -> None:
    async def use(client: Client) -> None:
        raise AssertionError("connected")

    with pytest.raises(NotStarted, match=message.replace("(", r"\(").replace(")", r"\)")):
        using(use, *command)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"name": "x"}, "MCP server 'x': a server of transport stdio needs a `command`"),
        (
            {"name": "x", "url": "http://a.test"},
            "stdio needs a `command`; for its `url` the transport is http",
        ),
        ({"name": "x", "args": "a b"}, "MCP `args` must be a list"),
        ({"name": "x", "env": ["A=b"]}, "MCP `env` must be a dict"),
        ({"name": "x", "transport": "http"}, "MCP server 'x': a server of transport http needs a `url`"),
        (
            {"name": "x", "transport": "pigeon"},
            "MCP server 'x': unknown transport 'pigeon': there are stdio and http",
        ),
    ],
)
def test_a_description_that_lacks_something(given: Any, message: str) -> None:
    async def connect() -> None:
        await Client(read_server_spec(given), World(), lambda: World().http).connect()

    with pytest.raises(MisuseError, match=message):
        asyncio.run(connect())


def test_without_the_sdk_one_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    with pytest.raises(ConnectionFault, match=re.escape(f"official SDK: {install_command('mcp')}") + "$"):
        using(lambda client: client.tools())


def test_a_server_that_ignores_the_end_of_its_input_is_ended() -> None:
    async def use(client: Client) -> int:
        return int(await client.call("pid", {}))

    pid = using(use, *RAW, "stubborn=1")
    wait_until(lambda: not Path(f"/proc/{pid}").exists())


def test_a_client_that_was_suspended_connects_again() -> None:
    async def use(client: Client) -> Any:
        before = await client.call("pid", {})
        await client.suspend()
        suspended = client.is_connected
        after = await asyncio.gather(*(client.call("pid", {}) for _ in range(3)))
        return before not in after, len(set(after)), suspended

    assert using(use) == (True, 1, False)


def test_a_client_that_was_suspended_is_disconnected_in_a_later_run() -> None:
    """As in the REPL, where each input has an event loop of its own."""
    world = World()
    client = Client(ServerSpec("raw", command=RAW), world, lambda: world.http)

    async def begin() -> None:
        await client.connect()
        await client.suspend()

    asyncio.run(begin())
    asyncio.run(client.disconnect())
    assert asyncio.run(failure(client.call("add", {"a": 1}))) == (
        ConnectionFault,
        "MCP client is disconnected",
    )


def test_what_is_written_of_a_server_tells_no_secret() -> None:
    spec = ServerSpec("web", "http", env={"KEY": "hidden"}, url="http://x", auth_token="hidden")
    assert "hidden" not in repr(spec)


def test_with_a_server_of_the_sdk(tmp_path: Path) -> None:
    note = tmp_path / "note"

    async def use(client: Client) -> Any:
        notes: list[Any] = []
        call = asyncio.ensure_future(client.call("wait", {"note": str(note)}, lambda *_: None))
        results = [
            [tool["name"] for tool in await client.tools()],
            await client.call("add", {"a": 1, "b": 41}),
            await client.call("count", {}, lambda *told: notes.append(told)),
            notes,
            await failure(client.call("fail", {})),
            (await failure(client.call("add", {"a": "x"})))[0],
            await client.resource("text://a"),
            (await client.prompt("greeting", {"name": "Ada"}))["messages"][0]["content"]["text"],
        ]
        call.cancel()
        while not note.exists():
            await asyncio.sleep(0.001)
        return results

    assert using(use, *SDK) == [
        ["add", "fail", "count", "wait"],
        42,
        "counted",
        [(step, 3, f"step {step}") for step in range(3)],
        (ToolError, "Error executing tool fail: it broke"),
        ToolError,
        "A",
        "Hello, Ada",
    ]
