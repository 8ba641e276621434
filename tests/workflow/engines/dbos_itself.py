"""What DBOS does by itself, without the engine: `python -m tests.workflow.engines.dbos_itself FACT URL …`.

Each fact prints what it saw, as JSON, in a process of its own: a process has one DBOS.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import time
from collections.abc import Callable
from contextvars import ContextVar
from threading import Event
from typing import Any

from dbos import DBOS, DBOSClient, DBOSConfig, SetWorkflowID

SCHEMA = "dbos_itself"
BEFORE = ContextVar("BEFORE", default="nothing")
#: An application whose workflow has a step; what it does, and a comment, differ.
APPLICATION = """
from dbos import DBOS

@DBOS.step()
def step():
    return {result}

@DBOS.workflow()
def workflow():
    return step(){comment}
"""


def launch(url: str, **config: Any) -> None:
    logging.getLogger("dbos").addHandler(logging.NullHandler())
    usual = DBOSConfig(name="itself", system_database_url=url, dbos_system_schema=SCHEMA)
    DBOS(config=DBOSConfig(**{**usual, **config}))  # type: ignore[typeddict-item]
    DBOS.launch()


def client(url: str) -> DBOSClient:
    return DBOSClient(system_database_url=url, dbos_system_schema=SCHEMA)


def say(found: Any) -> None:
    print(json.dumps(found), flush=True)


def wait_until(happened: Callable[[], object]) -> None:
    while not happened():
        time.sleep(0.01)


def version(url: str, directory: str, result: str, comment: str) -> None:
    """Print the version that DBOS gives to the application."""
    path = os.path.join(directory, "application.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(APPLICATION.format(result=result, comment=comment))
    sys.path.insert(0, directory)
    __import__("application")
    launch(url)
    say(DBOS.application_version)


def twice(url: str) -> None:
    """Cancel a run in the middle of a step, and have it go on at once."""
    began: list[int] = []
    goes_on = Event()

    @DBOS.workflow(name="twice")
    def run() -> int:
        return DBOS.run_step({"name": "step"}, step)

    def step() -> int:
        began.append(len(began))
        goes_on.wait()
        return began[-1]

    launch(url, executor_id="twice")
    with SetWorkflowID("twice"):
        handle = DBOS.start_workflow(run)
    wait_until(lambda: len(began) == 1)
    DBOS.cancel_workflow("twice")
    DBOS.resume_workflow("twice")
    wait_until(lambda: len(began) == 2)
    goes_on.set()
    say({"began": len(began), "result": handle.get_result(), "steps": len(DBOS.list_workflow_steps("twice"))})


def time_limit(url: str) -> None:
    """Put a time limit around a step."""

    @DBOS.workflow(name="limited")
    async def run() -> str:
        try:
            return await asyncio.wait_for(DBOS.run_step_async({"name": "slow"}, slow), 0.05)
        except TimeoutError:
            return "late"

    @DBOS.workflow(name="limits itself")
    async def other() -> str:
        return await DBOS.run_step_async({"name": "slow"}, limited)

    async def slow() -> str:
        await asyncio.sleep(60)
        return "done"

    async def limited() -> str:
        try:
            return await asyncio.wait_for(slow(), 0.05)
        except TimeoutError:
            return "late"

    launch(url, executor_id="limit")
    found = {}
    for each in (run, other):
        handle = DBOS.start_workflow(each)
        result = handle.get_result()
        steps = DBOS.list_workflow_steps(handle.get_workflow_id())
        found[each.__name__] = [result, [step["output"] for step in steps]]
    say(found)


def silence(url: str) -> None:
    """Enqueue what nobody does, and what nobody takes."""

    @DBOS.workflow(name="known")
    def known() -> str:
        return "done"

    launch(url, executor_id="silent", application_version="1")
    DBOS.register_queue("one at a time", global_concurrency=1, polling_interval_sec=0.05)
    mine = client(url)

    def enqueue(name: str, queue: str) -> str:
        handle = mine.enqueue({"workflow_name": name, "queue_name": queue, "app_version": "1"})
        return str(handle.get_workflow_id())

    nobody_takes = enqueue("known", "no queue")
    nobody_does = enqueue("unknown", "one at a time")
    status = lambda id: mine.retrieve_workflow(id).get_status()  # noqa: E731
    wait_until(lambda: status(nobody_does).status == "PENDING")
    behind = enqueue("known", "one at a time")
    time.sleep(0.5)
    say([[status(id).status, status(id).error] for id in (nobody_takes, nobody_does, behind)])


def context(url: str) -> None:
    """Look at a variable of who has started the run."""

    @DBOS.workflow(name="sync")
    def run() -> str:
        return BEFORE.get()

    @DBOS.workflow(name="async")
    async def run_async() -> str:
        return BEFORE.get()

    async def started() -> str:
        handle = await DBOS.start_workflow_async(run_async)
        return await handle.get_result()

    launch(url, executor_id="context")
    BEFORE.set("something")
    say([run(), DBOS.start_workflow(run).get_result(), asyncio.run(started())])


def one(url: str) -> None:
    """Make a DBOS for another database."""
    launch(url, executor_id="first")
    DBOS(
        config=DBOSConfig(
            name="other", system_database_url="postgresql://nowhere:1/none", executor_id="second"
        )
    )
    say(DBOS.executor_id)


def twin(url: str, journal: str, seconds: str) -> None:
    """Be the executor ``same``, which has a slow step to do, until a line comes."""

    @DBOS.workflow(name="slow")
    def run() -> int:
        return DBOS.run_step({"name": "step"}, step)

    def step() -> int:
        with open(journal, "a", encoding="utf-8") as file:
            file.write(f"{os.getpid()}\n")
        time.sleep(float(seconds))
        return os.getpid()

    launch(url, executor_id="same", application_version="1")
    with SetWorkflowID("slow"):
        handle = DBOS.start_workflow(run)
    say("ready")
    say(handle.get_result())


def slot(url: str, executor: str) -> None:
    """Take from a queue for one run at a time."""

    @DBOS.workflow(name="hang")
    def run() -> None:
        say("begins")
        time.sleep(600)

    launch(url, executor_id=executor, application_version="1")
    DBOS.register_queue("one at a time", global_concurrency=1, polling_interval_sec=0.05)
    say("ready")
    sys.stdin.readline()


def attached(url: str) -> None:
    """Have the engine do its jobs by the DBOS of an application, on the tables of that."""
    from harnpy.workflow.engines import open_engine
    from harnpy.workflow.engines.contract import Job, RunContext

    def body(job: Job, run: RunContext) -> list[int]:
        return [run.step(f"step {n}", lambda n=n: n) for n in range(2)]  # type: ignore[misc]

    @DBOS.workflow(name="theirs")
    def theirs() -> str:
        return DBOS.run_step({"name": "step"}, lambda: "theirs")

    job = Job("program", "ours", {})
    config = DBOSConfig(
        name="itself", system_database_url=url, dbos_system_schema=SCHEMA, executor_id="theirs"
    )
    DBOS(config=config)
    DBOS.listen_queues([])
    alone = open_engine("dbos", url, bodies={"program": body})
    try:
        alone.start(job)
    except Exception as error:
        say(str(error).partition(":")[0])
    alone.close()
    engine = open_engine("dbos", url, bodies={"program": body}, attach=True, schema=SCHEMA)
    DBOS.launch()
    ours = engine.start(job)
    found: list[Any] = [ours.result(), DBOS.start_workflow(theirs).get_result()]
    found.append(engine.fork(ours.id, 2).result())
    engine.close()
    found.append(DBOS.start_workflow(theirs).get_result() and "its own")
    say(found)


FACTS: dict[str, Callable[..., None]] = {
    each.__name__: each for each in (version, twice, time_limit, silence, context, one, twin, slot, attached)
}

if __name__ == "__main__":
    what, *arguments = sys.argv[1:]
    FACTS[what](*arguments)
    sys.stdout.flush()
    os._exit(0)  # without the seconds that DBOS and its threads take
