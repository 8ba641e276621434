"""What one caller can cost the others: lists, searches, pages, streams; what a store says. Spec: 11 §1.3."""

from __future__ import annotations

import asyncio
import threading

import pytest

from harnpy.client import types as t
from harnpy.serve import feeds, service, shown
from harnpy.serve.feeds import Feed
from harnpy.serve.refusals import Refused
from harnpy.serve.service import Caller
from harnpy.storage.errors import StorageError, StoreBusy
from tests.serve.api.conftest import served

ANN = Caller("ann", frozenset({"write"}))
BOSS = Caller("boss", frozenset({"all"}))
BOB = Caller("bob", frozenset({"read"}))


@pytest.mark.parametrize("url", ["memory:", "sqlite:{tmp}/s.db", "jsonl:{tmp}/s"])
def test_who_sees_little_costs_little(run, tmp_path, url, monkeypatch):
    async def test():
        async with served(url.format(tmp=tmp_path)) as api:
            runtime, store = api.service.runtime, api.service.store
            for name, owner in (("b1", "bob"), *((f"s{n}", "ann") for n in range(12)), ("b2", "bob")):
                made = runtime.create(id=name, metadata={"principal": owner})
                made.append_message({"role": "user", "content": "apple"})
            runtime.create(id="child", parent="b1")
            runtime.create(id="other", parent="s1")
            runtime.delete("b2")
            looks, heads, search = [], store.heads, store.search
            monkeypatch.setattr(store, "heads", lambda query: looks.append(query) or heads(query))
            monkeypatch.setattr(
                store, "search", lambda *args, **how: looks.append(how["limit"]) or search(*args, **how)
            )
            found, after = [], None
            while True:
                page = await api.service.sessions(BOB, order="id", limit=1, after=after)
                found += [each.id for each in page.sessions]
                after = page.next
                if after is None:
                    break
            assert found == ["b1", "child"]
            assert len(looks) < 8
            looks.clear()
            hits = await api.service.search(BOB, "apple", limit=1)
            assert [each.session for each in hits.hits] == ["b1"]
            assert len(looks) == 2  # its sessions, and what they say
            everybodys = await api.service.search(BOSS, "apple", limit=2)
            assert [each.session for each in everybodys.hits] == ["b1", "s0"]  # none of one that was deleted
            assert len((await api.service.sessions(ANN, limit=7)).sessions) == 7

    run(test())


def test_a_caller_has_a_share_of_the_threads(run):
    async def test():
        async with served() as api:
            go_on, begun = threading.Event(), []

            def work():
                begun.append(1)
                go_on.wait(10)

            slow = [asyncio.create_task(api.service.slowly(BOB, work)) for _ in range(2 * service.THREADS)]
            while len(begun) < service.SHARE:
                await asyncio.sleep(0.001)
            assert (await api.service.sessions(ANN)).sessions == []
            assert len(begun) == service.SHARE
            go_on.set()
            await asyncio.gather(*slow)

    run(test())


def test_a_page_ends_after_so_many_bytes(run, monkeypatch):
    monkeypatch.setattr(service, "LARGEST", 2500)

    async def test():
        async with served() as api:
            ann = api.as_("ann")
            await ann.post("/v1/sessions", json={"id": "s"})
            await ann.post("/v1/sessions/s/fork", json={"id": "f"})
            for n in range(5):
                await ann.post("/v1/sessions/s/inject", json={"content": f"apple {n} " + "x" * 1000})
            for what, key in (("history", "entries"), ("events", "events")):
                found, after = [], 0
                while after is not None:
                    page = (await ann.get(f"/v1/sessions/s/{what}?after={after}")).json()
                    assert len(page[key]) <= 4
                    found += [each["seq"] for each in page[key]]
                    after = page["next"]
                assert found == sorted(set(found))
                assert len(found) >= 5
            both = (await ann.get("/v1/sessions/s/compare/f")).json()
            assert (len(both["left"]), both["right"], both["right_next"]) == (3, [], None)
            rest = (await ann.get(f"/v1/sessions/s/history?after={both['left_next']}")).json()
            assert len(rest["entries"]) == 2
            first = (await ann.get("/v1/sessions/s/compare/f?limit=1")).json()
            assert (len(first["left"]), first["left_next"]) == (1, first["left"][0]["seq"])
            assert len((await ann.get("/v1/search?q=apple")).json()["hits"]) == 3

    run(test())


