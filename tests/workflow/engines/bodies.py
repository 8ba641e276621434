"""Jobs of tests, and the functions that do them. They note what they do in a journal."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from threading import Event, get_ident
from typing import Any

from harnpy.workflow.engines.contract import Body, Job, Json, RunContext
from tests.support import happens

#: How a body ends its own process, or stops it.
SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}


class Journal:
    """Lines in a file; each is written at once, so their order is that of what happened."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    def note(self, *words: object) -> None:
        line = " ".join(map(str, words))
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(file, f"{line}\n".encode())
        finally:
            os.close(file)

    def lines(self) -> list[str]:
        return self.path.read_text("utf-8").splitlines() if self.path.exists() else []


def job(kind: str, journal: Journal | None = None, **body: Json) -> Job:
    return Job(kind, f"a job of {kind}", {"journal": None if journal is None else str(journal.path), **body})


def do_steps(job: Job, run: RunContext) -> Json:
    """``count`` steps. At the boundary ``at`` of the first attempt a signal ends or stops the process."""
    journal, count = Journal(job.body["journal"]), job.body.get("count", 3)
    outputs = []
    for n in range(count + 1):
        if run.attempt == 1 and job.body.get("at") == n:
            journal.note("at", n)
            # To this thread: it mustn't go on until another one has taken the signal.
            signal.pthread_kill(get_ident(), SIGNALS[job.body["signal"]])
        if n < count:
            outputs.append(run.step(f"step:{n}", lambda n=n: _worked(journal, run, n)))  # type: ignore[misc]
    return outputs


def _worked(journal: Journal, run: RunContext, n: int) -> Json:
    journal.note("did", run.run_id, n)
    return {"n": n, "text": f"step {n} — ü"}


def be_counted(job: Job, run: RunContext) -> Json:
    """Note when it is at work."""
    journal = Journal(job.body["journal"])
    journal.note("begins", run.run_id, os.getpid())
    Event().wait(job.body.get("seconds", 0.0))
    journal.note("ends", run.run_id, os.getpid())
    return run.run_id


def wait(job: Job, run: RunContext) -> Json:
    """Wait for something from outside."""
    before = run.step("before", lambda: "began")
    ended = run.wait(job.body["waitpoints"], key="wait", timeout=job.body.get("timeout"))
    return [before, ended["status"], ended["deadline_at"], [point["value"] for point in ended["waitpoints"]]]


def hang(job: Job, run: RunContext) -> Json:
    """Work on one step until the run is over; ``opened`` says that it does."""
    over = Event()
    run.on_end(over.set)

    def work() -> Json:
        Journal(job.body["journal"]).note("hangs", run.run_id)
        happens(over)
        run.check()

    return run.step("hang", work)


def change(job: Job, run: RunContext) -> Json:
    """Do something else each time."""
    run.step(f"attempt {run.attempt}", lambda: None)
    raise ValueError("not today")


def fail(job: Job, run: RunContext) -> Json:
    """Fail as often as it is told to."""
    run.step("first", lambda: Journal(job.body["journal"]).note("did first"))
    if run.attempt <= job.body["times"]:
        raise ValueError("not today")
    return run.step("second", lambda: run.attempt)


def record(job: Job, run: RunContext) -> Json:
    """Record steps that have happened, as programs do."""
    from harnpy.workflow.engines.contract import Step

    done = [*run.recorded]
    if done:
        run.record(*done)
    run.record(*(Step(f"effect:{n}", n) for n in range(len(done), job.body["count"])))
    if run.attempt == 1:
        raise ValueError("not today")
    return [step.output for step in done]


def give_nan(job: Job, run: RunContext) -> Json:
    return run.step("nan", lambda: float("nan"))


def leave(job: Job, run: Any) -> Json:
    """Leave the first attempt to other workers."""
    if run.attempt == 1:
        why = ValueError("nobody may do it here")
        run.leave(why)
        raise why
    return run.attempt


class Stoppable:
    """A body with two steps. The first one ends when the test says so, the second isn't begun by a worker
    that has been asked to stop."""

    def __init__(self) -> None:
        self.begun, self.end, self.asked, self.over = Event(), Event(), Event(), Event()
        self.done: list[int] = []

    def __call__(self, job: Job, run: Any) -> Json:
        run.on_end(self.over.set)
        if run.attempt == 1:
            run.on_leave(self.asked.set)
        run.step("first", lambda: self._first(run))
        if run.attempt == 1:
            happens(self.asked)
        run.step("second", lambda: self.done.append(2))
        return run.attempt

    def _first(self, run: RunContext) -> None:
        self.begun.set()
        happens(self.end)
        run.check()
        self.done.append(1)


BODIES: dict[str, Body] = {
    "steps": do_steps,
    "counted": be_counted,
    "wait": wait,
    "hang": hang,
    "change": change,
    "fail": fail,
    "record": record,
    "nan": give_nan,
    "leave": leave,
}


def overlaps(lines: list[str]) -> tuple[int, dict[str, int], list[str]]:
    """Return how many were at work at once at most, in all and by process, and which began, in order."""
    at_work: dict[str, set[str]] = {}
    most, by_process, began = 0, dict[str, int](), []
    for line in lines:
        what, run, process = line.split()
        mine = at_work.setdefault(process, set())
        if what == "begins":
            mine.add(run)
            began.append(run)
        else:
            mine.remove(run)
        by_process[process] = max(by_process.get(process, 0), len(mine))
        most = max(most, sum(map(len, at_work.values())))
    return most, by_process, began


def told(call: Any) -> str:
    """Return the message of the error that a call raises."""
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""
