"""Turns of every kind are killed at every append and entered again: the end is the same (10 §C16.5)."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from harnpy import AgentDef, LoopFactory, Tool
from harnpy.llm.errors import CallError
from harnpy.llm.reply import Reply
from harnpy.llm.request import Request
from harnpy.session import ApprovalGate, ContextOverflow, InputGate, SessionRuntime, Turn
from harnpy.session.resize_policy import ResizePolicy
from harnpy.storage import Store
from tests.counts import COUNT
from tests.session.rules.mortal import Killed, mortal
from tests.storage.conftest import opened, store, url

__all__ = ["opened", "store", "url"]

EVERY = COUNT.turns_share
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

_ID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Model:
    """Answers by what it is asked. ``asked`` counts."""

    def __init__(self, answer: Callable[[Request], dict[str, Any]]) -> None:
        self._answer = answer
        self.asked = 0

    def complete(self, request: Request) -> Reply:
        self.asked += 1
        given = self._answer(request)
        usage: dict[str, Any] = {"input_tokens": 10, "output_tokens": 2, "requested_model": request.model}
        return Reply(**{"text": "", "model": request.model, "provider": request.provider, **usage, **given})


def steps(request: Request) -> int:
    """How often the model has spoken."""
    return sum(message["role"] == "assistant" for message in request.messages)


def asks(number: int, *names: str, **arguments: Any) -> dict[str, Any]:
    calls = [{"id": f"c{number}-{at}", "name": name, "arguments": arguments} for at, name in enumerate(names)]
    return {"tool_calls": calls, "text": f"step {number}"}


def works(request: Request) -> dict[str, Any]:
    number = steps(request)
    return asks(number, "work", n=number) if number < 3 else {"text": "done"}


def plans(request: Request) -> dict[str, Any]:
    number = steps(request)
    if number == 2:
        return {"text": "planned"}
    return asks(number, "todo_write", todos=[{"content": f"do {number}", "status": "pending"}])


def summarizes(request: Request) -> dict[str, Any]:
    if not request.tools:
        return {"text": "They talked."}
    said = str(request.messages)
    number = next(number for number in range(4) if f"did {number}" not in said)
    return asks(number, "work", n=number) if number < 3 else {"text": "done"}


def refuses_much(request: Request) -> dict[str, Any]:
    if len(request.messages) > 8:
        raise CallError("generic", "maximum context length")
    return works(request) if steps(request) < 2 else {"text": "done"}


def learns(request: Request) -> dict[str, Any]:
    return {"text": '{"n": 1}' if "schema" in str(request.messages[-1]).lower() else '{"n": "one"}'}


def newest(full: Any, window: list[Any], memo: Any, settings: Any) -> tuple[Any, Any, Any]:
    return None, window[-3:], {"cut": len(window)}


def due(full: Any, window: list[Any], memo: Any, settings: Any) -> str | None:
    return "newest" if len(window) > 5 else None


async def many(messages: Any, turn: Turn) -> str:
    """A function whose calls run side by side."""

    async def work(args: Any) -> str:
        for _ in range(args["n"]):
            await asyncio.sleep(0)
        return f"did {args['n']}"

    async def one(number: int) -> str:
        did: str = await turn.tool("work", {"n": number}, work, idempotent=True)
        return did

    found: list[str] = []
    for number in (2, 5):
        found += await asyncio.gather(one(number), one(number - 1))
        turn.session.set("metadata.found", list(found))
    return " ".join(found)


def overflown(messages: Any, turn: Turn) -> str:
    with turn.step(model="m"):
        if len(messages) > 3:
            raise ContextOverflow("too much")
    with turn.step(model="m"):
        return f"asked with {len(messages)}"


def wonders(request: Request) -> dict[str, Any]:
    number = steps(request)
    if number > 3:
        return {"text": "done"}
    if number % 2:
        return asks(number, "work", n=number)
    return asks(number, "request_human_input", prompt=f"what {number}?")


def people() -> dict[str, Any]:
    return {"inputs": InputGate(lambda prompt: f"say {prompt}"), "approvals": ApprovalGate(judge)}


def judge(request: Any) -> str:
    return "deny" if "3" in request.args else "allow"


class Case(NamedTuple):
    """What runs: a function, or a definition with the model that answers it; ``more`` makes options of
    `send`."""

    agent: Any = None
    answer: Callable[[Request], dict[str, Any]] = works
    options: Any = {}  # noqa: RUF012
    policy: ResizePolicy | None = None
    fields: Any = {}  # noqa: RUF012
    more: Callable[[], dict[str, Any]] = dict


CASES = {
    "compaction": Case(
        answer=summarizes,
        options={"compact_threshold": 60, "compact_keep_last": 2, "compact_strategy": "llm"},
    ),
    "resize": Case(
        options={"max_iterations": 4}, policy=ResizePolicy().on_analyze(due).strategy("newest", newest)
    ),
    "overflow": Case(answer=refuses_much, policy=ResizePolicy(keep_last=2)),
    "plan": Case(answer=plans, fields={"capabilities": ("use_tasks",)}),
    "schema": Case(
        answer=learns, options={"output_schema": SCHEMA, "schema_retries": 2}, fields={"tools": ()}
    ),
    "persistent": Case(options={"persistent": True, "max_iterations": 5}),
    "prefill": Case(options={"prefill": "Well"}),
    "people": Case(answer=wonders, more=people),
    "side by side": Case(many),
    "overflown": Case(overflown, policy=ResizePolicy(keep_last=2)),
}


def process(store: Store, case: Case, model: Model) -> SessionRuntime:
    work = Tool(
        "work",
        "Work.",
        {"properties": {"n": {"type": "integer"}}},
        lambda arguments: f"did {arguments['n']}",
        idempotent=True,
        on_ambiguous="retry",
    )
    loops = LoopFactory(tools=[work], providers={"mine": model})
    return SessionRuntime(store, agents=loops, resize=case.policy)


def create(runtime: SessionRuntime, case: Case, id: str) -> None:
    seed = [{"content": f"question {number} {'why ' * 9}"} for number in range(8)]
    if case.agent is None:
        runtime.create(AgentDef("a", model="mine/m", options=case.options, **case.fields), id=id, seed=seed)
    else:
        runtime.create("a", id=id, seed=seed)


def told(runtime: SessionRuntime, id: str) -> list[Any]:
    """What the log says, without times and what names its session."""
    gone = ("session_id", "duration_ms", "idempotency_key", "before_revision", "prompt_cache")
    found = []
    for event in runtime.get(id).events()[1:]:
        data = event.data if isinstance(event.data, dict) else {}
        kept = json.dumps({key: value for key, value in data.items() if key not in gone}, sort_keys=True)
        found.append((event.type, _ID.sub("<id>", kept)))
    return found


@pytest.mark.parametrize("url", ["memory", "sqlite"], indirect=True)
@pytest.mark.parametrize("name", CASES)
def test_the_end_is_the_same(store: Store, name: str) -> None:
    case, lives = CASES[name], 1000
    model = Model(case.answer)
    with process(store, case, model) as runtime:
        create(runtime, case, "whole")
    with process(mortal(store, lives), case, model) as runtime:
        expected = runtime.send("whole", "go", agent=case.agent, idempotency_key="k", **case.more())
        assert expected.status in ("completed", "stopped")
        appends = lives - runtime.store.lives - 1  # type: ignore[attr-defined]
        log, asked = told(runtime, "whole"), model.asked
        window = runtime.get("whole").window()
    for count in range(0, appends, EVERY):
        model = Model(case.answer)
        with process(store, case, model) as runtime:
            create(runtime, case, f"s{count}")
        with process(mortal(store, count), case, model) as runtime, pytest.raises(Killed):
            runtime.send(f"s{count}", "go", agent=case.agent, idempotency_key="k", **case.more())
        with process(store, case, model) as runtime:
            result = runtime.send(f"s{count}", "go", agent=case.agent, idempotency_key="k", **case.more())
            assert told(runtime, f"s{count}") == log, count
            assert runtime.get(f"s{count}").window() == window
            assert (result.text, result.usage, result.steps) == (
                expected.text,
                expected.usage,
                expected.steps,
            )
        assert model.asked <= asked + 1 + (name == "overflow")
