"""A `Service` of a few sessions and runs in memory, and the portal over it without a server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette

from harnpy.client import types as t
from harnpy.serve.portal import routes
from harnpy.serve.refusals import Refused
from harnpy.serve.rights import Belongs, Caller

TIME = "2026-11-30T09:15:{:02d}.000000Z"
ALL = Caller("ada", frozenset({"all"}))
READER = Caller("bob", frozenset({"read"}))


def info(id: str, **more: Any) -> dict[str, Any]:
    known = {
        "id": id, "status": "active", "execution": "idle", "agent": "support", "label": "", "owner": "ada",
        "parent": None, "fork_seq": None, "depth": 0, "messages": None, "cost": 0.0123,
        "created_at": TIME.format(0), "updated_at": TIME.format(30), "seq": 9, "revision": 1, "metadata": {},
    }  # fmt: skip
    return {**known, **more}


def entry(seq: int, role: str, content: Any, **more: Any) -> t.Entry:
    known = {"id": f"id-{seq}", "seq": seq, "type": "message_added", "time": TIME.format(seq % 60)}
    return t.Entry(**{**known, "role": role, "content": content, **more})


@dataclass
class Double:
    """What it was asked to do is in ``calls``."""

    infos: dict[str, dict[str, Any]] = field(default_factory=dict)
    entries: dict[str, list[t.Entry]] = field(default_factory=dict)
    clients_of: dict[str, t.ClientList] = field(default_factory=dict)
    requests_open: list[t.Request] = field(default_factory=list)
    runs_there: list[t.Run] = field(default_factory=list)
    steps: list[t.RunStep] = field(default_factory=list)
    hits: list[t.Hit] = field(default_factory=list)
    running: str | None = None
    shares: dict[str, list[t.ShareScope]] = field(default_factory=dict)
    feed: list[t.Event | t.Chunk | None] = field(default_factory=list)
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    refusal: Refused | None = None

    def _see(self, id: str) -> None:
        if id not in self.infos:
            raise Refused(404, "not_found", f"no session has the id '{id}'")

    def did(self, *what: Any) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.calls.append(what)

    async def agents(self, caller: Caller) -> t.AgentList:
        return t.AgentList(agents=[t.Agent(name="support", kind="definition")])

    async def sessions(self, caller: Caller, **query: Any) -> t.SessionList:
        self.did("sessions", query)
        return t.SessionList(sessions=[t.Info(**each) for each in self.infos.values()])

    async def session(self, caller: Caller, id: str) -> t.Session:
        self._see(id)
        known = self.infos[id]
        above, parent = [], known["parent"]
        while parent is not None:
            above.insert(0, t.Info(**self.infos[parent]))
            parent = self.infos[parent]["parent"]
        clients = self.clients_of.get(id) or t.ClientList(clients=[], controller=None)
        return t.Session(
            **{**known, "messages": len(self.entries.get(id, ()))},
            clients=clients.clients,
            controller=clients.controller,
            running=self.running,
            requests=[each for each in self.requests_open if each.session == id],
            lineage=above,
            children=[t.Info(**each) for each in self.infos.values() if each["parent"] == id],
            shares=self.shares,
            may=caller.all_with(Belongs(known["owner"], {"bob": frozenset({"read"})})),
        )

    async def window(self, caller: Caller, id: str) -> t.Window:
        return t.Window(messages=[], tokens=1234, seq=self.infos[id]["seq"])

    async def history(self, caller: Caller, id: str, *, after: int = 0, limit: int = 200) -> t.History:
        found = [each for each in self.entries.get(id, ()) if each.seq > after]
        return t.History(entries=found[:limit], next=found[limit - 1].seq if len(found) > limit else None)

    async def events(
        self, caller: Caller, id: str, *, after: int = 0, types: list[str] | None = None, **_: Any
    ) -> t.EventList:
        known = [each for each in self.feed if isinstance(each, t.Event) and each.seq > after]
        return t.EventList(events=[each for each in known if types is None or each.type in types])

    async def watch(
        self, caller: Caller, id: str, *, after: int | None = None, **_: Any
    ) -> AsyncIterator[t.Event | t.Chunk | None]:
        for each in self.feed:
            await asyncio.sleep(0)
            yield each

    async def clients(self, caller: Caller, id: str) -> t.ClientList:
        return self.clients_of.get(id) or t.ClientList(clients=[], controller=None)

    async def create(self, caller: Caller, body: t.CreateSession) -> t.Session:
        self.did("create", body.agent, body.label)
        self.infos["new"] = info("new")
        return await self.session(caller, "new")

    async def send(self, caller: Caller, id: str, body: t.Send, key: str | None) -> t.Turn:
        self.did("send", id, body.prompt, body.client, key)
        return t.Turn(key=key or "k", status="running")

    async def cancel(self, caller: Caller, id: str) -> bool:
        self.did("cancel", id)
        return True

    async def fork(self, caller: Caller, id: str, body: t.Fork) -> t.Session:
        self.did("fork", id, body.at, body.label)
        self.infos["forked"] = info("forked", parent=id, fork_seq=body.at)
        return await self.session(caller, "forked")

    async def rewind(self, caller: Caller, id: str, body: t.Rewind) -> t.Session:
        self.did("rewind", id, body.to)
        return await self.session(caller, id)

    async def close_session(self, caller: Caller, id: str) -> t.Session:
        self.did("close", id)
        return await self.session(caller, id)

    async def share(self, caller: Caller, id: str, principal: str, scopes: list[str]) -> t.ShareList:
        self.did("share", id, principal, scopes)
        return t.ShareList(shares=self.shares)

    async def unshare(self, caller: Caller, id: str, principal: str) -> t.ShareList:
        self.did("unshare", id, principal)
        return t.ShareList(shares=self.shares)

    async def takeover(self, caller: Caller, id: str, client: str) -> dict[str, Any]:
        self.did("takeover", id, client)
        return {}

    async def detach(self, caller: Caller, id: str, client: str) -> dict[str, Any]:
        self.did("detach", id, client)
        return {}

    async def compare(self, caller: Caller, id: str, other: str, **_: Any) -> t.Comparison:
        left, right = self.entries.get(id, []), self.entries.get(other, [])
        return t.Comparison(common_seq=2, common_id="id-2", left=left[2:], right=right[2:])

    async def requests(self, caller: Caller, id: str | None = None) -> t.RequestList:
        return t.RequestList(requests=self.requests_open)

    async def answer(self, caller: Caller, request_id: str, body: t.Answer) -> t.Request:
        said = body.decision or body.answer
        self.did("answer", request_id, said, body.reason)
        return next(each for each in self.requests_open if each.id == request_id)

    async def search(self, caller: Caller, query: str, **_: Any) -> t.HitList:
        self.did("search", query)
        return t.HitList(hits=self.hits)

    async def runs(self, caller: Caller, **query: Any) -> t.RunList:
        return t.RunList(runs=self.runs_there)

    async def run(self, caller: Caller, id: str) -> t.Run:
        found = next((each for each in self.runs_there if each.id == id), None)
        if found is None:
            raise Refused(404, "not_found", f"no run has the id '{id}'")
        return found

    async def run_events(self, caller: Caller, id: str) -> AsyncIterator[t.RunStep | None]:
        for step in self.steps:
            yield step
        yield None

    async def run_steps(self, caller: Caller, id: str) -> list[t.RunStep]:
        return self.steps

    async def steer(self, caller: Caller, id: str, body: t.Steer) -> t.Run:
        self.did("steer", id, body.message)
        return await self.run(caller, id)

    async def cancel_run(self, caller: Caller, id: str) -> t.Run:
        self.did("cancel_run", id)
        return await self.run(caller, id)

    async def resume(self, caller: Caller, id: str) -> t.Run:
        self.did("resume", id)
        return await self.run(caller, id)


def app(service: Any, caller: Caller | None = ALL) -> Any:
    """Return the portal as an application whose requests come from a caller."""
    inner = Starlette(routes=routes(service))

    async def known(scope: Any, receive: Any, send: Any) -> None:
        await inner({**scope, "harnpy.caller": caller} if caller else scope, receive, send)

    return known
