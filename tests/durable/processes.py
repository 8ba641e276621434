"""Processes that run a graph one after the other, and die where the test wants: at a step, at an append."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from harnpy import Vm
from harnpy.durable import graphs
from harnpy.llm.errors import CallError
from harnpy.llm.reply import Reply
from harnpy.storage import Store
from harnpy.storage.memory import MemoryStore
from harnpy.workflow.engines.contract import GRAPH, Job, Step
from harnpy.workflow.engines.errors import ReplayDiverged
from harnpy.world import World
from tests.session.rules.mortal import Killed, Mortal

Dict = dict[str, Any]

URL = "memory:"
#: So many appends nobody makes.
IMMORTAL = 10_000


class Record:
    """A `RunContext` in memory: ``steps`` is the record, which outlives the process.

    The process dies before step number ``dies_before`` or after number ``dies_after``, counted from 0.
    """

    def __init__(
        self, steps: list[Step], dies_before: int | None = None, dies_after: int | None = None
    ) -> None:
        self.run_id, self.attempt, self.recorded = "run-1", 1, list(steps)
        self.steps = steps
        self.asked = 0
        self.ran: list[str] = []
        self.waited: list[str] = []
        self.ends: list[Callable[[], None]] = []
        self._dies_before, self._dies_after = dies_before, dies_after
        #: What waits come to; one that isn't here kills the process that waits.
        self.answers: Dict = {}

    def step(self, key: str, work: Callable[[], Any]) -> Any:
        number, self.asked = self.asked, self.asked + 1
        if number < len(self.recorded):
            known = self.recorded[number]
            if known.key != key:
                raise ReplayDiverged(self.run_id, key, known.key, number + 1)
            return known.output
        if number == self._dies_before:
            raise Killed
        output = json.loads(json.dumps(work()))
        self.ran.append(key)
        self.steps.append(Step(key, output))
        if number == self._dies_after:
            raise Killed
        return output

    def record(self, *steps: Step) -> None:
        raise NotImplementedError

    def wait(self, waitpoints: Any, *, key: str, timeout: float | None = None) -> Any:
        [point] = waitpoints

        def ended() -> Dict:
            self.waited.append(point)
            if not self.answers:
                raise Killed
            return {"status": "completed", "waitpoints": [{"id": point, **self.answers}]}

        return self.step(key, ended)

    def check(self) -> None:
        pass

    def on_end(self, call: Callable[[], None]) -> None:
        self.ends.append(call)


class Model:
    """Answers by what it is asked, and counts how often: ``asked`` are the last messages."""

    def __init__(self, answer: Callable[[str, int], Any] | None = None) -> None:
        self.asked: list[str] = []
        self._answer = answer or answered

    def complete(self, request: Any) -> Reply:
        text = str(request.messages[-1]["content"])
        self.asked.append(text)
        given = self._answer(text, len(request.messages))
        if isinstance(given, CallError):
            raise given
        reply = Reply(given.get("text", ""), "m", "model", "m", input_tokens=len(text), output_tokens=2)
        reply.tool_calls = [{**call} for call in given.get("tool_calls", ())]
        return reply


def answered(text: str, count: int) -> Dict:
    """What the model says in the graph of the tests."""
    if "Map item" in text:
        return {"text": "item " + re.findall(r"Map item (\d)", text)[-1]}
    if count == 1 and "List the files" in text:
        return {
            "text": "I look.",
            "tool_calls": [{"id": "c1", "name": "list_directory", "arguments": {"path": "."}}],
        }
    if count == 3:
        return {
            "text": "I read.",
            "tool_calls": [{"id": "c2", "name": "read_file", "arguments": {"path": "a.txt"}}],
        }
    return {"text": f"said after {count} ##DONE##"}


FILE_TOOLS = {
    "_type": "tool_registry",
    "tools": [
        {"name": name, "description": name, "executor": "harn", "parameters": {"path": {"type": "string"}}}
        for name in ("list_directory", "read_file")
    ],
}


def six_stages() -> Dict:
    """A stage with tools, a single call, a map, a condition, a check and a reduction."""
    nodes: Dict = {
        "look": {
            "task_label": "List the files", "tools": FILE_TOOLS, "done_sentinel": "##DONE##",
            "model_policy": {"tool_format": "native"},
        },
        "draft": {"system": "Be brief."},
        "each": {
            "kind": "map", "mode": "llm", "map_policy": {"items": ["a", "b"], "output_kind": "part"},
        },
        "good": {"kind": "condition", "metadata": {"contains_text": "item"}},
        "check": {"kind": "verify", "verify": {"command": "echo fine", "expect_status": 0}},
        "all": {"kind": "reduce", "context_policy": {"include_kinds": ["part"]}},
        "never": {"kind": "escalation"},
    }  # fmt: skip
    edges = [
        {"from": "look", "to": "draft"}, {"from": "draft", "to": "each"}, {"from": "each", "to": "good"},
        {"from": "good", "to": "check", "branch": "true"}, {"from": "good", "to": "never", "branch": "false"},
        {"from": "check", "to": "all", "branch": "passed"},
    ]  # fmt: skip
    return {"id": "six", "entry": "look", "nodes": nodes, "edges": edges}


def job(graph: Dict | None = None, **more: Any) -> Job:
    options = {"provider": "model", **more.pop("options", {})}
    body = {
        "graph": six_stages() if graph is None else graph,
        "task": "List the files",
        "options": options,
        **more,
    }
    return Job(GRAPH, "six", json.loads(json.dumps(body)), URL)


class Shelf(Mortal):
    """A store that isn't closed with the process, which dies at append number ``lives`` + 1."""

    def close(self) -> None: ...

    def stream(self, *args: Any) -> Any:
        return super().stream(*args) if self.lives < IMMORTAL else self._store.stream(*args)


def process(store: Store, record: Record, job: Job, model: Model, lives: int = IMMORTAL, **world: Any) -> Any:
    """Run the job in a process of its own; return what it came to, None if it died."""

    def make_vm() -> Vm:
        vm = Vm(World(**world)) if world else Vm()
        vm.provide("model", model)
        vm.sessions.stores._open[URL] = Shelf(store, lives)  # type: ignore[assignment]
        return vm

    with suppress(Killed):
        return graphs.run(job, record, make_vm)
    return None


def empty() -> Store:
    return MemoryStore()


_TIMES = re.compile(r"(_at|_ms|timestamp|span_id)\Z")


def timeless(value: Any) -> Any:
    """A record without its times, and what is minted of them."""
    if isinstance(value, list):
        return [timeless(item) for item in value]
    if isinstance(value, dict):
        return {key: timeless(item) for key, item in value.items() if not _TIMES.search(key)}
    return _UUID.sub("<id>", value) if isinstance(value, str) else value


_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
