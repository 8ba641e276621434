"""Who may do what with a session: the law of 11 §1.2, as a table of scope, share and operation."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harnpy.client import types as t
from harnpy.serve.refusals import Refused
from harnpy.serve.rights import Caller
from harnpy.session.guards import ApprovalRequest
from tests.serve.api.conftest import Stream, served

S = "/v1/sessions/s"

#: What each operation needs: a right over the session.
OPERATIONS: dict[str, tuple[str, tuple[str, str, Any]]] = {
    "get": ("read", ("GET", S, None)),
    "window": ("read", ("GET", f"{S}/window", None)),
    "history": ("read", ("GET", f"{S}/history", None)),
    "events": ("read", ("GET", f"{S}/events", None)),
    "turn": ("read", ("GET", f"{S}/turns/k", None)),
    "clients": ("read", ("GET", f"{S}/clients", None)),
    "shares": ("read", ("GET", f"{S}/shares", None)),
    "compare": ("read", ("GET", f"{S}/compare/s", None)),
    "compare from one's own": ("read", ("GET", "/v1/sessions/mine/compare/s", None)),
    "requests of it": ("read", ("GET", "/v1/requests?session=s", None)),
    "search in it": ("read", ("GET", "/v1/search?q=tea&session=s", None)),
    "observe": ("read", ("POST", f"{S}/attach", {"client": "me"})),
    "control": ("write", ("POST", f"{S}/attach", {"client": "me", "mode": "controller"})),
    "takeover": ("write", ("POST", f"{S}/takeover", {"client": "me"})),
    "inject": ("write", ("POST", f"{S}/inject", {"content": "x"})),
    "send": ("write", ("POST", f"{S}/send", {"prompt": "x", "wait": True})),
    "cancel": ("write", ("POST", f"{S}/cancel", None)),
    "answer": ("approve", ("POST", "/v1/requests/r", {"decision": "allow"})),
    "fork": ("own", ("POST", f"{S}/fork", {})),
    "rewind": ("own", ("POST", f"{S}/rewind", {"to": 1})),
    "compact": ("own", ("POST", f"{S}/compact", {})),
    "share": ("own", ("PUT", f"{S}/shares/eve", {"scopes": ["read"]})),
    "unshare": ("own", ("DELETE", f"{S}/shares/eve", None)),
    "close": ("own", ("POST", f"{S}/close", None)),
    "delete": ("admin", ("DELETE", S, None)),
}
_READ, _WRITE, _APPROVE = {"read"}, {"read", "write"}, {"read", "approve"}
_EVERY = _WRITE | _APPROVE | {"own", "admin"}
#: Principal, scopes of its token, scopes that ann shares with it → its rights over ann's session.
LAW: list[tuple[str, list[str], list[str], set[str]]] = [
    # Its owner, as far as the token goes.
    ("ann", ["read"], [], _READ),
    ("ann", ["write"], [], _WRITE | {"own"}),
    ("ann", ["approve"], [], _APPROVE),
    ("ann", ["admin"], [], _EVERY),
    # Others.
    ("bob", ["read"], [], set()),
    ("bob", ["admin"], [], set()),
    ("bob", ["all"], [], _EVERY),
    ("bob", ["read:all"], [], _READ),
    ("bob", ["approve:all"], [], _APPROVE),
    ("bob", ["write", "read:all"], [], _READ),
    ("bob", ["write", "approve:all"], [], _APPROVE),
    # Others with whom she shares it: never more than the share gives, and never more than the token's.
    ("bob", ["admin"], ["read"], _READ),
    ("bob", ["admin"], ["write"], _WRITE),
    ("bob", ["admin"], ["approve"], _APPROVE),
    ("bob", ["admin"], ["write", "approve"], _WRITE | _APPROVE),
    ("bob", ["read"], ["write", "approve"], _READ),
    ("bob", ["write"], ["write", "approve"], _WRITE),
    ("bob", ["approve"], ["write", "approve"], _APPROVE),
    ("bob", ["write", "approve:all"], ["write"], _WRITE | _APPROVE),
]


def asking(service: Any, id: str) -> asyncio.Task[Any]:
    """Have something ask for an approval in a session, which counts as at work, until it is answered."""
    service.sends.at_work = lambda live: "k"
    service.sends.open_sessions = lambda: [id]
    return asyncio.create_task(service.people.decided(ApprovalRequest("r", id, "rm")))


async def listed(api: Any) -> list[t.Request]:
    boss = Caller("boss", frozenset({"all"}))
    while not (found := (await api.service.requests(boss)).requests):
        await asyncio.sleep(0)
    return found


@pytest.mark.parametrize(("principal", "scopes", "share", "rights"), LAW)
def test_the_law(run, principal: str, scopes: list[str], share: list[str], rights: set[str]) -> None:
    async def test() -> None:
        async with served() as api:
            ann, caller = api.as_("ann", "admin"), api.as_(principal, *scopes)
            await api.as_(principal, "write").post("/v1/sessions", json={"id": "mine"})
            await ann.post("/v1/sessions", json={"id": "s", "seed": [{"role": "user", "content": "tea"}]})
            await ann.post(f"{S}/send", json={"prompt": "go", "wait": True}, headers={"idempotency-key": "k"})
            await ann.post("/v1/sessions/s/fork", json={"id": "fork"})
            if share:
                given = await ann.put(f"{S}/shares/{principal}", json={"scopes": share})
                assert given.json() == {"shares": {principal: share}}
            asked = asking(api.service, "s")
            await listed(api)
            if "read" in rights:
                shown = (await caller.get(S)).json()
                assert set(shown["may"]) == rights
                assert shown["shares"] == ({principal: share} if share else {})
            # What lists show.
            is_seen = "read" in rights
            sees = {each["id"] for each in (await caller.get("/v1/sessions")).json()["sessions"]}
            sees_forks = is_seen and (principal == "ann" or "all" in str(scopes))
            assert sees == {"mine", *(["s"] if is_seen else []), *(["fork"] if sees_forks else [])}
            hits = (await caller.get("/v1/search?q=tea")).json()["hits"]
            assert ("s" in {hit["session"] for hit in hits}) == is_seen
            requests = (await caller.get("/v1/requests")).json()["requests"]
            assert [each["session"] for each in requests] == (["s"] if is_seen else [])
            # What is done.
            for name, (right, (method, path, body)) in OPERATIONS.items():
                found = await caller.request(method, path, json=body)
                if right in rights:
                    assert found.status_code < 300, (name, found.text)
                elif is_seen:
                    assert (found.status_code, found.json()["error"]["code"]) == (403, "forbidden"), name
                else:
                    # What a token may do with nothing is said first; nothing tells that the session is there.
                    assert found.status_code in (403, 404), name
                    missing = await caller.request(
                        method, path.replace("/sessions/s", "/sessions/none"), json=body
                    )
                    assert missing.status_code == found.status_code, name
                if name == "send":
                    await caller.post(f"{S}/detach", json={"client": "me"})
            if "approve" in rights:
                assert (await asked).reviewer == principal
            asked.cancel()

    run(test())


def test_a_share_is_the_owners_to_give(run) -> None:
    async def test() -> None:
        async with served() as api:
            ann, bob = api.as_("ann"), api.as_("bob", "write", "approve")
            await ann.post("/v1/sessions", json={"id": "s"})
            for who, scopes, status in (
                ("bob", ["read"], 200),
                ("../x", ["read"], 200),  # anybody may come later
                ("ann", ["read"], 422),
                (" ", ["read"], 422),
                ("x" * 201, ["read"], 422),
                ("bob", [], 422),
                ("bob", ["admin"], 422),
                ("bob", ["own"], 422),
                ("bob", ["read:all"], 422),
                ("b\0b", ["read"], 404),
            ):
                path = f"{S}/shares/{who.replace('/', '%2F').replace(chr(0), '%00').replace(' ', '%20')}"
                found = await ann.put(path, json={"scopes": scopes})
                assert found.status_code == status, (who, scopes, found.text)
            assert (await ann.get(f"{S}/shares")).json() == {"shares": {"../x": ["read"], "bob": ["read"]}}
            # Nobody widens what it has, on none of the ways.
            for method, path, body in (
                ("PUT", f"{S}/shares/bob", {"scopes": ["write"]}),
                ("PUT", f"{S}/shares/eve", {"scopes": ["read"]}),
                ("DELETE", f"{S}/shares/..%2Fx", None),
            ):
                assert (await bob.request(method, path, json=body)).status_code == 403
            for metadata in ({"serve.shares": {}}, {"principal": "ann"}):
                made = await bob.post("/v1/sessions", json={"id": "b", "metadata": metadata})
                assert made.status_code == 422
            for number in range(98):
                api.service._shared("s", f"p{number}", ["read"])
            more = await ann.put(f"{S}/shares/eve", json={"scopes": ["read"]})
            assert (more.status_code, "shared with 100" in more.text) == (422, True)
            # What is given again replaces what was given.
            assert (await ann.put(f"{S}/shares/bob", json={"scopes": ["approve"]})).status_code == 200
            assert (await bob.post(f"{S}/inject", json={"content": "x"})).status_code == 403
            await ann.delete(f"{S}/shares/bob")
            assert (await bob.get(S)).status_code == 404

    run(test())


def test_a_fork_is_not_shared_and_shows_no_relative_that_is_not(run) -> None:
    async def test() -> None:
        async with served() as api:
            ann, bob = api.as_("ann"), api.as_("bob", "read")
            await ann.post("/v1/sessions", json={"id": "s"})
            await ann.put(f"{S}/shares/bob", json={"scopes": ["read"]})
            await ann.post(f"{S}/fork", json={"id": "f"})
            assert (await bob.get("/v1/sessions/f")).status_code == 404
            assert (await bob.get(S)).json()["children"] == []
            assert (await ann.get("/v1/sessions/f")).json()["shares"] == {}
            await ann.put("/v1/sessions/f/shares/bob", json={"scopes": ["read"]})
            await ann.delete(f"{S}/shares/bob")
            shown = (await bob.get("/v1/sessions/f")).json()
            assert (shown["parent"], shown["lineage"], shown["owner"]) == (None, [], "ann")
            assert [(await ann.get("/v1/sessions/f")).json()["parent"]] == ["s"]

    run(test())


@pytest.mark.parametrize("busy", [False, True])
def test_a_share_that_is_taken_back_ends_open_streams(run, busy: bool) -> None:
    async def test() -> None:
        async with served() as api:
            ann, bob = api.as_("ann"), Caller("bob", frozenset({"write"}))
            await ann.post("/v1/sessions", json={"id": "s"})
            await ann.put(f"{S}/shares/bob", json={"scopes": ["write"]})
            if busy:
                await ann.post(f"{S}/send", json={"prompt": "wait"})
            # A filter of types doesn't hide that it is over.
            watching = Stream(api._router, bob, f"{S}/events?types=message_added")
            async with watching as stream, api.control("bob", f"{S}/control?client=tab") as socket:
                seen = stream.events()
                assert "attached" in await socket.hear()
                await api.as_("bob").post(f"{S}/inject", json={"content": "before"})
                assert (await anext(seen))[2]["data"]["content"] == "before"
                await ann.delete(f"{S}/shares/bob")
                await ann.post(f"{S}/inject", json={"content": "secret"})
                assert [event async for event in seen] == [("gone", None, {})]
                while "type" not in (told := await socket.hear()):
                    assert "secret" not in str(told)
                assert told["type"] == "websocket.close"
                # Its client doesn't stay in control.
                assert (await ann.get(f"{S}/clients")).json() == {"clients": [], "controller": None}
            assert (await api.as_("bob").get(f"{S}/window")).status_code == 404
            api.agents.go_on.set()

    run(test())


def test_the_answer_of_a_turn_ends_with_the_share(run) -> None:
    async def test() -> None:
        async with served() as api:
            ann, bob = api.as_("ann"), Caller("bob", frozenset({"write"}))
            await ann.post("/v1/sessions", json={"id": "s"})
            await ann.put(f"{S}/shares/bob", json={"scopes": ["write"]})
            waiting = asyncio.create_task(api.service.send(bob, "s", t.Send(prompt="wait", wait=True), "k"))
            while not (await ann.get(S)).json()["running"]:
                await asyncio.sleep(0)
            again = Stream(
                api._router, bob, f"{S}/send", method="POST", body={"prompt": "wait"},
                headers={"idempotency-key": "k", "content-type": "application/json"},
            )  # fmt: skip
            async with again as stream:
                assert (await anext(stream.events()))[0] == "event"
                await ann.delete(f"{S}/shares/bob")
                with pytest.raises(Refused) as refused:
                    await waiting
                assert (refused.value.status, refused.value.code) == (404, "gone")
                assert [event[0] async for event in stream.events()][-1] == "gone"
            api.agents.go_on.set()

    run(test())


def test_a_narrower_share_takes_control_away(run) -> None:
    async def test() -> None:
        async with served() as api:
            ann, bob = api.as_("ann"), api.as_("bob")
            await ann.post("/v1/sessions", json={"id": "s"})
            await ann.put(f"{S}/shares/bob", json={"scopes": ["write"]})
            await bob.post(f"{S}/takeover", json={"client": "tab"})
            await ann.put(f"{S}/shares/bob", json={"scopes": ["read"]})
            clients = (await bob.get(f"{S}/clients")).json()
            assert (clients["controller"], clients["clients"][0]["mode"]) == (None, "observer")

    run(test())


def test_control_holds_for_who_sends_without_a_client(run) -> None:
    async def test() -> None:
        async with served() as api:
            ann, carl = api.as_("ann"), api.as_("carl")
            await ann.post("/v1/sessions", json={"id": "s"})
            await ann.put(f"{S}/shares/carl", json={"scopes": ["write"]})

            async def tried(who: Any, verb: str = "send", **more: Any) -> tuple[int, str]:
                body = {"prompt": "go", "wait": True} if verb == "send" else {"content": "go"}
                found = await who.post(f"{S}/{verb}", json={**body, **more})
                problem = found.json().get("error") or {}
                return found.status_code, problem.get("message", "")

            assert [(await tried(each))[0] for each in (ann, carl)] == [200, 200]  # nobody is in control
            await carl.post(f"{S}/takeover", json={"client": "tab"})
            clients = (await ann.get(f"{S}/clients")).json()["clients"]
            assert [(each["principal"], each["metadata"]) for each in clients] == [("carl", {})]
            told = "'carl' (client 'tab') controls session 's': to send, take it over with a client of yours"
            for verb in ("send", "inject"):
                assert await tried(ann, verb) == (409, told)
                assert (await tried(carl, verb))[0] < 300  # what is his is his
                assert (await tried(carl, verb, client="tab"))[0] < 300
                status, why = await tried(ann, verb, client="tab")
                assert (status, "is one of 'carl'" in why) == (403, True)
            for verb in ("takeover", "heartbeat", "detach", "attach"):
                assert (await ann.post(f"{S}/{verb}", json={"client": "tab"})).status_code == 403
            # A turn that has begun is the same turn, whoever controls by now.
            key = {"idempotency-key": "k"}
            body = {"prompt": "go", "wait": True}
            await carl.post(f"{S}/send", json=body, headers=key)
            assert (await ann.post(f"{S}/send", json=body, headers=key)).status_code == 200
            await ann.post(f"{S}/takeover", json={"client": "desk"})
            assert (await tried(ann, client="desk"))[0] == 200
            assert (await tried(carl, client="tab"))[0] == 409
            forged = {"client": "x", "metadata": {"serve.principal": "ann"}}
            assert (await carl.post(f"{S}/attach", json=forged)).status_code == 422

    run(test())


def test_a_controller_that_is_gone_keeps_nobody_from_sending(run) -> None:
    async def test() -> None:
        async with served() as api:
            api.service.runtime._controller_timeout = -1.0  # whatever was heard of is longer ago
            ann, carl = api.as_("ann"), api.as_("carl")
            await ann.post("/v1/sessions", json={"id": "s"})
            await ann.put(f"{S}/shares/carl", json={"scopes": ["write"]})
            await carl.post(f"{S}/takeover", json={"client": "tab"})
            assert (await ann.post(f"{S}/inject", json={"content": "x"})).status_code == 201

    run(test())


def test_a_limit_is_not_passed_by_in_a_shared_session(run) -> None:
    async def test() -> None:
        asked: list[str] = []

        async def before(caller: Caller) -> None:
            asked.append(caller.principal)

        async with served() as api:
            api.service._before_work = before
            await api.as_("ann").post("/v1/sessions", json={"id": "s"})
            await api.as_("ann").put(f"{S}/shares/bob", json={"scopes": ["write"]})
            for who in ("ann", "bob"):
                await api.as_(who).post(f"{S}/send", json={"prompt": "go", "wait": True})
            assert asked == ["ann", "bob", "ann"]  # what bob may spend counts ann's sessions, too

    run(test())


@pytest.mark.parametrize("decision", ["allow", "deny"])
def test_the_log_says_who_decided(run, decision: str) -> None:
    async def test() -> None:
        async with served() as api:
            ann, boss = api.as_("ann"), api.as_("boss", "approve:all")
            await ann.post("/v1/sessions", json={"id": "s"})
            api.service.sends.at_work = lambda live: "k"
            api.service.sends.open_sessions = lambda: ["s"]
            live = api.service.runtime.get("s")
            asked = asyncio.create_task(api.service.people.approvals.request(live, "rm"))
            [request] = await listed(api)
            assert (
                await boss.post(f"/v1/requests/{request.id}", json={"decision": decision})
            ).status_code == 200
            assert (await asked).decision == decision
            [resolved] = (await ann.get(f"{S}/events?types=approval_resolved")).json()["events"]
            assert (resolved["data"]["decision"], resolved["data"]["reviewers"]) == (decision, ["boss"])

    run(test())


def test_an_employee_sees_everybodys_runs_and_changes_none(run) -> None:
    async def test() -> None:
        async with served() as api:
            runs = api.service._runs
            runs.owner = lambda id: "ann"
            for verb, body in (("cancel", None), ("resume", None), ("steer", {"message": "x"})):
                for scopes, status in ((["write", "read:all"], 403), (["write"], 404)):
                    found = await api.as_("bob", *scopes).post(f"/v1/runs/r/{verb}", json=body)
                    assert found.status_code == status, found.text

    run(test())
