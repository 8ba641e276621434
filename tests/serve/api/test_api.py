"""The HTTP API: what its requests do, and what they are refused for. Spec: 11 §1.2, §1.3."""

from __future__ import annotations

import pytest

from harnpy.serve import service
from tests.serve.api.conftest import served


def test_a_session_from_its_begin_to_its_end(run):
    async def test():
        async with served() as api:
            ann = api.as_("ann", "admin")
            made = await ann.post("/v1/sessions", json={"id": "a/b c", "system": "Be brief.", "label": "L"})
            assert (made.status_code, made.json()["owner"], made.json()["label"]) == (201, "ann", "L")
            path = "/v1/sessions/a%2Fb%20c"
            injected = await ann.post(f"{path}/inject", json={"content": "before"})
            assert (injected.status_code, injected.json()["type"]) == (201, "message_added")
            sent = await ann.post(f"{path}/send", json={"prompt": "hi", "wait": True})
            assert (sent.status_code, sent.json()["status"], sent.json()["text"]) == (
                200,
                "completed",
                "one two three",
            )
            key = sent.json()["key"]
            assert (await ann.get(f"{path}/turns/{key}")).json() == sent.json()
            window = (await ann.get(f"{path}/window")).json()
            assert [each["content"] for each in window["messages"]] == ["before", "hi", "one two three"]
            fork = (await ann.post(f"{path}/fork", json={"id": "f", "at": injected.json()["seq"]})).json()
            assert (fork["parent"], fork["owner"], fork["messages"]) == ("a/b c", "ann", 1)
            assert [each["id"] for each in fork["lineage"]] == ["a/b c"]
            apart = (await ann.get(f"{path}/compare/f")).json()
            assert apart["common_seq"] == injected.json()["seq"]
            assert [each["content"] for each in apart["left"]] == ["hi", "one two three"]
            assert apart["right"] == []
            back = await ann.post(f"{path}/rewind", json={"to": injected.json()["id"]})
            assert (back.json()["messages"], back.json()["running"]) == (1, None)
            assert len((await ann.get(f"{path}/history")).json()["entries"]) == 1
            assert (await ann.post(f"{path}/compact")).json() == {"report": None}
            assert (await ann.post(f"{path}/close")).json()["status"] == "completed"
            hits = (await ann.get("/v1/search?q=three")).json()["hits"]
            assert [each["session"] for each in hits] == ["a/b c"]
            assert (await ann.delete(path)).status_code == 204
            assert (await ann.get(path)).status_code == 404

    run(test())


def test_a_window_is_never_an_old_one(run, tmp_path, monkeypatch):
    monkeypatch.setattr(service, "WINDOWS", 1)

    async def test():
        url = f"sqlite:{tmp_path}/s.db"
        async with served(url) as api, served(url) as other:
            ann = api.as_("ann")
            for id in ("s", "t"):
                await ann.post("/v1/sessions", json={"id": id})
            for number in range(4):
                writer = (api, other)[number % 2].as_("ann")
                await writer.post("/v1/sessions/s/inject", json={"content": str(number)})
                for id, length in (("s", number + 1), ("t", 0), ("s", number + 1)):
                    window = (await ann.get(f"/v1/sessions/{id}/window")).json()
                    assert len(window["messages"]) == length
            assert (await api.as_("bob").get("/v1/sessions/s/window")).status_code == 404
            await other.as_("boss", "all").delete("/v1/sessions/s")
            assert (await ann.get("/v1/sessions/s/window")).status_code == 404

    run(test())


def test_pages_follow_each_other(run):
    async def test():
        async with served() as api:
            ann = api.as_("ann")
            for number in range(5):
                await ann.post("/v1/sessions", json={"id": f"s{number}"})
            for number in range(7):
                await ann.post("/v1/sessions/s0/inject", json={"content": str(number)})
            found, after = [], ""
            while after is not None:
                page = (await ann.get(f"/v1/sessions?order=id&limit=2{after and f'&after={after}'}")).json()
                found += [each["id"] for each in page["sessions"]]
                after = page["next"]
            assert found == ["s0", "s1", "s2", "s3", "s4"]
            for what, key in (("history", "entries"), ("events", "events")):
                seqs, after = [], 0
                while after is not None:
                    page = (await ann.get(f"/v1/sessions/s0/{what}?limit=3&after={after}")).json()
                    seqs += [each["seq"] for each in page[key]]
                    after = page["next"]
                assert len(seqs) == len(set(seqs)) >= 7
                assert seqs == sorted(seqs)

    run(test())


