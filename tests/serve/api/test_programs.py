"""Programs that answer prompts, in a session that several servers offer. Spec: 11 §1.6."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

from harnpy.client import types as t
from harnpy.serve.service import Caller, Service
from harnpy.session.runtime import SessionRuntime
from tests.serve.api.conftest import Answering, served

PATH = "/v1/sessions/s"
BOSS = Caller("boss", frozenset({"all"}))


class Program(Answering):
    """A program that asks a person, waits, and answers without a loop."""

    def kind(self, name):
        return "program"

    async def prompt(self, runtime, id, prompt, *, inputs, **options):
        self.runs += 1
        said = await inputs.put("which one?") if prompt == "ask" else "done"
        if prompt == "wait":
            await self.go_on.wait()
        return await runtime.send(id, prompt, agent=lambda messages: said)


async def sent(caller, prompt, key, **more):
    return await caller.post(
        f"{PATH}/send", json={"prompt": prompt, **more}, headers={"idempotency-key": key}
    )


def test_a_session_has_one_program_at_a_time_whatever_servers_are_sent_it(run, tmp_path):
    async def test():
        url = f"sqlite:{tmp_path}/s.db"
        async with served(url, Program()) as first, served(url, Program()) as second:
            a, b = first.as_("ann"), second.as_("ann")
            await a.post("/v1/sessions", json={"id": "s"})
            assert (await sent(a, "wait", "k")).status_code == 202
            again, other = await sent(b, "wait", "k"), await sent(b, "wait", "l")
            assert (again.status_code, again.json()["turn"]["key"]) == (202, "k")
            assert (other.status_code, other.json()["error"]["code"]) == (409, "busy")
            assert (await b.get(PATH)).json()["running"] == "k"
            fork = (await b.post(f"{PATH}/fork", json={"id": "f"})).json()
            assert fork["running"] is None
            assert (await b.get("/v1/sessions/f/turns/k")).json()["status"] == "stopped"
            assert (await b.post("/v1/sessions/f/cancel")).json() == {"cancelled": False}
            assert (await b.post(f"{PATH}/cancel")).json() == {"cancelled": True}
            done = (await sent(b, "wait", "k", wait=True)).json()
            assert (done["status"], done["error"]) == ("stopped", "cancelled")
            assert (await b.get(PATH)).json()["running"] is None
            assert (await sent(b, "hi", "m", wait=True)).json()["text"] == "done"
            assert (first.agents.runs, second.agents.runs) == (1, 1)

    run(test())


def test_of_sends_at_the_same_moment_one_begins(run, tmp_path):
    async def test():
        url = f"sqlite:{tmp_path}/s.db"
        async with served(url, Program()) as first, served(url, Program()) as second:
            a, b = first.as_("ann"), second.as_("ann")
            await a.post("/v1/sessions", json={"id": "s"})
            same = await asyncio.gather(sent(a, "wait", "k"), sent(b, "wait", "k"))
            assert [each.status_code for each in same] == [202, 202]
            for api in (first, second):
                api.agents.go_on.set()
            done = await asyncio.gather(sent(a, "x", "k", wait=True), sent(b, "x", "k", wait=True))
            assert [each.json()["status"] for each in done] == ["completed", "completed"]
            assert first.agents.runs + second.agents.runs == 1
            for api in (first, second):
                api.agents.go_on.clear()
            two = await asyncio.gather(sent(a, "wait", "l"), sent(b, "wait", "m"))
            assert sorted(each.status_code for each in two) == [202, 409]
            for api in (first, second):
                api.agents.go_on.set()

    run(test())


def test_what_a_program_asks_is_asked_everywhere(run, tmp_path):
    async def test():
        url = f"sqlite:{tmp_path}/s.db"
        async with served(url, Program()) as first, served(url, Program()) as second:
            a, b = first.as_("ann"), second.as_("ann", "write", "approve")
            await a.post("/v1/sessions", json={"id": "s"})
            await sent(a, "ask", "k")
            while not (asked := (await b.get("/v1/requests")).json()["requests"]):
                await asyncio.sleep(0.01)
            assert [(each["kind"], each["prompt"], each["session"]) for each in asked] == [
                ("question", "which one?", "s")
            ]
            assert (await b.get(PATH)).json()["requests"] == asked
            answer = await b.post(f"/v1/requests/{asked[0]['id']}", json={"answer": "that"})
            assert answer.status_code == 200
            assert (await sent(b, "ask", "k", wait=True)).json()["text"] == "that"
            await sent(a, "ask", "l")
            while not (await b.get("/v1/requests")).json()["requests"]:
                await asyncio.sleep(0.01)
            await b.post(f"{PATH}/cancel")
            assert (await sent(b, "ask", "l", wait=True)).json()["status"] == "stopped"
            assert (await b.get("/v1/requests")).json()["requests"] == []

    run(test())


_SERVER = """
import asyncio, sys
sys.path.insert(0, {root!r})
from tests.serve.api.test_programs import serve_until_killed
asyncio.run(serve_until_killed({url!r}))
"""


async def serve_until_killed(url):
    service = Service(SessionRuntime(url), Program())
    await service.create(BOSS, t.CreateSession(id="s"))
    await service.send(BOSS, "s", t.Send(prompt="ask"), "k")
    while not (await service.requests(BOSS)).requests:
        await asyncio.sleep(0.01)
    print("asked", flush=True)
    await asyncio.Event().wait()


def test_a_killed_servers_program_has_failed_and_asks_nothing(run, tmp_path):
    async def test():
        url = f"sqlite:{tmp_path}/s.db"
        script = _SERVER.format(root=os.getcwd(), url=url)
        killed = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
        try:
            assert await asyncio.to_thread(killed.stdout.readline) == b"asked\n"
            async with served(url, Program()) as api:
                boss = api.as_("boss", "all")
                assert (await boss.get(PATH)).json()["running"] == "k"
                assert len((await boss.get("/v1/requests")).json()["requests"]) == 1
                killed.kill()
                killed.wait()
                assert (await boss.get(PATH)).json()["running"] is None
                assert (await boss.get("/v1/requests")).json()["requests"] == []
                assert (await boss.post(f"{PATH}/cancel")).json() == {"cancelled": False}
                assert (await boss.get(f"{PATH}/turns/k")).json()["status"] == "failed"
                assert (await sent(boss, "hi", "l", wait=True)).json()["text"] == "done"
        finally:
            killed.kill()
            killed.wait()
            killed.stdout.close()

    run(test())
