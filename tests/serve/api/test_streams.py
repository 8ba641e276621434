"""Streams: nothing is lost and nothing doubled, whoever reads how fast, and wherever a reader comes back.

Spec: 11 §1.4, §1.5.
"""

from __future__ import annotations

import asyncio
import random

import pytest

from harnpy.client import types as t
from harnpy.serve import feeds, streams
from tests.serve.api.conftest import served

PATH = "/v1/sessions/s"


async def begun(api, principal="ann"):
    ann = api.as_(principal, "admin")
    await ann.post("/v1/sessions", json={"id": "s"})
    return ann


@pytest.mark.parametrize("url", ["memory:", "sqlite:{tmp}/s.db"])
def test_reconnects_at_random_positions_lose_and_double_nothing(run, tmp_path, url, monkeypatch):
    monkeypatch.setattr(feeds, "RECENT", 16)  # so that readers come back to the log as well

    async def test():
        async with served(url.format(tmp=tmp_path)) as api:
            await begun(api)
            live, rng = api.service.runtime.get("s"), random.Random(7)

            def write():
                for number in range(300):
                    live.append_user(f"{number}")
                api.service.runtime.delete("s")

            async def read(rng):
                seen, last = [], None
                while True:
                    headers = {} if last is None else {"last-event-id": last}
                    path = f"{PATH}/events?after=0" if last is None else f"{PATH}/events"
                    left = rng.randrange(1, 40)
                    async with api.watch("ann", path, headers=headers) as stream:
                        if stream.status == 404:  # it came back when the session was gone
                            return seen
                        async for event, id, data in stream.events():
                            if event == "gone":
                                return seen
                            if event == "event":
                                assert int(id) == data["seq"]
                                seen.append(data["seq"])
                                last, left = id, left - 1
                            if not left:
                                break

            readers = [asyncio.create_task(read(random.Random(rng.random()))) for _ in range(6)]
            await asyncio.to_thread(write)
            for seen in await asyncio.gather(*readers):
                assert seen == list(range(1, len(seen) + 1))
            assert api.service.feeds.readers == 0

    run(test())


def test_an_answer_is_shown_as_it_is_made_and_from_its_begin_to_who_comes_late(run):
    async def test():
        async with served() as api:
            ann = await begun(api)
            async with api.watch("ann", f"{PATH}/events") as early:
                await ann.post(f"{PATH}/send", json={"prompt": "wait"}, headers={"idempotency-key": "k"})
                late = None
                api.agents.go_on.set()
                texts, kinds = [], []
                async for event, id, data in early.events():
                    kinds.append(event)
                    if event == "chunk":
                        assert id is None
                        assert data["start"] == (not texts)
                        texts.append(data["text"])
                    elif data["type"] == "message_added" and data["data"]["role"] == "assistant":
                        break
                assert "".join(texts) == "one two three"
                assert late is None
                turn = (await ann.get(f"{PATH}/turns/k")).json()
                assert turn["text"] == "one two three"

    run(test())


def test_who_comes_in_mid_answer_gets_the_text_so_far_once(run):
    async def test():
        async with served() as api:
            await begun(api)
            live = api.service.runtime.get("s")
            turn = live.append_user("x").seq
            live.show(turn, "a")
            live.show(turn, "b")
            async with api.watch("ann", f"{PATH}/events") as stream:
                events = stream.events()
                assert await anext(events) == ("chunk", None, {"turn": turn, "text": "ab", "start": True})
                live.show(turn, "c")
                assert await anext(events) == ("chunk", None, {"turn": turn, "text": "c", "start": False})

    run(test())


def test_a_send_can_be_followed_to_its_end_and_again(run):
    async def test():
        async with served() as api:
            await begun(api)
            seen = []
            options = {"method": "POST", "body": {"prompt": "hi"}, "headers": {"idempotency-key": "k"}}
            async with api.watch("ann", f"{PATH}/send", **options) as stream:
                async for event, _, data in stream.events():
                    seen.append((event, data))
            assert "".join(data["text"] for event, data in seen if event == "chunk") == "one two three"
            assert next(data["type"] for event, data in seen if event == "event") == "turn_started"
            assert seen[-1][0] == "turn"
            assert (seen[-1][1]["status"], seen[-1][1]["text"]) == ("completed", "one two three")
            async with api.watch("ann", f"{PATH}/send", **options) as stream:
                again = [(event, data) async for event, _, data in stream.events()]
            assert again == [each for each in seen if each[0] != "chunk"]
            assert api.agents.runs == 1

    run(test())


def test_streams_that_cannot_begin(run):
    async def test():
        async with served() as api:
            await begun(api)
            for path, headers, status in (
                (f"{PATH}/events", {"last-event-id": "99"}, 400),
                (f"{PATH}/events", {"last-event-id": "x"}, 400),
                (f"{PATH}/events?after=99", {}, 400),
                ("/v1/sessions/none/events", {}, 404),
                ("/v1/runs/none/events", {}, 404),
            ):
                async with api.watch("ann", path, headers=headers) as stream:
                    assert (stream.status, b'"message"' in stream.reply) == (status, True), path
            async with api.watch("bob", f"{PATH}/events") as stream:
                assert stream.status == 404

    run(test())


