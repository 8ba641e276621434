"""Turns: one for a key, whoever asks how often, and whatever becomes of their server. Spec: 11 §1.6."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import closing

import pytest

from harnpy.client import types as t
from harnpy.serve.service import Caller, Service
from harnpy.session.runtime import SessionRuntime
from harnpy.world.clock import RealClock
from tests.serve.api.conftest import Answering, served

PATH = "/v1/sessions/s"
BOSS = Caller("boss", frozenset({"all"}))


async def sent(caller, prompt, key, **more):
    headers = {"idempotency-key": key}
    return await caller.post(f"{PATH}/send", json={"prompt": prompt, **more}, headers=headers)


def test_the_same_key_is_the_same_turn(run):
    async def test():
        async with served() as api:
            ann = api.as_("ann")
            await ann.post("/v1/sessions", json={"id": "s"})
            first = await sent(ann, "wait", "k")
            assert (first.status_code, first.json()) == (202, {"turn": first.json()["turn"]})
            assert (await sent(ann, "wait", "k")).json() == first.json()
            other = await sent(ann, "another", "l")
            assert (other.status_code, other.json()["error"]["code"]) == (409, "busy")
            assert (await ann.get(PATH)).json()["running"] == "k"
            for waits in (ann.post(f"{PATH}/close"), api.as_("boss", "all").delete(PATH)):
                assert (await waits).json()["error"]["code"] == "busy"
            again = await ann.post("/v1/sessions", json={"id": "s"})
            assert (again.status_code, again.json()["error"]["code"]) == (409, "conflict")
            waiting = asyncio.create_task(sent(ann, "wait", "k", wait=True))
            await asyncio.sleep(0)
            api.agents.go_on.set()
            done = await waiting
            assert (done.status_code, done.json()["text"]) == (200, "one two three")
            assert (await sent(ann, "wait", "k")).json()["turn"]["status"] == "completed"
            for prompt, more in (("whatever", {}), ("wait", {"agent": "echo"})):
                taken = await sent(ann, prompt, "k", **more)
                assert (taken.status_code, taken.json()["error"]["code"]) == (409, "conflict")
            assert api.agents.runs == 1
            assert (await ann.get(PATH)).json()["running"] is None

    run(test())


def test_turns_that_fail_are_cancelled_or_cannot_begin(run):
    async def test():
        async with served() as api:
            ann = api.as_("ann")
            await ann.post("/v1/sessions", json={"id": "s"})
            failed = (await sent(ann, "fail", "f", wait=True)).json()
            assert (failed["status"], failed["error"]) == ("failed", "it failed")
            await sent(ann, "wait", "c")
            assert (await ann.post(f"{PATH}/cancel")).json() == {"cancelled": True}
            stopped = (await sent(ann, "wait", "c", wait=True)).json()
            assert (stopped["status"], stopped["stop_reason"]) == ("stopped", "cancelled")
            assert (await ann.post(f"{PATH}/cancel")).json() == {"cancelled": False}
            late = (await sent(ann, "wait", "t", wait=True, timeout=0.01)).json()
            assert late["status"] == "failed"
            await api.service.drain(0.0)
            refused = await sent(ann, "hi", "d")
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "draining")

    run(test())


def test_a_turn_that_a_fork_or_a_rewind_has_cut_is_stopped(run):
    async def test():
        async with served() as api:
            ann = api.as_("ann", "write", "approve")
            await ann.post("/v1/sessions", json={"id": "s"})
            await sent(ann, "use a tool", "k")
            while not (asked := (await ann.get("/v1/requests?session=s")).json()["requests"]):
                await asyncio.sleep(0.01)
            await ann.post(f"/v1/requests/{asked[0]['id']}", json={"decision": "allow"})
            await sent(ann, "use a tool", "k", wait=True)
            events = (await ann.get(f"{PATH}/events")).json()["events"]
            middle = next(each["seq"] for each in events if each["type"] == "approval_requested")
            await ann.post(f"{PATH}/fork", json={"id": "f", "at": middle})
            await ann.post(f"{PATH}/rewind", json={"to": middle})
            for path in (PATH, "/v1/sessions/f"):
                assert (await ann.get(f"{path}/turns/k")).json()["status"] == "stopped"
                found = (await ann.get(path)).json()
                assert (found["running"], found["requests"]) == (None, [])
                assert (await ann.post(f"{path}/cancel")).json() == {"cancelled": False}
            assert (await sent(ann, "use a tool", "k", wait=True)).json()["status"] == "stopped"

    run(test())


class Off(RealClock):
    """The clock of a machine that is so many hours ahead."""

    def __init__(self, hours):
        self._hours = hours

    def now(self):
        return super().now() + 3600 * self._hours


@pytest.mark.parametrize("behind", [0, 1])
def test_a_server_that_stops_hands_its_turn_on(run, tmp_path, behind):
    """Whatever the clocks of their machines say."""

    async def test():
        url = f"sqlite:{tmp_path}/s.db"
        async with served(url, clock=Off(-behind)) as first, served(url) as second:
            with closing(SessionRuntime(url, clock=Off(1))) as ahead:
                ahead.create(id="ahead")
            assert await second.service.recover() == 0
            ann = first.as_("ann")
            await ann.post("/v1/sessions", json={"id": "s"})
            prompt = [{"content": "please"}, {"content": "wait"}]
            await sent(ann, prompt, "k", timeout=60)
            assert await first.service.drain(0.0) == 1
            assert (await ann.get(f"{PATH}/turns/k")).json()["status"] == "running"
            assert await second.service.recover() == 1
            assert await second.service.recover() == 0
            second.agents.go_on.set()
            done = (await sent(second.as_("ann"), prompt, "k", wait=True)).json()
            assert (done["status"], done["text"]) == ("completed", "one two three")
            entries = (await ann.get(f"{PATH}/history")).json()["entries"]
            assert [each["content"] for each in entries] == ["please", "wait", "one two three"]

    run(test())


_SERVER = """
import asyncio, sys
sys.path.insert(0, {root!r})
from tests.serve.api.test_turns import serve_until_killed
asyncio.run(serve_until_killed({url!r}))
"""


async def serve_until_killed(url):
    service = Service(SessionRuntime(url), Answering())
    await service.create(BOSS, t.CreateSession(id="s"))
    await service.send(BOSS, "s", t.Send(prompt="use a tool, then wait"), "k")
    while not (await service.requests(BOSS)).requests:
        await asyncio.sleep(0.01)
    print("asked", flush=True)
    await asyncio.Event().wait()


def test_a_killed_servers_turn_is_entered_again_and_its_request_answered(run, tmp_path):
    async def test():
        url = f"sqlite:{tmp_path}/s.db"
        script = _SERVER.format(root=os.getcwd(), url=url)
        killed = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
        try:
            assert await asyncio.to_thread(killed.stdout.readline) == b"asked\n"
            async with served(url) as api:
                service = api.service
                (asked,) = (await service.requests(BOSS)).requests
                assert (asked.tool, asked.session) == ("rm", "s")
                assert await service.recover() == 0  # somebody works on it
                busy = await sent(api.as_("boss", "all"), "other", "l")
                assert busy.status_code == 409
                killed.send_signal(signal.SIGKILL)
                killed.wait()
                service.keep_recovering()
                api.agents.go_on.set()
                while service.sends.running("s") is None:
                    await asyncio.sleep(0.01)
                await service.answer(BOSS, asked.id, t.Answer(decision="allow"))
                turn = await service.send(BOSS, "s", t.Send(prompt="use a tool, then wait", wait=True), "k")
                assert (turn.status, turn.text) == ("completed", "gone. one two three")
                types = [event.type for event in (await service.events(BOSS, "s")).events]
                assert [
                    types.count(each) for each in ("turn_started", "approval_requested", "turn_completed")
                ] == [
                    1,
                    1,
                    1,
                ]
        finally:
            killed.kill()
            killed.wait()
            killed.stdout.close()

    run(test())


def test_another_server_answers_and_cancels(run, tmp_path):
    """Two objects on one file, which know of each other by the store alone."""

    async def test():
        url = f"sqlite:{tmp_path}/s.db"
        async with served(url) as here, served(url) as there:
            await here.service.create(BOSS, t.CreateSession(id="s"))
            await here.service.send(BOSS, "s", t.Send(prompt="ask, then wait"), "k")
            while not (asked := (await there.service.requests(BOSS)).requests):
                await asyncio.sleep(0.01)
            assert (asked[0].kind, asked[0].prompt) == ("question", "which one?")
            boss = there.as_("boss", "all")
            wrong = await boss.post(f"/v1/requests/{asked[0].id}", json={"decision": "allow"})
            assert wrong.status_code == 422
            await there.service.answer(BOSS, asked[0].id, t.Answer(answer={"n": 1}))
            again = await here.as_("boss", "all").post(f"/v1/requests/{asked[0].id}", json={"answer": 2})
            assert (again.status_code, again.json()["error"]["code"]) == (409, "conflict")
            assert await there.service.cancel(BOSS, "s")
            turn = await here.service.send(BOSS, "s", t.Send(prompt="ask, then wait", wait=True), "k")
            assert turn.stop_reason == "cancelled"
            entries = (await there.service.history(BOSS, "s")).entries
            assert entries[-1].content == "ask, then wait" or '{"n":1}' in str(entries[-1].content)

    run(test())


class Programs(Answering):
    """An agent that is a program: its turns have no keys."""

    def kind(self, name):
        return "program"

    async def prompt(self, runtime, id, prompt, **options):
        assert options.pop("key") is None
        return await super().prompt(runtime, id, prompt, key=None, **options)


def test_a_programs_turn_is_known_by_its_key_too(run):
    async def test():
        async with served(agents=Programs()) as api:
            ann = api.as_("ann")
            await ann.post("/v1/sessions", json={"id": "s", "agent": "echo"})
            done = (await sent(ann, "hi", "k", wait=True)).json()
            assert (done["key"], done["status"], done["text"]) == ("k", "completed", "one two three")
            assert (await sent(ann, "hi", "k", wait=True)).json() == done
            assert (await sent(ann, "fail", "f", wait=True)).json()["status"] == "failed"
            assert api.agents.runs == 2
            assert (await ann.get(PATH)).json()["metadata"] == {"principal": "ann"}

    run(test())