def test_who_may_only_look_leaves_the_controller_alone(run):
    async def test():
        async with served() as api:
            ann, looker = api.as_("ann"), api.as_("ann", "read")
            await ann.post("/v1/sessions", json={"id": "s"})
            path = "/v1/sessions/s"
            made = await ann.post(f"{path}/attach", json={"client": "desk", "mode": "controller"})
            assert made.json()["live_controller_id"] == "desk"
            for verb, client, status in (
                ("takeover", "tv", 403),
                ("detach", "desk", 403),
                ("attach", "tv", 200),
                ("heartbeat", "tv", 200),
                ("detach", "tv", 200),
                ("detach", "tv", 422),
            ):
                found = await looker.post(f"{path}/{verb}", json={"client": client})
                assert found.status_code == status, (verb, found.text)
            mode = {"client": "tv", "mode": "controller"}
            assert (await looker.post(f"{path}/attach", json=mode)).status_code == 403
            assert (await ann.post(f"{path}/attach", json=mode)).status_code == 409
            taken = await ann.post(f"{path}/takeover", json={"client": "tv"})
            assert taken.json()["previous_controller_id"] == "desk"
            clients = (await ann.get(f"{path}/clients")).json()
            assert (clients["controller"], len(clients["clients"])) == ("tv", 2)

    run(test())


def test_somebody_elses_session_is_not_there(run):
    async def test():
        async with served() as api:
            ann, bob, boss = api.as_("ann"), api.as_("bob"), api.as_("eve", "all")
            await ann.post("/v1/sessions", json={"id": "s"})
            await ann.post("/v1/sessions/s/inject", json={"content": "secret"})
            foreign, missing = await bob.get("/v1/sessions/s"), await bob.get("/v1/sessions/t")
            assert (foreign.status_code, missing.status_code) == (404, 404)
            assert (
                foreign.json()["error"]["message"].replace("'s'", "'t'") == missing.json()["error"]["message"]
            )
            for method, path in (
                ("GET", "window"),
                ("GET", "events"),
                ("GET", "compare/s"),
                ("POST", "cancel"),
                ("POST", "close"),
            ):
                assert (await bob.request(method, f"/v1/sessions/s/{path}")).status_code == 404
            assert (await bob.get("/v1/sessions")).json()["sessions"] == []
            assert (await bob.get("/v1/search?q=secret")).json()["hits"] == []
            assert (await boss.get("/v1/sessions/s")).json()["owner"] == "ann"
            forked = await boss.post("/v1/sessions/s/fork", json={})
            assert forked.json()["owner"] == "ann"
            taken = await bob.post("/v1/sessions", json={"id": "u", "metadata": {"principal": "ann"}})
            assert taken.status_code == 422

    run(test())


@pytest.mark.parametrize(
    ("scopes", "allowed"),
    [
        (["read"], {"read"}),
        (["write"], {"read", "write"}),
        (["approve"], {"read", "approve"}),
        (["approve", "write"], {"read", "write", "approve"}),
        (["admin"], {"read", "write", "approve", "admin"}),
    ],
)
def test_scopes_hold_what_they_say(run, scopes, allowed):
    async def test():
        async with served() as api:
            await api.as_("ann").post("/v1/sessions", json={"id": "s"})
            caller = api.as_("ann", *scopes)
            requests = {
                "read": ("GET", "/v1/sessions/s", None),
                "write": ("POST", "/v1/sessions/s/inject", {"content": "x"}),
                "approve": ("POST", "/v1/requests/none", {"decision": "allow"}),
                "admin": ("DELETE", "/v1/sessions/s", None),
            }
            for scope, (method, path, body) in requests.items():
                found = await caller.request(method, path, json=body)
                assert (found.status_code != 403) == (scope in allowed), (scope, found.text)

    run(test())


