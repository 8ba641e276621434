"""Clients of a served program get no further than it lets them. Spec: 09 §11.4."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from harnpy import Vm, VmError
from harnpy.builtins import catalog
from harnpy.builtins.options import TABLES
from harnpy.eventlog import StoreEventLog
from harnpy.eventlog.bearer import TOPIC, BearerSessions, CreateSession
from harnpy.eventlog.http import BearerAuth
from harnpy.net.admission import Bounds, reply
from harnpy.serve.functions import CLIENT_VERBS, Function, session_verbs
from harnpy.serve.mcp_tools import CallFailed, Tool
from harnpy.storage.memory import MemoryStore
from tests.serve.mcp.serving import converse, text_of
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

    def __init__(self, app: Any, token: str, *arriving: dict[str, Any]) -> None:
        self.sent: list[dict[str, Any]] = []
        self.left = asyncio.Event()
        self._arriving = list(arriving or [WORD])
        scope = {"type": "http", "path": "/", "headers": [(b"authorization", f"Bearer {token}".encode())]}
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
        (door,) = self.guarded._doors.values()
        return door.admission.waiting

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


def test_abandoned_requests_give_up_their_places_at_once() -> None:
    async def main() -> None:
        service = Service(places=2, of_one=2)
        token = service.token_of("ada")
        running = [service.visit(token) for _ in range(2)]
        await service.has_asked(2)
        waiting = [service.visit(token) for _ in range(50)]
        while service.waiting() < 50:
            await asyncio.sleep(0)
        await asyncio.gather(*(visit.leave() for visit in waiting))
        assert not any(visit.sent for visit in waiting)
        # What is running notices by itself; somebody else has the place now.
        for visit in running:
            visit.left.set()
        other = service.visit(service.token_of("bob"))
        await service.has_asked(3)
        service.may_answer.set()
        assert (await other.answer())[0] == 200
        assert service.asked == ["ada", "ada", "bob"]

    asyncio.run(main())


def test_callers_take_turns_and_lines_have_an_end() -> None:
    async def main() -> None:
        service = Service(places=4, of_one=3, line=5, lines=8)
        tokens = {name: service.token_of(name) for name in ("ada", "bob", "eve")}
        visits = [service.visit(tokens["ada"]) for _ in range(8)]
        await service.has_asked(3)
        assert service.asked == ["ada"] * 3  # one caller doesn't have all places
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
        service = Service(places=1, seconds=0, ahead=8)
        status, headers = await service.visit(service.token_of("ada"), *arrived, never).answer()
        assert (status, headers[b"connection"]) == (408, b"close")
        # The first eight bytes are read ahead; with them it has a place, which it loses when no more come.
        assert service.asked == ["ada"] * len(arrived)

    asyncio.run(main())
