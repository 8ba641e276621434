"""Does a process that goes on for long stay as it is: its memory, its descriptors, threads, tasks?

    python bench/soak.py [--minutes N] [--rounds N]

Round after round of mixed load in one process:

* a program that is kept: agent loops with a tool, forks, compaction, closing;
* a new one each time: workers, tasks, a channel;
* a session runtime on SQLite that is kept and used by several threads: turns of harnpy's own loop and of a
  function, forks, children, compaction, search, eviction, deletion;
* one that is opened and closed, and one in a loop of asyncio's, with watchers.

Between rounds nothing is alive but what is kept, so memory must be what it was: the resident set and Python's
own blocks are sampled there, and no minute's median may exceed that of the first one behind the first five by
more than 3%. At the end all is closed, and no file descriptor, thread, asyncio task or greenlet may be left.
Exits 1 otherwise.

`--rounds` ends the soak after so many; memory is judged only when it was watched for seven minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from time import monotonic, sleep
from typing import Any, NamedTuple

import greenlet
from tasks import resident

from harnpy import AgentDef, LoopFactory, Reply, SessionRuntime, Vm, tool
from harnpy.llm.account import MOST_EVENTS
from harnpy.session import ChildSpec, EventDraft, actions
from harnpy.session.aio import AsyncSessionRuntime

#: Minutes at the start that aren't judged, and how much more memory there may be after them.
SETTLING, MOST = 5.0, 1.03
#: Seconds between two samples, which are kept themselves.
EVERY = 5.0
#: Seconds that what has been told to end may take for it.
GRACE = 2.0
THREADS = 4
PROMPT, ANSWER = "How are you today?", "Fine, thank you."
#: Sessions of the kept runtime, which go on from round to round, and after how many messages they begin anew.
KEPT, LONGEST = 8, 200

PROGRAM = """
var registry = tool_registry()
registry = tool_define(registry, "add", "Add two numbers", {
  parameters: {a: "int", b: "int"},
  handler: { args -> args.a + args.b },
})
fn talk(n) {
  let chat = agent_session_open()
  for i in 0 to 5 exclusive {
    llm_mock({tool_calls: [{name: "add", arguments: {a: n, b: i}}], input_tokens: 10})
    llm_mock({text: "Fine, thank you.", input_tokens: 10})
    let options = {provider: "mock", session_id: chat, tools: registry, tool_format: "native"}
    agent_loop("How are you?", nil, options)
  }
  let branches = range(3).map({ _i -> agent_session_fork(chat) }).to_list()
  agent_session_compact(chat, {keep_last: 4, compact_strategy: "truncate"})
  let left = agent_session_length(chat)
  for branch in branches { agent_session_close(branch) }
  agent_session_close(chat)
  llm_mock_clear()
  return left
}
fn fill(n) {
  for i in 0 to n exclusive { llm_call("How are you?", nil, {provider: "mock"}) }
  llm_mock_clear()
}
return [talk, fill]
"""
WORKERS = """
fn work(n) {
  for i in 0 to 3 exclusive { llm_mock({text: "Done."}) }
  let workers = range(3).map({ i ->
    let node = {model_policy: {provider: "mock"}}
    spawn_agent({task: "Count to ${i}", node: node, carry: {persist_state: false}})
  }).to_list()
  let ended = wait_agent(workers).map({ worker -> worker.status })
  for worker in workers { close_agent(worker) }
  let ch = channel("numbers", 4)
  let sender = spawn {
    for i in 0 to 50 exclusive { send(ch, i) }
    close_channel(ch)
  }
  var total = 0
  for number in ch { total = total + number }
  await(sender)
  let squares = parallel 20 { i ->
    sleep(1ms)
    i * i
  }
  return [ended, total, len(squares)]
}
return work
"""


class Quick:
    """A model that replies at once."""

    async def complete(self, request: Any) -> Reply:
        return Reply(ANSWER, request.model, "quick", request.model, 10, 5)


@tool(read_only=True)
def weather(place: str) -> str:
    """What the weather is like."""
    return f"sunny in {place}"


AGENT = AgentDef("quick", model="quick/m", tools=("weather",))


def answer(messages: Any) -> str:
    return ANSWER


def note(session: Any) -> None:
    session.append(EventDraft("message_added", {"role": "user", "content": "a note"}))


def equal(found: object, wanted: object) -> None:
    if found != wanted:
        raise AssertionError(f"got {found!r}, want {wanted!r}")


def runtime(url: str) -> SessionRuntime:
    return SessionRuntime(url, agents=LoopFactory(providers={"quick": Quick()}, tools=[weather]))


# The load. Each part is a context manager that yields what a round does.


@contextmanager
def kept_program(directory: Path) -> Iterator[Callable[[int], None]]:
    """Loops, forks, compaction and closing in sessions of one Vm that goes on."""
    vm = Vm()
    talk, fill = vm.run_source(PROGRAM)
    vm.call(fill, MOST_EVENTS)  # which would take a slow machine longer than the first five minutes
    yield lambda number: equal(vm.call(talk, number) < 20, True)


@contextmanager
def new_program(directory: Path) -> Iterator[Callable[[int], None]]:
    """Workers, a channel and tasks in a Vm of their own."""

    def work(number: int) -> None:
        vm = Vm()
        found = vm.call(vm.run_source(WORKERS), number)
        equal(found, [["completed"] * 3, 1225, 20])

    yield work


@contextmanager
def kept_service(directory: Path) -> Iterator[Callable[[int], None]]:
    """Threads that share a runtime: sessions that go on, and some that come and go."""
    with runtime(f"sqlite:{directory}/kept.db") as sessions, ThreadPoolExecutor(THREADS) as threads:

        def come_and_go(id: str) -> None:
            sessions.create(AGENT, id=id)
            for _ in range(3):
                equal(sessions.send(id, PROMPT).text, ANSWER)
            sessions.execute(id, note)
            child = sessions.run_child(id, ChildSpec(task="Count", agent=answer))
            fork = f"{id}-fork"
            sessions.execute(id, actions.Fork(fork))
            equal(sessions.send(fork, PROMPT, agent=answer).text, ANSWER)
            with sessions.watch(id, after=0) as watch:
                equal(next(watch).seq, 1)
            for each in (fork, child.session_id, id):
                sessions.evict(each)
                sessions.delete(each, hard=True)

        def go_on(id: str) -> None:
            session = sessions.open(id, create=True)
            equal(sessions.send(id, PROMPT, agent=answer).text, ANSWER)
            if session.length > 40:
                sessions.compact_in_background(id, "truncate").result()
            if session.seq > LONGEST:
                sessions.delete(id, hard=True)

        def work(number: int) -> None:
            asked = [threads.submit(come_and_go, f"{number}-{each}") for each in range(THREADS)]
            asked += [threads.submit(go_on, f"kept-{each}") for each in range(KEPT)]
            for each in asked:
                each.result()
            equal(sessions.search("nobody said this"), [])

        yield work


@contextmanager
def new_service(directory: Path) -> Iterator[Callable[[int], None]]:
    """A runtime that is opened and closed, whose sessions stay on the disk."""

    def work(number: int) -> None:
        with runtime(f"sqlite:{directory}/new.db") as sessions:
            id = f"chat-{number % KEPT}"
            if sessions.open(id, create=True).seq > LONGEST:
                sessions.delete(id, hard=True)
                sessions.create(id=id)
            equal(sessions.send(id, PROMPT, agent=answer).text, ANSWER)

    yield work


@contextmanager
def asynchronous(directory: Path) -> Iterator[Callable[[int], None]]:
    """Turns at once in a loop of asyncio's, each with somebody who watches."""

    async def one(sessions: AsyncSessionRuntime, id: str) -> None:
        await sessions.create(id=id)
        async with await sessions.watch(id, types=["message_added"]) as watch:
            equal((await sessions.send(id, PROMPT, agent=answer)).text, ANSWER)
            event = await anext(watch)
            equal(event.data["content"], PROMPT)
        await sessions.delete(id, hard=True)

    async def run(number: int) -> None:
        async with AsyncSessionRuntime(f"sqlite:{directory}/async.db") as sessions:
            await asyncio.gather(*(one(sessions, f"{number}-{each}") for each in range(THREADS)))

    yield lambda number: asyncio.run(run(number))