_BAD = [
    ("POST", "/v1/sessions", b"{", 400, "bad_request"),
    ("POST", "/v1/sessions", b"\xff", 400, "bad_request"),
    ("POST", "/v1/sessions", b'{"id": "\\ud800"}', 400, "bad_request"),
    ("POST", "/v1/sessions", b"[" * 100_000, 400, "bad_request"),
    ("POST", "/v1/sessions", b"[]", 422, "invalid"),
    ("POST", "/v1/sessions", b'{"seed": [1]}', 422, "invalid"),
    ("POST", "/v1/sessions", b'{"nope": 1}', 422, "invalid"),
    ("POST", "/v1/sessions", b'{"id": ""}', 422, "invalid"),
    ("POST", "/v1/sessions", b'{"agent": "none such", "id": "s2", "seed": [{}]}', 422, "invalid"),
    ("POST", "/v1/sessions", b'{"id": "s"}', 409, "conflict"),
    ("POST", "/v1/sessions", b'"' + b"x" * (4 << 20) + b'"', 413, "too_large"),
    ("POST", "/v1/sessions/s/send", b"{}", 422, "invalid"),
    ("POST", "/v1/sessions/s/send", b'{"prompt": 5}', 422, "invalid"),
    ("POST", "/v1/sessions/s/send", b'{"prompt": "x", "timeout": -1}', 422, "invalid"),
    ("POST", "/v1/sessions/s/send", b'{"prompt": "x", "budget": {"steps": 1}}', 422, "invalid"),
    ("POST", "/v1/sessions/s/inject", b'{"content": ""}', 422, "invalid"),
    ("POST", "/v1/sessions/s/inject", b'{"content": "x", "role": "tool"}', 422, "invalid"),
    ("POST", "/v1/sessions/s/rewind", b'{"to": "none"}', 422, "invalid"),
    ("POST", "/v1/sessions/s/rewind", b'{"to": 99}', 422, "invalid"),
    ("POST", "/v1/sessions/s/fork", b'{"at": -1}', 422, "invalid"),
    ("POST", "/v1/sessions/s/compact", b'{"strategy": "none"}', 422, "invalid"),
    ("POST", "/v1/sessions/none/send", b'{"prompt": "x"}', 404, "not_found"),
    ("GET", "/v1/sessions/s/turns/none", b"", 404, "not_found"),
    ("GET", "/v1/sessions/s/events?after=-1", b"", 422, "invalid"),
    ("GET", "/v1/sessions/s/events?limit=5000", b"", 422, "invalid"),
    ("GET", "/v1/sessions/s/events?limit=1&limit=2", b"", 422, "invalid"),
    ("GET", "/v1/sessions/s/events?nope=1", b"", 422, "invalid"),
    ("GET", "/v1/sessions?after=nowhere", b"", 400, "bad_request"),
    ("GET", "/v1/sessions?order=size", b"", 422, "invalid"),
    ("GET", "/v1/sessions?status=none", b"", 422, "invalid"),
    ("GET", "/v1/sessions?status=%ff", b"", 400, "bad_request"),
    ("GET", "/v1/search", b"", 422, "invalid"),
    ("GET", "/v1/search?q=%20", b"", 422, "invalid"),
    ("GET", "/v1/runs/none", b"", 404, "not_found"),
    ("POST", "/v1/runs", b'{"agent": "none"}', 422, "invalid"),
    ("POST", "/v1/requests/none", b'{"decision": "allow"}', 404, "not_found"),
    ("POST", "/v1/waitpoints/none", b"{}", 404, "not_found"),
    ("PUT", "/v1/sessions", b"", 405, "method_not_allowed"),
    ("DELETE", "/openapi.json", b"", 405, "method_not_allowed"),
]


def test_bad_requests_get_the_right_status_and_one_sentence(run):
    async def test():
        async with served() as api:
            caller = api.as_("ann", "admin")
            await caller.post("/v1/sessions", json={"id": "s"})
            for method, path, body, status, code in _BAD:
                found = await caller.request(
                    method, path, content=body, headers={"content-type": "application/json"}
                )
                error = found.json().get("error", {})
                assert (found.status_code, error.get("code")) == (status, code), (path, body[:80], found.text)
                assert error["message"]
                assert "\n" not in error["message"]
            plain = await caller.post("/v1/sessions", content=b"{}", headers={"content-type": "text/plain"})
            assert plain.status_code == 415

    run(test())
