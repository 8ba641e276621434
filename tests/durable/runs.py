"""Durable runs for tests: an engine's run in memory that can be killed, and an outside that survives it."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harnpy.durable.programs import run
from harnpy.embedding import Vm
from harnpy.llm.errors import CallError
from harnpy.llm.reply import Reply
from harnpy.llm.request import Request
from harnpy.workflow.engines.contract import PROGRAM, Job, Step
from harnpy.workflow.engines.errors import ReplayDiverged, RunCancelled
from harnpy.world import World
from harnpy.world.clock import RealClock
from harnpy.world.processes import Ended
from harnpy.world.streams import RealStreams


class Killed(BaseException):
    """The process is gone."""


class MemoryRun:
    """A run whose records are a list. ``kill(n)`` is called before and, with -n, after the n-th append."""

    def __init__(
        self, recorded: Sequence[Step] = (), kill: Callable[[int], bool] = lambda number: False
    ) -> None:
        self.run_id = "r1"
        self.attempt = 1
        self.recorded = list(recorded)
        self.steps = list(recorded)
        self.appends = 0
        self.is_cancelled = False
        self.ends: list[Callable[[], None]] = []
        self._kill = kill
        self._asked = 0

    def record(self, *steps: Step) -> None:
        self.check()
        known = min(len(steps), len(self.recorded) - self._asked)
        for step in steps[:known]:
            self._replayed(step.key)
        if len(steps) > known:
            self._append(steps[known:])

    def _replayed(self, key: str) -> Any:
        found = self.recorded[self._asked]
        if found.key != key:
            raise ReplayDiverged(self.run_id, key, found.key, self._asked + 1)
        self._asked += 1
        return found.output

    def _append(self, steps: Sequence[Step]) -> None:
        self.appends += 1
        if self._kill(self.appends):
            raise Killed
        # As a store has them.
        self.steps += [Step(key, json.loads(json.dumps(output))) for key, output in steps]
        if self._kill(-self.appends):
            raise Killed

    def step(self, key: str, work: Callable[[], Any]) -> Any:
        if self._asked < len(self.recorded):
            return self._replayed(key)
        output = work()
        self.record(Step(key, output))
        return output

    def wait(self, waitpoints: Sequence[str], *, key: str, timeout: float | None = None) -> Any:
        raise AssertionError("nothing waits here")

    def check(self) -> None:
        if self.is_cancelled:
            raise RunCancelled(self.run_id, "enough")

    def on_end(self, call: Callable[[], None]) -> None:
        self.ends.append(call)

    def cancel(self) -> None:
        self.is_cancelled = True
        for call in self.ends:
            call()


class Outside(World):
    """What is outside of all processes of a run: it counts, and says what follows from what it is asked."""

    def __init__(self) -> None:
        super().__init__(
            clock=_Clock(), random=_Even(), processes=_Processes(self), streams=RealStreams(self.print)
        )
        self.printed: list[str] = []
        #: How often each model was asked each thing.
        self.asked: Counter[str] = Counter()
        self.ran: Counter[str] = Counter()

    def print(self, text: str) -> None:
        self.printed.append(text)

    def output(self) -> str:
        """Return what was printed since this was asked last."""
        text = "".join(self.printed)
        self.printed.clear()
        return text

    async def complete(self, request: Request) -> Reply:
        prompt = next(each["content"] for each in reversed(request.messages) if each["role"] == "user")
        calls = []
        if request.tools:
            if request.messages[-1]["role"] == "user":
                calls = [
                    {"id": f"{prompt}-{n}", "name": "look", "arguments": {"name": f"{prompt}.{n}"}}
                    for n in (1, 2)
                ]
            prompt += ", first" if calls else ", then"
        self.asked[prompt] += 1
        await self.pause(prompt)
        if "fail" in prompt:
            raise CallError("rate_limit", f"too much: {prompt}")
        return Reply(
            text=f"<{prompt}>",
            model="m",
            provider="p",
            requested_model="m",
            input_tokens=len(prompt),
            output_tokens=2,
            tool_calls=calls,
        )

    async def pause(self, what: str) -> None:
        """Let others come first."""
        for _ in range(len(what) % 5):
            await asyncio.sleep(0)

    def prepare(self, vm: Vm) -> None:
        vm.provide("p", self)


class _Clock(RealClock):
    """Its days stand still, and its seconds pass."""

    def now(self) -> float:  # type: ignore[override]
        return 1_750_000_000.0


class _Even:
    def random(self) -> float:
        return 0.5

    def randint(self, a: int, b: int) -> int:
        return (a + b) // 2

    def choice(self, seq: Sequence[Any]) -> Any:
        return seq[len(seq) // 2]

    def sample(self, population: Sequence[Any], k: int) -> list[Any]:
        return list(population[:k])


class _Processes:
    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    async def run(
        self,
        argv: Sequence[str],
        cwd: str,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Ended:
        self._outside.ran[argv[-1]] += 1
        await self._outside.pause(argv[-1])
        return Ended(7, 0, f"ran {argv[-1]}".encode(), b"")

    async def start(self, argv: Sequence[str], cwd: str, env: Mapping[str, str] | None = None) -> Any:
        raise AssertionError("only what runs to its end is recorded")


def job_of(source: str, directory: Path | str = "/tmp", **body: Any) -> Job:
    """The job of a program of one file, which there is nowhere but in the job."""
    entry = f"{directory}/main.harn"
    return Job(
        PROGRAM,
        "main.harn",
        {
            "entry": entry,
            "files": {entry: source},
            "args": [],
            "pipeline": None,
            "cwd": str(directory),
            **body,
        },
    )


def done(job: Job, context: MemoryRun, outside: Outside) -> Any:
    """Return what a run of the job comes to; None when it is killed."""
    try:
        return run(job, context, world=outside, prepare=outside.prepare)
    except Killed:
        return None


def without_output(steps: Sequence[Step]) -> list[Step]:
    return [step for step in steps if not step.key.endswith(":out")]
