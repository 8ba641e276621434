"""A worker that stops gives programs back: at once where they only wait, with what is under way recorded.

Spec: 10 §C19.2.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from harnpy import Vm
from harnpy.durable import bodies
from harnpy.llm.reply import Reply
from harnpy.workflow.engines.contract import QUEUED, Job
from harnpy.workflow.engines.local import LocalEngine
from tests.durable.runs import job_of
from tests.support import PATIENCE, ended, wait_until


class Slow:
    """A model that answers when its worker wants to stop, and counts what it was asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.begun = Event()
        self.engine: LocalEngine | None = None

    def prepare(self, vm: Vm, job: Job) -> None:
        vm.provide("p", self)

    async def complete(self, request: Any) -> Reply:
        self.asked += 1
        self.begun.set()
        while self.asked == 1 and self.engine is not None and not self.engine._attempts["one"].leaving:
            await asyncio.sleep(0.01)
        return Reply(text="hi", model="m", provider="p", requested_model="m", input_tokens=1, output_tokens=1)


def stopped_after(engine: LocalEngine, job: Job, is_time: Any) -> float:
    """Have a worker begin the run ``one``, stop it then, and return how many seconds that takes."""
    stop = Event()
    engine.queue("q")
    engine.start(job, id="one", queue="q")
    worker = Thread(target=engine.work, kwargs={"stop": stop}, daemon=True)
    worker.start()
    wait_until(is_time)
    began = time.monotonic()
    stop.set()
    ended(worker)
    return time.monotonic() - began


@pytest.mark.parametrize(
    "rest",
    [
        "sleep(1h)",
        'waitpoint_create({id: "w"})\nwaitpoint_wait("w")',
        "var n = 0\nwhile true { n = n + 1 }",
        "parallel each [1, 2] { n -> sleep(1h) }",
    ],
)
def test_a_program_with_nothing_under_way_is_given_back_at_once(rest: str, tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/store.db"
    engine = LocalEngine(url, bodies(url), grace=20)
    try:
        job = job_of(f'write_file("begun", "")\n{rest}', tmp_path)
        begun = (tmp_path / "begun").exists
        assert stopped_after(engine, job, lambda: begun() and not time.sleep(0.05)) < 15
        info = engine.get("one")
        assert info is not None
        assert info.status == QUEUED
    finally:
        engine.close()


def test_what_a_model_says_meanwhile_is_kept_and_nothing_more_is_begun(tmp_path: Path) -> None:
    url, model = f"sqlite:{tmp_path}/store.db", Slow()
    engine = model.engine = LocalEngine(url, bodies(url, model.prepare), grace=20)
    try:
        ask = 'llm_call("hi", nil, {provider: "p", model: "m"}).text'
        assert stopped_after(engine, job_of(f"return {ask} + {ask}", tmp_path), model.begun.is_set) < 15
        assert model.asked == 1
        assert [step.key for step in engine.steps("one") if step.key.endswith(":model")]
        info = engine.get("one")
        assert info is not None
        assert info.status == QUEUED
        assert engine.resume("one").result(PATIENCE) == "hihi"
        assert model.asked == 2
    finally:
        engine.close()