def test_what_is_at_hand_for_readers_has_a_bound_in_bytes(run, monkeypatch):
    monkeypatch.setattr(feeds, "RECENT_BYTES", 2500)

    async def test():
        async with served() as api:
            live = api.service.runtime.create(id="s", metadata={"principal": "ann"})
            feed = Feed(live)
            for n in range(20):
                event = live.append_message({"role": "user", "content": f"{n}" + "x" * 1000})
                feed.take([shown.event(event)])
            assert 1 <= len(feed.recent) <= 2
            assert len(feeds._read(feed, 1)) == 3
            seqs = []
            async for item in api.service.feeds.watch("s", after=0, until=lambda: True):
                seqs.append(item.seq)
            assert seqs == list(range(1, live.version + 1))

    run(test())


_NUL = [
    "/v1/sessions/%00", "/v1/search?q=a%00b", "/v1/sessions?status=%00", "/v1/sessions?agent=%00",
    "/v1/sessions?parent=%00", "/v1/runs/%00", "/v1/runs/%00/events", "/v1/sessions/s/turns/%00",
    "/v1/requests?session=%00",
    "/v1/search?q=a&session=%00", "/v1/search?q=a&types=%00", "/v1/sessions/s/events?types=%00",
    "/v1/sessions/s/compare/%00", "/v1/runs?after=%00",
]  # fmt: skip


def test_no_store_is_asked_for_a_nul(run):
    async def test():
        async with served() as api:
            ann = api.as_("ann", "admin", "approve")
            await ann.post("/v1/sessions", json={"id": "s"})
            for path in _NUL:
                assert (await ann.get(path)).status_code in (404, 422), path
            for path in ("/v1/requests/%00", "/v1/waitpoints/%00", "/v1/sessions/%00/cancel"):
                assert (await ann.post(path, json={})).status_code == 404
            started = await ann.post("/v1/runs", json={"agent": "echo", "id": "a\0"})
            assert (started.status_code, "NUL" in started.text) == (422, True)
            for call in (api.service.session(ANN, "\0"), api.service.run(ANN, "\0")):  # pages ask like that
                with pytest.raises(Refused) as refused:
                    await call
                assert refused.value.status in (404, 422)

    run(test())


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (StorageError("can't reach postgresql://db.secret/x"), 503),
        (StoreBusy("sqlite:/secret/s.db", 5.0), 503),
    ],
)
def test_what_a_store_says_is_for_the_log(run, monkeypatch, caplog, error, status):
    async def test():
        async with served() as api:

            def fail(query):
                raise error

            monkeypatch.setattr(api.service.store, "heads", fail)
            found = await api.as_("ann").get("/v1/sessions")
            assert found.status_code == status
            assert "secret" not in found.text
            assert "secret" in caplog.text

    run(test())


def test_a_budget_is_looked_at_where_a_turn_begins(run):
    async def test():
        async with served() as api:
            ann = api.as_("ann")
            await ann.post("/v1/sessions", json={"id": "s"})

            async def send(key):
                body = {"prompt": "hi", "wait": True}
                return await ann.post("/v1/sessions/s/send", json=body, headers={"idempotency-key": key})

            done = await send("k")

            async def spent(caller):
                raise Refused(402, "over_budget", "that was all")

            api.service._before_work = spent
            assert (await send("k")).json() == done.json()
            assert (await send("l")).status_code == 402

    run(test())


def test_a_programs_turn_is_that_of_its_prompt(run):
    class Programs:
        names = ("talk",)
        kind = description = file = definition = staticmethod(lambda name: "program")

        async def prompt(self, runtime, id, prompt, **options):
            return await runtime.send(id, prompt, agent=lambda messages: "well")

    async def test():
        async with served(agents=Programs()) as api:
            await api.service.create(ANN, t.CreateSession(id="s"))
            for _ in range(2):
                turn = await api.service.send(ANN, "s", t.Send(prompt="hi", wait=True), "k")
                assert turn.text == "well"
            with pytest.raises(Refused, match="another prompt") as refused:
                await api.service.send(ANN, "s", t.Send(prompt="ho", wait=True), "k")
            assert refused.value.status == 409

    run(test())
