"""The agent that each recorder of `bench/time_machine.py` records: 40 calls of a model by plain HTTP, in two
halves that do the same. `time_machine_agent.harn` is the same in Harn.

`bench/tapes/on_NAME.py` hands in what the recorder demands (`Kit`) and is all that differs from one to the
next. What begins with `·` is what the agent prints; each part goes on when the one before has failed.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import os
import random
import secrets
import sqlite3
import subprocess
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

URL = os.environ["MODEL_URL"] + "/v1/chat/completions"
#: Which of two parallel calls is done before the other one begins.
FIRST = os.environ.get("FIRST")
Messages = list[dict[str, Any]]


def _as_it_is(function: Any) -> Any:
    return function


@dataclass
class Kit:
    """What differs: the clients, and the decorators of tools and of functions that ask a model,
    what stands around each of several calls at once, and whether threads may make calls."""

    client: Callable[[], httpx.Client] = lambda: httpx.Client(timeout=60)
    async_client: Callable[[], httpx.AsyncClient] = lambda: httpx.AsyncClient(timeout=60)
    tool: Callable[[Any], Any] = _as_it_is
    asking: Callable[[Any], Any] = _as_it_is
    apart: Callable[[str], AbstractContextManager[Any]] = nullcontext
    threads: bool = True


def say(*words: object) -> None:
    print("·", *words, flush=True)


# The tools. Each leaves a trace in the folder.


def write_note(text: str) -> str:
    Path("note.txt").write_text(text)
    return "written"


def read_note() -> str:
    return Path("note.txt").read_text()


def charge(cents: int) -> str:
    with open("ledger.txt", "a") as ledger:
        ledger.write(f"{cents}\n")
    return f"receipt for {cents}"


def weigh() -> str:
    return subprocess.run(["sh", "weigh.sh"], capture_output=True, text=True, check=True).stdout


def look() -> str:
    return "nothing new"


@dataclass
class _Pair:
    """Two calls at once; if FIRST is one of them, the other begins when that one has its answer."""

    number: int
    answers: dict[str, str] = field(default_factory=dict)
    begin: threading.Event = field(default_factory=threading.Event)

    def name(self, which: str) -> str:
        return f"pair {self.number} {which}"

    def messages(self, which: str) -> Messages:
        return [{"role": "user", "content": f"[{self.name(which)}] What do you think?"}]

    def told(self, which: str, answer: str) -> None:
        self.answers[which] = answer

    def say(self, kind: str) -> None:
        say(f"first-{kind}", next(iter(self.answers), None))
        say(kind, self.answers.get("a"), self.answers.get("b"))


class Agent:
    def __init__(self, kit: Kit) -> None:
        self.http, self.async_client, self.apart = kit.client(), kit.async_client, kit.apart
        self.threads, self.pieces = kit.threads, 0
        self.ask, self.ask_async = kit.asking(self._ask), kit.asking(self._ask_async)
        self.read = kit.asking(self._read)
        plain = [write_note, read_note, charge, weigh, look, self.ask_expert]
        self.tools = {function.__name__: kit.tool(function) for function in plain}
        self.half = 0

    def _ask(self, messages: Messages) -> dict[str, Any]:
        answer = self.http.post(URL, json={"model": "m-1", "messages": messages}).raise_for_status()
        message: dict[str, Any] = answer.json()["choices"][0]["message"]
        return message

    async def _ask_async(self, messages: Messages) -> dict[str, Any]:
        answer = await self.async_http.post(URL, json={"model": "m-1", "messages": messages})
        message: dict[str, Any] = answer.raise_for_status().json()["choices"][0]["message"]
        return message

    def loop(self, prompt: str, keep: Callable[[dict[str, Any]], None] = lambda message: None) -> str:
        """Ask, call the tools that the model asks for, and return what it says in the end."""
        messages: Messages = [{"role": "system", "content": "You are brief."}]
        new: Messages = [{"role": "user", "content": prompt}]
        while True:
            messages += new
            for message in new:
                keep(message)
            said = self.ask(messages)
            new = [said]
            for call in said.get("tool_calls") or []:
                arguments = json.loads(call["function"]["arguments"])
                if "text" in arguments:
                    arguments["text"] += " and bread"
                result = self.tools[call["function"]["name"]](**arguments)
                new.append({"role": "tool", "tool_call_id": call["id"], "content": result})
            if len(new) == 1:
                keep(said)
                return str(said["content"])

    def ask_expert(self) -> str:
        return self.loop(f"[expert {self.half}] Look around.")

    # The parts.

    def files(self) -> None:
        say("file", Path("edition.txt").read_text().strip())
        with open("diary.txt", "a") as diary:
            diary.write(f"half {self.half} began\n")

    def processes(self) -> None:
        ran = subprocess.run(["sh", "probe.sh", "probe", str(self.half)], capture_output=True, text=True)
        say("process", ran.stdout.strip())

    def clock(self) -> None:
        say("time", time.time())
        say("now", datetime.now().isoformat())

    def random(self) -> None:
        say("random", random.random())
        say("uuid", uuid.uuid4())
        say("secret", secrets.token_hex(4))

    def calls(self) -> None:
        """The loop with its tools and its sub-agent; a session keeps what is said."""
        with sqlite3.connect("session.db") as session:
            session.execute("create table if not exists messages (half, message)")

            def keep(message: dict[str, Any]) -> None:
                session.execute("insert into messages values (?, ?)", (self.half, json.dumps(message)))
                session.commit()

            say("loop", self.loop(f"[loop {self.half}] Do the work of today.", keep))

    def parallel(self) -> None:
        """Two calls at once, in threads and in tasks: print which is done first, and what they are told."""
        in_threads = _Pair(2 * self.half)
        if not self.threads:
            asyncio.run(self._tasks(in_threads))
            in_threads.answers.clear()
        threads = [
            threading.Thread(
                target=contextvars.copy_context().run, args=(self._one_thread, in_threads, which)
            )
            for which in "ab" * self.threads
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        in_threads.say("threads")
        in_tasks = _Pair(2 * self.half + 1)
        asyncio.run(self._tasks(in_tasks))
        in_tasks.say("tasks")

    def _one_thread(self, pair: _Pair, which: str) -> None:
        try:
            if FIRST not in (None, which):
                pair.begin.wait()
            with self.apart(pair.name(which)):
                pair.told(which, self.ask(pair.messages(which))["content"])
        finally:
            if which == FIRST:
                pair.begin.set()

    async def _tasks(self, pair: _Pair) -> None:
        async def one(which: str) -> None:
            while FIRST not in (None, which) and not pair.begin.is_set():
                await asyncio.sleep(0.01)
            try:
                with self.apart(pair.name(which)):
                    said = await self.ask_async(pair.messages(which))
                pair.told(which, said["content"])
            finally:
                if which == FIRST:
                    pair.begin.set()

        async with self.async_client() as self.async_http:
            await asyncio.gather(one("a"), one("b"), return_exceptions=True)

    def streams(self) -> None:
        for number in (2 * self.half, 2 * self.half + 1):
            self.pieces = 0
            text = self.read(f"[stream {number}] Tell me everything.")
            say("pieces", self.pieces)
            say("streamed", text)

    def _read(self, prompt: str) -> str:
        """Return the text of a streamed reply; count its pieces as they come."""
        text = ""
        asked = {"model": "m-1", "messages": [{"role": "user", "content": prompt}], "stream": True}
        with self.http.stream("POST", URL, json=asked) as answer:
            answer.raise_for_status()
            for piece in answer.iter_text():
                self.pieces += bool(piece)
                for line in piece.splitlines():
                    if line.startswith("data: {") and (choices := json.loads(line[6:])["choices"]):
                        text += choices[0]["delta"].get("content") or ""
        return text

    def last(self) -> None:
        say("sum", self.ask([{"role": "user", "content": f"[sum {self.half}] Sum it up."}])["content"])

    def day(self) -> None:
        for self.half in (1, 2):
            say("half", self.half)
            for part in (
                *(self.files, self.processes, self.clock, self.random),
                *(self.calls, self.parallel, self.streams, self.last),
            ):
                try:
                    part()
                except Exception:
                    print(part.__name__, "failed:", file=sys.stderr)
                    traceback.print_exc()

    def turns(self, number: int) -> None:
        """A loop with so many turns, each with a tool."""
        say(self.loop(f"[turns {number}] Write notes."))


def main(kit: Kit) -> None:
    """Run the day, or, with TURNS, a loop of so many turns."""
    turns = int(os.environ.get("TURNS", "0"))
    agent = Agent(kit)
    if turns:
        agent.turns(turns)
    else:
        agent.day()