PARTS = [kept_program, new_program, kept_service, new_service, asynchronous]


# What is looked at.


class Sample(NamedTuple):
    """The memory between two rounds, in bytes and in Python's blocks."""

    minute: float
    resident: int
    blocks: int


def sample(begin: float) -> Sample:
    gc.collect()
    return Sample((monotonic() - begin) / 60, resident(), sys.getallocatedblocks())


class Alive(NamedTuple):
    """What lives in this process, each by a name."""

    descriptors: list[str]
    threads: list[str]
    tasks: list[str]
    greenlets: list[str]


def alive() -> Alive:
    gc.collect()
    descriptors = []
    for each in os.listdir("/proc/self/fd"):
        try:
            descriptors.append(os.readlink(f"/proc/self/fd/{each}"))
        except FileNotFoundError:
            continue  # the one that listed them
    # By their types, as some objects do things when they are asked for their class.
    objects = [(each, type(each)) for each in gc.get_objects()]
    return Alive(
        descriptors,
        [thread.name for thread in threading.enumerate()],
        [repr(each) for each, kind in objects if issubclass(kind, asyncio.Task) and not each.done()],
        # A thread's own one is there as long as the thread.
        [
            repr(each)
            for each, kind in objects
            if issubclass(kind, greenlet.greenlet) and each and each.parent
        ],
    )


