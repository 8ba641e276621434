"""Runs and waitpoints over the API. Spec: 11 §1.3."""

from __future__ import annotations

import asyncio

from harnpy.eventlog.waitpoints import Waitpoints
from tests.serve.api.conftest import Answering, served

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
