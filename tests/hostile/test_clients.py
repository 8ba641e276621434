"""Clients of a served program get no further than it lets them. Spec: 09 §11.4."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from harnpy import Vm, VmError, World
from harnpy.builtins import catalog
from harnpy.builtins.options import TABLES
from harnpy.eventlog import StoreEventLog
from harnpy.eventlog.bearer import TOPIC, BearerSessions, CreateSession
from harnpy.eventlog.http import BearerAuth
from harnpy.net.admission import Bounds, reply
from harnpy.serve.functions import CLIENT_VERBS, Function, session_verbs
from harnpy.serve.mcp_http import Keyed, Sessions, serve_http
from harnpy.serve.mcp_tools import CallFailed, Tool
from harnpy.serve.site import Site
from harnpy.storage.memory import MemoryStore
from tests.serve.mcp.serving import converse, served, text_of
from tests.worlds import OwnWorld

PREFIX = "agent_session_"
#: What other programs of this kind let their clients name.
OTHERS = "store path file dir url command env callback persist export import snapshot worktree artifacts"
#: Verbs that are the program's own: they name paths of this machine, or the loop that is running.
NOT_OFFERED = {
    f"{PREFIX}{verb}"
    for verb in ("add_root", "current_id", "remove_root", "seed_from_jsonl", "set_workspace_anchor",
                 "set_workspace_policy")
}  # fmt: skip

# A client opens any store.


def taken(vm: Vm, verb: Function) -> set[str]:
    """Return the options that a verb takes from a program, as its own message lists them."""
    if "opts" not in verb.parameters:
        return set()
    given = {"id": "s", "client_id": "c", "content": "x", "request": {}, "scratchpad": {}, "opts": {"?": 1}}
    with pytest.raises(VmError) as refused:
        vm.call(verb.call, *verb.positional(given))
    listed = re.search(r"expected one of: ([^)]+)", str(refused.value))
    assert listed, refused.value
    return set(listed[1].split(", "))


def refusal(tool: Tool, arguments: dict[str, Any]) -> str:
    """Return what a client reads of a call that comes to nothing."""

    async def called(function: Any, arguments: Sequence[Any]) -> Any:
        raise AssertionError(f"called with {arguments}")

    with pytest.raises(CallFailed) as failed:
        asyncio.run(tool.run(arguments, called))
    return str(failed.value)


def test_every_option_that_is_not_declared_safe_is_refused_by_its_name() -> None:
    vm = Vm(OwnWorld())
    vm.run_source('agent_session_attach(agent_session_open("s"), "c", {mode: "controller"})')
    offered = session_verbs(vm)
    own = {verb.name: taken(vm, verb) for verb in offered.values()}
    elsewhere = {option.name for table in TABLES.values() for option in table.own.values()}
    options = set().union(elsewhere, OTHERS.split(), *own.values())
    for name, verb in offered.items():
        tool, declared = Tool(verb), set(CLIENT_VERBS[name.removeprefix(PREFIX)].split())
        assert declared <= own[name]
        arguments: dict[str, Any] = dict.fromkeys(options - verb.parameters.keys(), 1)
        refused = re.findall(r"at root: unexpected key '([^']+)'", refusal(tool, arguments))
        assert refused == sorted(arguments)
        if "opts" in verb.parameters:
            refused = re.findall(
                r"at opts: unexpected key '([^']+)'", refusal(tool, {"opts": dict.fromkeys(options)})
            )
            assert refused == sorted(options - declared)


def test_a_verb_that_is_not_declared_is_not_offered() -> None:
    verbs = {name for name in catalog.names() if name.startswith(PREFIX)}
    assert verbs - session_verbs(Vm(OwnWorld())).keys() == NOT_OFFERED


def test_a_client_opens_no_store(tmp_path: Path) -> None:
    async def session(client: Client) -> None:
        before = {path.name for path in tmp_path.iterdir()}
        for options in (
            {"store": f"sqlite:{tmp_path}/other.db"},
            {"store": "postgresql://ada:secret@127.0.0.1:1/db"},
            {"store": True},
            {"workspace_anchor": "."},
        ):
            answer = text_of(await client.call_tool("agent_session_open", {"id": "mine", "opts": options}))
            key = next(iter(options))
            assert answer == f"ERROR agent_session_open: wrong arguments: at opts: unexpected key '{key}'"
        for name in sorted(NOT_OFFERED):
            with pytest.raises(MCPError, match=f"Unknown tool: {name}"):
                await client.call_tool(name, {})
        assert text_of(await client.call_tool("agent_session_exists", {"id": "mine"})) == "false"
        assert {path.name for path in tmp_path.iterdir()} == before

    converse(tmp_path / "empty.harn", "", session, with_sessions=True)


# One client slows all.


NOW = datetime(2026, 1, 31, 9, tzinfo=UTC)
WORD = {"type": "http.request", "body": b"", "more_body": False}


class Visit:
    """A request without a server: what was sent, and a way for its client to leave."""

    def __init__(
        self, app: Any, token: str, *arriving: dict[str, Any], more: list[tuple[bytes, bytes]] | None = None
    ) -> None:
        self.sent: list[dict[str, Any]] = []
        self.left = asyncio.Event()
        self._arriving = list(arriving or [WORD])
        headers = [(b"authorization", f"Bearer {token}".encode()), *(more or ())]
        scope = {"type": "http", "method": "POST", "path": "/", "headers": headers}
        self.over = asyncio.ensure_future(app(scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        if self._arriving:
            return self._arriving.pop(0)
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)

    async def answer(self) -> tuple[int, dict[bytes, bytes]]:
        """Return status and headers."""
        await self.over
        return self.sent[0]["status"], dict(self.sent[0]["headers"])

    async def leave(self) -> None:
        self.left.set()
        await self.over


class Service:
    """An application behind `BearerAuth` that answers when it is told to; ``asked``: for whom, in order."""

    def __init__(self, **bounds: Any) -> None:
        self.now = NOW
        self.log = StoreEventLog(MemoryStore())
        self.sessions = BearerSessions(self.log, clock=lambda: self.now)
        self.asked: list[str] = []
        self.may_answer = asyncio.Event()
        self.guarded = BearerAuth(self._app, self.sessions, bounds=Bounds(**bounds))

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        self.asked.append(scope["auth_principal"])
        while (await receive()).get("more_body"):
            pass
        await self.may_answer.wait()
        await reply(send, 200, "", [])

    def token_of(self, principal: str) -> str:
        return self.sessions.create(CreateSession(principal, NOW + timedelta(days=1))).id

    def visit(self, token: str, *arriving: dict[str, Any]) -> Visit:
        return Visit(self.guarded, token, *arriving)

    def waiting(self) -> int:
        (callers,) = self.guarded._callers.values()
        return callers.admission.waiting

    async def has_asked(self, count: int) -> None:
        while len(self.asked) < count:
            await asyncio.sleep(0)


def test_that_a_session_was_seen_is_written_once_an_interval() -> None:
    async def main() -> None:
        service = Service()
        service.may_answer.set()
        token = service.token_of("ada")
        for minutes, notes in ((0, 0), (0.9, 0), (1, 1), (1.5, 1), (2, 2)):
            service.now = NOW + timedelta(minutes=minutes)
            answers = await asyncio.gather(*(service.visit(token).answer() for _ in range(100)))
            assert {status for status, _ in answers} == {200}
            await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})
            assert len(service.log.read_range(TOPIC)) == 1 + notes
        assert service.sessions.get(token).last_seen_at == service.now

    asyncio.run(main())


def test_all_tokens_that_wait_are_looked_up_by_one_read(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        service = Service()
        service.may_answer.set()
        token, reads = service.token_of("ada"), []
        read = service.log.read_range
        monkeypatch.setattr(service.log, "read_range", lambda *args: reads.append(args) or read(*args))
        answers = [service.visit(token if n % 2 else f"unknown {n}").answer() for n in range(300)]
        assert sorted(status for status, _ in await asyncio.gather(*answers)) == [200] * 150 + [401] * 150
        assert len(reads) <= 3

    asyncio.run(main())


def test_abandoned_requests_give_up_their_slots_at_once() -> None:
    async def main() -> None:
        service = Service(slots=2)
        token = service.token_of("ada")
        running = [service.visit(token) for _ in range(2)]
        await service.has_asked(2)
        waiting = [service.visit(token) for _ in range(50)]
        while service.waiting() < 50:
            await asyncio.sleep(0)
        await asyncio.gather(*(visit.leave() for visit in waiting))
        assert not any(visit.sent for visit in waiting)
        # What is running notices by itself; somebody else has the slot now.
        for visit in running:
            visit.left.set()
        other = service.visit(service.token_of("bob"))
        await service.has_asked(3)
        service.may_answer.set()
        assert (await other.answer())[0] == 200
        assert service.asked == ["ada", "ada", "bob"]

    asyncio.run(main())


def test_callers_take_turns_and_queues_have_an_end() -> None:
    async def main() -> None:
        service = Service(slots=4, slots_per_caller=3, waiting=8, waiting_per_caller=5)
        tokens = {name: service.token_of(name) for name in ("ada", "bob", "eve")}
        visits = [service.visit(tokens["ada"]) for _ in range(8)]
        await service.has_asked(3)
        assert service.asked == ["ada"] * 3  # one caller doesn't have all slots
        status, headers = await service.visit(tokens["ada"]).answer()
        assert (status, headers[b"retry-after"]) == (429, b"1")
        visits += [service.visit(tokens["bob"]) for _ in range(3)]
        await service.has_asked(4)
        visits += [service.visit(tokens["eve"])]
        while service.waiting() < 8:
            await asyncio.sleep(0)
        status, headers = await service.visit(tokens["eve"]).answer()
        assert (status, headers[b"retry-after"]) == (503, b"1")
        service.may_answer.set()
        assert {status for status, _ in await asyncio.gather(*(visit.answer() for visit in visits))} == {200}
        assert service.asked[4:7] == ["ada", "bob", "eve"]

    asyncio.run(main())


@pytest.mark.parametrize("arrived", [[], [{**WORD, "body": b"x" * 7, "more_body": True}]])
def test_slow_bodies_are_cut(arrived: list[dict[str, Any]]) -> None:
    never = {**WORD, "body": b"x", "more_body": True}

    async def main() -> None:
        service = Service(slots=1, seconds=0, read_ahead=8)
        status, headers = await service.visit(service.token_of("ada"), *arrived, never).answer()
        assert (status, headers[b"connection"]) == (408, b"close")
        # The first eight bytes are read ahead; with them it has a slot, which it loses when no more come.
        assert service.asked == ["ada"] * len(arrived)

    asyncio.run(main())


# An MCP server by HTTP.


COMPUTING = """
var running = 0
/** Never ends by itself. */
pub fn compute() {
  running = running + 1
  defer { running = running - 1 }
  while true { }
}
pub fn count() { return running }
/** What its tasks do, in order: one that computes isn't interrupted by its siblings. */
pub fn siblings(turns: int) {
  let order = shared_cell("order", "")
  let first = spawn {
    for n in range(turns) { }
    shared_set(order, shared_get(order) + "first ")
  }
  let second = spawn { shared_set(order, shared_get(order) + "second") }
  await(first)
  await(second)
  return shared_get(order)
}
"""
LEGACY = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


def rpc(method: str, id: int = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


INITIALIZE = rpc(
    "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "x", "version": "1"}
)


@pytest.mark.parametrize(("evaluator", "turns"), [("compile", 300_000), ("walk", 30_000)])
def test_calls_take_turns_while_they_compute(tmp_path: Path, evaluator: str, turns: int) -> None:
    async def session(client: Client) -> None:
        calls = [asyncio.ensure_future(client.call_tool("compute", {})) for _ in range(3)]
        await running(client, 3)
        assert text_of(await client.call_tool("siblings", {"turns": turns})) == "first second"
        for call in calls:
            call.cancel()
        await running(client, 0)

    converse(tmp_path / "computing.harn", COMPUTING, session, evaluator=evaluator)


async def running(client: Client, count: int) -> None:
    while text_of(await client.call_tool("count", {})) != str(count):
        await asyncio.sleep(0)


def test_a_call_ends_when_its_client_has_left(tmp_path: Path) -> None:
    """The client speaks the protocol before 2026-07-28, in which only a message cancels a call."""

    async def main() -> None:
        async with served(tmp_path / "computing.harn", COMPUTING) as server:
            url = asyncio.get_running_loop().create_future()
            site = Site("127.0.0.1", 0)
            serving = asyncio.create_task(serve_http(server, site, World().listening, url.set_result))
            port = int((await url).rpartition(":")[2].partition("/")[0])
            async with httpx2.AsyncClient() as http, Client(url.result()) as other:
                begun = await http.post(url.result(), json=INITIALIZE, headers=LEGACY)
                headers = {
                    **LEGACY,
                    "Host": f"127.0.0.1:{port}",
                    "Mcp-Session-Id": begun.headers["mcp-session-id"],
                }
                writers = []
                for id in range(5):
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    body = json.dumps(rpc("tools/call", id, name="compute", arguments={}))
                    lines = [f"{name}: {value}" for name, value in headers.items()]
                    head = ["POST /mcp HTTP/1.1", *lines, f"Content-Length: {len(body)}", "", ""]
                    writer.write(("\r\n".join(head) + body).encode())
                    writers.append(writer)
                await running(other, 5)
                for writer in writers:
                    writer.close()
                await running(other, 0)
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(main())


def test_sessions_that_nobody_uses_are_freed(tmp_path: Path) -> None:
    """Of the client that has most of them, the one that was unused for longest."""

    async def main() -> None:
        async with served(tmp_path / "computing.harn", COMPUTING) as server:
            sessions = Sessions(server.streamable_http_app(), 4)
            transport = httpx2.ASGITransport(Keyed(sessions, ("a", "b")))
            async with (
                server.session_manager.run(),
                httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:1") as http,
            ):

                async def begun(key: str) -> str:
                    reply = await http.post("/mcp", json=INITIALIZE, headers={**LEGACY, "X-API-Key": key})
                    return str(reply.headers["mcp-session-id"])

                async def status(id: str) -> int:
                    headers = {**LEGACY, "X-API-Key": "a", "Mcp-Session-Id": id}
                    return (await http.post("/mcp", json=rpc("ping"), headers=headers)).status_code

                others = await begun("b")
                ids = [await begun("a") for _ in range(3)]
                assert await status(ids[0]) == 200
                ids += [await begun("a") for _ in range(2)]
                assert [await status(id) for id in (others, *ids)] == [200, 200, 404, 404, 200, 200]
                ending = {"X-API-Key": "a", "Mcp-Session-Id": ids[0]}
                assert (await http.delete("/mcp", headers=ending)).status_code == 200
                assert len(sessions.running) == 3

    asyncio.run(main())


def test_an_idle_session_has_an_end(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path / "computing.harn", COMPUTING) as server:
            url = asyncio.get_running_loop().create_future()
            site = Site("127.0.0.1", 0)
            serving = asyncio.create_task(serve_http(server, site, World().listening, url.set_result))
            await url
            assert server.session_manager.session_idle_timeout == 1800
            assert server.session_manager.max_sessions == 1000
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(main())


@pytest.mark.parametrize("evading", [[], [(b"mcp-method", b"subscriptions/listen")]])
def test_keys_take_turns(evading: list[tuple[bytes, bytes]]) -> None:
    answer, asked = asyncio.Event(), []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        asked.append(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await answer.wait()
        await send({"type": "http.response.body", "body": b""})

    async def main() -> None:
        keyed = Keyed(app, ("a", "b"), Bounds(slots=2, slots_per_caller=1, waiting_per_caller=1))
        first, second, third = (Visit(keyed, "a", more=evading) for _ in range(3))
        status, headers = await third.answer()
        assert (status, headers[b"retry-after"]) == (429, b"1")
        assert not second.sent
        other = Visit(keyed, "b", more=evading)
        while not other.sent:
            await asyncio.sleep(0)
        answer.set()
        assert [(await visit.answer())[0] for visit in (first, second, other)] == [200] * 3

    asyncio.run(main())