def test_a_reader_that_does_not_read_is_let_go_of_and_holds_up_nobody(run, monkeypatch):
    monkeypatch.setattr(streams, "PATIENCE", 0.1)

    async def test():
        async with served() as api:
            ann = await begun(api)
            async with api.watch("ann", f"{PATH}/events?after=0", stalls=True) as stream:
                sent = await ann.post(f"{PATH}/send", json={"prompt": "hi", "wait": True})
                assert sent.json()["status"] == "completed"
                await asyncio.wait([stream.task], timeout=5)
                assert isinstance(stream.task.exception(), TimeoutError)
                assert api.service.feeds.readers == 0

    run(test())


def test_a_stream_without_news_says_that_it_is_there(run):
    async def test():
        async with served() as api:
            await begun(api)
            ann = api.service.watch(_caller(), "s", quiet=0.01)
            assert await anext(ann) is None
            api.service.runtime.get("s").append_user("x")
            items = [await anext(ann) for _ in range(2)]
            assert [item.seq for item in items if isinstance(item, t.Event)]
            await ann.aclose()

    run(test())


def test_another_process_appends_to_a_session_that_is_watched(run, tmp_path):
    """Another object on the same file, which tells this one nothing."""

    async def test():
        url = f"sqlite:{tmp_path}/s.db"
        async with served(url) as here, served(url) as there:
            await begun(here)
            async with here.watch("ann", f"{PATH}/events") as stream:
                other = there.service.runtime.get("s")
                written = await asyncio.to_thread(other.append_user, "from elsewhere")
                event, id, data = await anext(stream.events())
                assert (event, id, data["id"]) == ("event", str(written.seq), written.id)

    run(test())


def test_an_answer_of_another_process_is_shown_as_it_is_made(run, tmp_path):
    async def test():
        url = f"sqlite:{tmp_path}/s.db"
        async with served(url) as here, served(url) as there:
            await begun(here)
            async with here.watch("ann", f"{PATH}/events") as stream:
                events = stream.events()
                other = there.service.runtime.get("s")
                turn = other.record("turn_started", {"agent_id": "a"})
                assert (await anext(events))[0] == "event"
                await asyncio.to_thread(other.show, turn.seq, "so far")
                shown = {"turn": turn.seq, "text": "so far", "start": True}
                assert await anext(events) == ("chunk", None, shown)
                await asyncio.to_thread(other.show, turn.seq, ", so good")
                said = {"role": "assistant", "content": "so far, so good"}
                await asyncio.to_thread(other.record, "message_added", said, turn)
                shown = {"turn": turn.seq, "text": ", so good", "start": False}
                assert await anext(events) == ("chunk", None, shown)
                assert (await anext(events))[2]["data"] == said

    run(test())


def test_a_socket_attaches_its_client_and_controls_the_session(run):
    async def test():
        async with served() as api:
            ann = await begun(api)
            async with api.control("ann", f"{PATH}/control?client=phone") as socket:
                assert socket.first == {"type": "websocket.accept"}
                assert (await socket.hear())["attached"]["live_controller_id"] == "phone"
                refused = await ann.post(f"{PATH}/send", json={"prompt": "hi", "client": "desk"})
                assert (refused.status_code, refused.json()["error"]["code"]) == (409, "not_controller")
                refused = await ann.post(f"{PATH}/inject", json={"content": "hi", "client": "desk"})
                assert refused.status_code == 409
                sent = await socket.say(op="send", prompt="use a tool", key="k")
                assert sent["result"]["status"] == "running"
                while not (asked := (await ann.get("/v1/requests")).json()["requests"]):
                    await asyncio.sleep(0.01)
                allowed = await socket.say(op="allow", request=asked[0]["id"])
                assert allowed["result"]["tool"] == "rm"
                while "turn_completed" not in str(socket.passed):
                    socket.passed.append(await socket.hear())
                assert {key for heard in socket.passed for key in heard} == {"event", "chunk"}
                assert (await socket.say(op="cancel"))["result"] == {"cancelled": False}
                assert (await socket.say(op="dance"))["error"]["code"] == "invalid"
                assert (await socket.say(op="deny"))["error"]["code"] == "invalid"
                assert (await socket.say(op="release"))["result"]["live_controller_id"] is None
                clients = (await ann.get(f"{PATH}/clients")).json()
                assert [each["client_id"] for each in clients["clients"]] == ["phone"]
            assert (await ann.get(f"{PATH}/clients")).json()["clients"] == []
            async with api.control("bob", f"{PATH}/control?client=x") as socket:
                assert socket.first == {"type": "websocket.close", "code": 4404}

    run(test())


def _caller():
    from harnpy.serve.service import Caller

    return Caller("ann", frozenset({"read"}))
