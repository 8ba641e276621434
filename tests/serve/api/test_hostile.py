"""What callers can't do to a server and to each other. Spec: 11 §1.3, §1.5."""

from __future__ import annotations

import asyncio
import json

import pytest

from harnpy.serve import attaching
from tests.serve.api.conftest import served

PATH = "/v1/sessions/s"
DEEP = "[" * 128 + "]" * 128


async def begun(api):
    ann = api.as_("ann", "admin")
    await ann.post("/v1/sessions", json={"id": "s"})
    return ann


async def ids(client):
    return [each["client_id"] for each in (await client.get(f"{PATH}/clients")).json()["clients"]]


def test_nesting_is_bounded_before_a_decoder_in_c_sees_it(run):
    async def test():
        async with served() as api:
            ann, looker = await begun(api), api.as_("ann", "read")
            text, type = f'{{"content": {DEEP}}}', {"content-type": "application/json"}
            refused = await ann.post(f"{PATH}/inject", content=text, headers=type)
            assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bad_request")
            assert "recursion limit" in refused.json()["error"]["message"]
            # Who can't send it isn't listened to.
            refused = await looker.post(f"{PATH}/inject", content="[", headers=type)
            assert refused.status_code == 403
            allowed = json.dumps({"content": [{"type": "text", "text": "["}] * 128})
            assert (await ann.post(f"{PATH}/inject", content=allowed, headers=type)).status_code == 201
            async with api.control("ann", f"{PATH}/control?client=a") as socket:
                await socket.hear()
                deep = {"type": "websocket.receive", "text": f'{{"op": "inject", "content": {DEEP}}}'}
                socket._said.put_nowait(deep)
                while "id" not in (heard := await socket.hear()):
                    continue
                assert "recursion limit" in heard["error"]["message"]

    run(test())


@pytest.mark.parametrize("after", [0, 1], ids=("at the accept", "at what is said first"))
def test_a_client_that_leaves_at_once_is_not_attached(run, after):
    async def test():
        async with served() as api:
            ann = await begun(api)
            socket = api.control("ann", f"{PATH}/control?client=a")
            heard = []

            async def put(message):
                if len(heard) == after:
                    raise OSError("the connection is closed")
                heard.append(message)

            socket._heard.put = put
            await socket._app(socket._scope, socket._said.get, put)
            assert await ids(ann) == []

    run(test())


def test_an_older_connection_leaves_the_newer_one_of_its_client_alone(run):
    async def test():
        async with served() as api:
            ann = await begun(api)
            async with api.control("ann", f"{PATH}/control?client=a") as older:
                await older.hear()
                newer = api.control("ann", f"{PATH}/control?client=a")
                await newer.__aenter__()
                await newer.hear()
            assert (await ann.get(f"{PATH}/clients")).json()["controller"] == "a"
            assert "error" not in await newer.say(op="release")
            await newer.__aexit__()
            assert await ids(ann) == []

    run(test())


def test_a_socket_refuses_what_http_does(run):
    async def test():
        async with served() as api:
            await begun(api)
            async with api.control("ann", f"{PATH}/control?client=a") as socket:
                await socket.hear()
                assert "`prompt`" in (await socket.say(op="send"))["error"]["message"]
                for key in ("", " ", "k" * 201, "\u00e9", "a\n"):
                    refused = await socket.say(op="send", prompt="x", key=key)
                    assert refused["error"]["code"] == "bad_request", key
            async with api.control("ann", f"{PATH}/control?client=a&after=-5") as socket:
                assert socket.first == {"type": "websocket.close", "code": 4422}

    run(test())


def test_who_may_only_look_takes_no_control_away(run):
    async def test():
        async with served() as api:
            ann, looker = await begun(api), api.as_("ann", "read")
            await ann.post(f"{PATH}/attach", json={"client": "tom", "mode": "controller"})
            assert (await looker.post(f"{PATH}/attach", json={"client": "tom"})).status_code == 403
            assert (await ann.get(f"{PATH}/clients")).json()["controller"] == "tom"

    run(test())


def test_clients_are_bounded_and_stale_ones_let_go_first(run, monkeypatch):
    monkeypatch.setattr(attaching, "MOST_CLIENTS", 2)

    async def test():
        async with served() as api:
            ann, looker = await begun(api), api.as_("ann", "read")

            async def attach(client, metadata=None):
                found = await looker.post(
                    f"{PATH}/attach", json={"client": client, "metadata": metadata or {}}
                )
                return found.status_code

            assert await attach("x" * 201) == await attach("a", {"x": "y" * 4096}) == 422
            assert (await ann.post(f"{PATH}/takeover", json={"client": "x" * 201})).status_code == 422
            for client, status in (("a", 200), ("b", 200), ("a", 200), ("c", 409)):
                assert await attach(client) == status
                await asyncio.sleep(0.002)  # stamps are in milliseconds
            api.service.runtime._controller_timeout = 0.0
            await asyncio.sleep(0.002)
            assert await attach("c") == 200
            assert await ids(ann) == ["a", "c"]  # of the others, b was heard of longest ago

    run(test())


def test_asking_for_the_head_of_a_stream_ends(run):
    async def test():
        async with served() as api:
            await begun(api)
            async with api.watch("ann", f"{PATH}/events", method="HEAD") as stream:
                await asyncio.wait_for(stream.task, 5)
                assert [each async for each in stream.events()] == []
                assert stream.status == 200

    run(test())


@pytest.mark.parametrize("seconds", [1e10, 1e300])
def test_a_time_limit_of_ages_is_one(run, seconds):
    async def test():
        async with served() as api:
            ann = await begun(api)
            body = {"prompt": "hi", "wait": True, "timeout": seconds}
            assert (await ann.post(f"{PATH}/send", json=body)).json()["status"] == "completed"

    run(test())
