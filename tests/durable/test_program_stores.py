"""Durable sessions and event logs of durable programs: written once, wherever the process is killed.

Spec: 10 §C19.1 "Program runs".
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from harnpy.eventlog.topics import StoreEventLog
from harnpy.eventlog.waitpoints import Waitpoints
from harnpy.session.log import KIND
from harnpy.storage.copying import Rows
from harnpy.storage.opening import open_store
from harnpy.workflow.engines.contract import Job, Step
from harnpy.workflow.engines.errors import RunCancelled
from tests.counts import COUNT
from tests.durable.runs import MemoryRun, Outside, done, job_of
from tests.support import ended, wait_until

SOURCE = """
let s = agent_session_open("talk", {store: "sqlite:sessions.db"})
agent_session_inject(s, {role: "user", content: "hello ${random_int(1, 9)}"})
let reply = agent_loop("say hi", nil, {provider: "p", model: "m", session_id: s, max_iterations: 2})
println(reply.text)
let other = agent_session_fork(s, "other")
agent_session_inject(other, {role: "user", content: "elsewhere"})
event_log.emit("news", "said", {n: 1})
event_log.emit("news", "said", {n: 2})
println(event_log.latest("news"))
agent_session_inject(s, {role: "user", content: "bye"})
for x in agent_session_snapshot(s).messages { println("${x.role}: ${x.content}") }
"""


def stored(directory: Path) -> Iterator[Any]:
    """Yield what is in the stores, but for times and ids."""
    for file, kind in (("sessions.db", KIND), ("events.db", "topic")):
        store = open_store(f"sqlite:{directory / file}")
        try:
            for name in ("talk", "other", "news"):
                for row in store.stream(kind, name, Rows()).read():
                    yield name, row.seq, row.type
        finally:
            store.close()


def prepared(directory: Path) -> Path:
    directory.mkdir()
    (directory / "harn.toml").write_text('[event_log]\nstore = "sqlite:events.db"\n')
    return directory


def test_what_a_program_stores_is_stored_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARN_TRUST", "1")
    whole, outside = MemoryRun(), Outside()
    place = prepared(tmp_path / "whole")
    done(job_of(SOURCE, place), whole, outside)
    printed, kept = outside.output(), list(stored(place))
    assert printed.endswith("user: bye\n")
    for number in range(1, whole.appends + 1, COUNT.program_store_share):
        place = prepared(tmp_path / str(number))
        job, outside = job_of(SOURCE, place), Outside()
        killed = MemoryRun(kill=lambda append, number=number: append == number)
        done(job, killed, outside)
        again = MemoryRun(killed.steps)
        done(job, again, outside)
        assert outside.output() == printed
        assert list(stored(place)) == kept
        assert max(outside.asked.values()) <= 2


WAITING = """
println(waitpoint_wait("go", {timeout: 1h}).waitpoints[0].value)
println(ask_user("really?"))
println(request_approval("ship it", {detail: "now"}).approved)
"""


def waits(points: Waitpoints) -> list[tuple[str, str | None]]:
    """Return the waitpoints that somebody waits for, with the deadlines."""
    return [
        (point.id, event.payload["deadline_at"])
        for point in points.list("open")
        for _, event in points.log.read_range(f"waitpoint.{point.id}")
        if event.kind == "wait_started"
    ]


def test_a_program_waits_for_what_happens_outside_over_restarts(tmp_path: Path) -> None:
    """Five processes, each cancelled while it waits; the deadline stays the first one's."""
    store = f"sqlite:{tmp_path / 'runs.db'}"
    job = job_of(WAITING, tmp_path)
    job = Job(job.kind, job.name, job.body, store)
    outside, steps = Outside(), list[Step]()
    seen: list[tuple[str, str | None]] = []
    for value in (None, None, {"n": 1}, "yes", True):
        context, known = MemoryRun(steps), len(seen)

        def has_heard(context: MemoryRun = context, known: int = len(steps)) -> bool:
            """Whether the answer is recorded: as what a wait came to, or as read where none had begun."""
            return any("ann" in json.dumps(step.output) for step in context.steps[known:])

        def act(value: Any = value, context: MemoryRun = context, has_heard: Any = has_heard) -> None:
            try:
                with closing(open_store(store)) as opened:
                    points = Waitpoints(StoreEventLog(opened))
                    wait_until(lambda: waits(points))
                    for id, deadline in waits(points):
                        seen.append((id, deadline))
                        if value is not None:
                            points.complete(id, value, by="ann")
                            wait_until(has_heard)
            finally:
                context.cancel()

        helper = threading.Thread(target=act, daemon=True)
        helper.start()
        with suppress(RunCancelled):  # or it was done before
            done(job, context, outside)
        ended(helper)
        assert len(seen) == known + 1
        steps = context.steps
    done(job, MemoryRun(steps), outside)
    assert outside.output() == "{n: 1}\nyes\ntrue\n"
    assert seen[0] == seen[1] == seen[2]
    assert seen[0][1] is not None


def test_a_cancelled_turn_is_closed_and_taken_up(tmp_path: Path) -> None:
    source = SOURCE[: SOURCE.index("let other")]
    job, outside, context = job_of(source, prepared(tmp_path / "run")), Outside(), MemoryRun()
    answered = outside.complete

    async def complete(request: Any) -> Any:
        threading.Timer(0.05, context.cancel).start()
        await asyncio.sleep(60)

    outside.complete = complete  # type: ignore[method-assign]
    with pytest.raises(RunCancelled):
        done(job, context, outside)
    assert list(stored(tmp_path / "run"))[-1][2] == "turn_completed"
    outside.complete = answered  # type: ignore[method-assign]
    done(job, MemoryRun(context.steps), outside)
    assert outside.output() == "<say hi>\n"


WORKFLOW = """
let policy = {provider: "p", model: "m"}
let graph = workflow_graph({
  entry: "a",
  nodes: {
    a: {kind: "stage", prompt: "say a", model_policy: policy},
    b: {kind: "stage", prompt: "say b", model_policy: policy},
  },
  edges: [{from: "a", to: "b"}],
})
let done = workflow_execute("do it", graph)
println("${done.status} ${len(done.run.stages)}")
"""


def test_a_workflow_in_a_program_asks_nothing_twice(tmp_path: Path) -> None:
    whole = MemoryRun()
    done(job_of(WORKFLOW, tmp_path), whole, Outside())
    for number in range(1, whole.appends + 1, 3):
        outside, killed = Outside(), MemoryRun(kill=lambda append, number=number: append == number)
        done(job_of(WORKFLOW, tmp_path), killed, outside)
        recorded = sum(step.key.endswith(":model") for step in killed.steps)
        asked = outside.asked.total()
        again = MemoryRun(killed.steps)
        done(job_of(WORKFLOW, tmp_path), again, outside)
        assert outside.output() == "completed 2\n"
        assert outside.asked.total() == asked + 2 - recorded


ON_CHUNK = """
import "std/session"
agent_loop("say hi", nil, {provider: "p", model: "m", on_chunk: { chunk -> write_file("said", "${chunk}") }})
session_create({id: "s", store: "sqlite:sessions.db"})
println(try { session_watch("s", {chunks: true, store: "sqlite:sessions.db"}) })
println(read_file("said"))
"""


def test_pieces_of_answers_come_as_they_are_recorded(tmp_path: Path) -> None:
    whole, outside = MemoryRun(), Outside()
    done(job_of(ON_CHUNK, prepared(tmp_path / "run")), whole, outside)
    refused, said = outside.output().splitlines()
    assert "session_watch: a durable run can't watch `chunks`" in refused
    assert said.startswith("{start: true, text: ")
