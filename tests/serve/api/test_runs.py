"""Runs and waitpoints over the API. Spec: 11 §1.3."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading

from harnpy.eventlog.waitpoints import Waitpoints
from harnpy.serve.portal.runs import run_regions
from harnpy.serve.service import Caller
from harnpy.workflow.engines.contract import Job
from tests.serve.api.conftest import Answering, served

BOSS = Caller("boss", frozenset({"all"}))

PROGRAM = """
pipeline default() {
  let first = waitpoint_wait("gate-" + who)
  return {said: first.waitpoints[0].value, by: who}
}
"""


class Program(Answering):
    def __init__(self, file):
        super().__init__()
        self._file = str(file)

    def file(self, name):
        return self._file if name == "echo" else None


def test_a_run_from_its_begin_to_its_end(run, tmp_path):
    file = tmp_path / "echo.harn"
    file.write_text(PROGRAM)

    async def test():
        async with served(f"sqlite:{tmp_path}/s.db", Program(file)) as api:
            ann, bob = api.as_("ann", "write", "approve"), api.as_("bob", "write", "approve")
            made = await ann.post("/v1/runs", json={"agent": "echo", "params": {"who": "ann"}, "id": "r"})
            assert (made.status_code, made.json()["name"]) == (201, "echo.harn")
            bad = await ann.post("/v1/runs", json={"agent": "echo", "params": {"not a name": 1}})
            assert bad.status_code == 422
            while not (waiting := (await ann.get("/v1/waitpoints")).json()["waitpoints"]):
                await asyncio.sleep(0.02)
            assert [each["id"] for each in waiting] == ["gate-ann"]
            assert (await bob.get("/v1/runs/r")).status_code == 404
            assert (await bob.get("/v1/runs")).json()["runs"] == []
            assert (await bob.get("/v1/waitpoints")).json()["waitpoints"] == []
            assert (await bob.post("/v1/waitpoints/gate-ann", json={"value": 1})).status_code == 404
            assert (await bob.post("/v1/runs", json={"agent": "echo", "id": "r"})).status_code == 409
            async with api.watch("ann", "/v1/runs/r/events") as stream:
                done = await ann.post("/v1/waitpoints/gate-ann", json={"value": "go"})
                assert (done.status_code, done.json()["waitpoint"]["status"]) == (200, "completed")
                assert (await ann.post("/v1/waitpoints/gate-ann", json={})).status_code == 409
                steps = [data async for event, _, data in stream.events() if event == "step"]
            found = (await ann.get("/v1/runs/r")).json()
            assert (found["status"], found["output"]) == ("completed", {"said": "go", "by": "ann"})
            assert [each["n"] for each in steps] == list(range(1, found["steps"] + 1))
            assert (await ann.get("/v1/runs/r/events?after=1")).json()["steps"] == steps[1:]
            (listed,) = (await ann.get("/v1/runs?status=completed")).json()["runs"]
            assert (listed["id"], listed["steps"]) == ("r", found["steps"])
            assert (await ann.post("/v1/runs/r/steer", json={"message": "x"})).status_code == 409

    run(test())


ASKING = """
pipeline default() {
  let name = ask_user("Who?")
  let gone = request_approval("drop the table", {args: {table: "t"}})
  return {name: name, by: gone.reviewers}
}
"""


def test_what_a_run_asks_is_answered(run, tmp_path):
    file = tmp_path / "echo.harn"
    file.write_text(ASKING)

    async def test():
        async with served(f"sqlite:{tmp_path}/s.db", Program(file)) as api:
            ann, bob = api.as_("ann", "write", "approve"), api.as_("bob", "approve")
            await ann.post("/v1/runs", json={"agent": "echo", "id": "r"})
            for kind, prompt, answer in (
                ("question", "Who?", {"answer": "Eve"}),
                ("approval", "drop the table", {"decision": "allow"}),
            ):
                asked = []
                while [each["kind"] for each in asked] != [kind]:
                    asked = (await ann.get("/v1/requests")).json()["requests"]
                    await asyncio.sleep(0.02)
                assert (asked[0]["prompt"], asked[0]["run"]) == (prompt, "r")
                assert (await bob.get("/v1/requests")).json()["requests"] == []
                path = f"/v1/requests/{asked[0]['id']}"
                assert (await bob.post(path, json=answer)).status_code == 404
                assert (await ann.post(path, json=answer)).status_code == 200
            while (found := (await ann.get("/v1/runs/r")).json())["ended_at"] is None:
                await asyncio.sleep(0.02)
            assert found["output"] == {"name": "Eve", "by": ["ann"]}

    run(test())


def test_a_cancelled_run_can_go_on(run, tmp_path):
    file = tmp_path / "echo.harn"
    file.write_text(PROGRAM)

    async def test():
        async with served(f"sqlite:{tmp_path}/s.db", Program(file)) as api:
            ann = api.as_("ann")
            await ann.post("/v1/runs", json={"agent": "echo", "params": {"who": "x"}, "id": "r"})
            await ann.post("/v1/runs/r/cancel")
            while (await ann.get("/v1/runs/r")).json()["status"] != "cancelled":
                await asyncio.sleep(0.02)
            assert (await ann.post("/v1/runs/r/resume")).status_code == 200
            points = Waitpoints(api.service.log)
            await asyncio.to_thread(points.complete, "gate-x", 5, create=True)
            while (found := (await ann.get("/v1/runs/r")).json())["status"] != "completed":
                await asyncio.sleep(0.02)
            assert found["output"] == {"said": 5, "by": "x"}

    run(test())


WAITING = """
pipeline default() {
  let began = waitpoint_wait("began-" + who)
  return "woke"
}
"""


def test_a_server_that_stops_or_dies_leaves_its_runs_to_the_next_one(run, tmp_path):
    file, url = tmp_path / "echo.harn", f"sqlite:{tmp_path}/s.db"
    file.write_text(WAITING)

    async def at(caller, id, status):
        while (found := (await caller.get(f"/v1/runs/{id}")).json())["status"] != status:
            await asyncio.sleep(0.02)
        return found

    async def test():
        async with served(url, Program(file)) as first, served(url, Program(file)) as second:
            a, b = first.as_("ann"), second.as_("ann", "write", "approve")
            await begun(a, "r")
            assert (await b.get("/v1/runs/r")).json()["left"] is False
            assert await first.service.drain(0.05) == 1
            assert (await at(b, "r", "queued"))["left"] is True
            assert "Resume" in str(run_regions(await second.service.run(BOSS, "r"), [], [], BOSS)["verbs"])
            script = _SERVER.format(root=os.getcwd(), url=url, file=str(file))
            with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as killed:
                assert await asyncio.to_thread(killed.stdout.readline) == b"runs\n"
                killed.kill()
            assert (await b.get("/v1/runs/k")).json()["left"] is True
            engine = second.service._runs.engine
            engine.start(
                Job("program", "other.harn", engine.job("k").body), id="o", attributes={"principal": "ann"}
            )
            engine.give_back()  # a run of a program that this server hasn't
            second.service.keep_recovering()
            for id in ("r", "k"):
                await b.post(f"/v1/waitpoints/began-{id}", json={})
                assert (await at(b, id, "completed"))["output"] == "woke"
            assert engine.get("o").status == "queued"

    run(test())


def test_a_run_that_ends_in_time_is_waited_for(run, tmp_path):
    file = tmp_path / "echo.harn"
    file.write_text('pipeline default() { sleep(200ms)\n return "woke" }')

    async def test():
        async with served(f"sqlite:{tmp_path}/s.db", Program(file)) as api:
            ann = api.as_("ann")
            await ann.post("/v1/runs", json={"agent": "echo", "id": "r"})
            assert await api.service.drain(15.0) == 0
            assert (await ann.get("/v1/runs/r")).json()["output"] == "woke"

    run(test())


_SERVER = """
import asyncio, sys
sys.path.insert(0, {root!r})
from tests.serve.api.test_runs import run_until_killed
asyncio.run(run_until_killed({url!r}, {file!r}))
"""


async def begun(caller, id):
    """Have a run begin, and return once it waits."""
    await caller.post("/v1/runs", json={"agent": "echo", "params": {"who": id}, "id": id})
    while f"began-{id}" not in [
        each["id"] for each in (await caller.get("/v1/waitpoints")).json()["waitpoints"]
    ]:
        await asyncio.sleep(0.02)


async def run_until_killed(url, file):
    async with served(url, Program(file)) as api:
        await begun(api.as_("ann"), "k")
        print("runs", flush=True)
        await asyncio.Event().wait()


def test_those_who_watch_a_run_share_one_look(run, tmp_path):
    file = tmp_path / "echo.harn"
    file.write_text(PROGRAM)

    async def test():
        async with served(f"sqlite:{tmp_path}/s.db", Program(file)) as api:
            ann, service = api.as_("ann", "write", "approve"), api.service
            await ann.post("/v1/runs", json={"agent": "echo", "params": {"who": "x"}, "id": "r"})
            await ann.get("/v1/runs/r")
            before = threading.active_count()

            async def read():
                return [step.n async for step in service.run_events(BOSS, "r", quiet=60)]

            readers = [asyncio.create_task(read()) for _ in range(100)]
            await asyncio.sleep(0.1)
            assert threading.active_count() < before + 25  # the pool's, whatever the readers are
            while (await ann.post("/v1/waitpoints/gate-x", json={})).status_code == 404:  # not asked for yet
                await asyncio.sleep(0.02)
            found = await asyncio.gather(*readers)
            steps = (await ann.get("/v1/runs/r/events")).json()["steps"]
            assert steps
            assert all(each == [step["n"] for step in steps] for each in found)

    run(test())