def left_over(before: Alive) -> list[str]:
    """What is there that wasn't, a line each. Threads that have been told to end get a moment for it."""
    ends = monotonic() + GRACE
    while (found := more(before, alive())) and monotonic() < ends:
        sleep(0.01)
    return found


def more(before: Alive, after: Alive) -> list[str]:
    found = []
    for kind, were, are in zip(Alive._fields, before, after, strict=True):
        new = Counter(are) - Counter(were)
        found += [f"{kind} left: {each}" for each in new.elements()]
    return found


def by_minute(samples: list[Sample]) -> dict[int, Sample]:
    """The medians of each minute."""
    minutes: dict[int, list[Sample]] = {}
    for each in samples:
        minutes.setdefault(int(each.minute), []).append(each)
    return {
        minute: Sample(minute, *(int(median(column)) for column in list(zip(*found, strict=True))[1:]))
        for minute, found in minutes.items()
    }


def growth(samples: list[Sample], settling: float = SETTLING) -> dict[str, float] | None:
    """The highest minute × the first one after ``settling``; None when there aren't two of them."""
    judged = [each for minute, each in sorted(by_minute(samples).items()) if minute >= settling]
    if len(judged) < 2:
        return None
    first = judged[0]
    return {
        "resident memory": max(each.resident for each in judged) / first.resident,
        "Python's blocks": max(each.blocks for each in judged) / first.blocks,
    }


def soak(minutes: float, rounds: int | None) -> tuple[list[Sample], list[str], int]:
    """Samples, what is left, and how many rounds there were."""
    before, begin, samples, number = alive(), monotonic(), list[Sample](), 0
    with tempfile.TemporaryDirectory(prefix="harnpy-soak-") as name, ExitStack() as stack:
        parts = [stack.enter_context(part(Path(name))) for part in PARTS]
        while (monotonic() - begin < minutes * 60) if rounds is None else number < rounds:
            for part in parts:
                part(number)
            number += 1
            if monotonic() - begin >= len(samples) * EVERY:
                samples.append(sample(begin))
                if len(samples) % (60 / EVERY) == 1:
                    print(line(samples[-1], number), flush=True)
    return samples, left_over(before), number


def line(each: Sample, rounds: int) -> str:
    memory = f"{each.resident / 2**20:7.1f} MiB   {each.blocks:9,} blocks"
    return f"  minute {each.minute:5.1f}   {rounds:6,} rounds   {memory}"


def main() -> int:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--minutes", type=float, default=30.0)
    arguments.add_argument("--rounds", type=int, help="so many rounds instead of so many minutes")
    options = arguments.parse_args()
    samples, left, rounds = soak(options.minutes, options.rounds)
    print(f"{rounds:,} rounds in {samples[-1].minute:.1f} minutes")
    grown = growth(samples)
    if grown is None:
        print(f"memory: not judged, the soak has to go on for {SETTLING + 2:.0f} minutes")
    for what, ratio in (grown or {}).items():
        verdict = "flat" if ratio <= MOST else f"NOT FLAT, must {MOST}"
        print(f"{what}: × {ratio:.3f} at most, after the first {SETTLING:.0f} minutes: {verdict}")
    print(*(left or ["no descriptor, thread, task or greenlet is left"]), sep="\n")
    return 1 if left or any(ratio > MOST for ratio in (grown or {}).values()) else 0


if __name__ == "__main__":
    sys.exit(main())
