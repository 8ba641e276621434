"""A turn of six steps is killed at every append and entered again (10 §C12.1 g, §C16.5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harnpy import AgentDef, LoopFactory, Tool
from harnpy.session import Session, SessionRuntime, ToolAmbiguous, Turn
from harnpy.session.agents import TurnResult
from harnpy.storage import Store
from tests.counts import COUNT
from tests.llm.wire import OPENAI
from tests.session.rules.mortal import Killed, mortal
from tests.session.rules.provider_rules import assert_accepted
from tests.storage.conftest import opened, store, url

__all__ = ["opened", "store", "url"]

#: Every how many appends one is killed at.
EVERY = COUNT.reentry_share

pytestmark = pytest.mark.parametrize("url", ["memory", "sqlite"], indirect=True)


class Tools:
    """Tools that know how often they ran."""

    def __init__(self) -> None:
        self.ran: list[Any] = []

    def entries(self) -> list[Tool]:
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
        return [
            Tool("look", "Look.", schema, self._run, read_only=True),
            Tool("act", "Act.", schema, self._run),
        ]

    def _run(self, arguments: dict[str, Any]) -> Any:
        self.ran.append(arguments["n"])
        if arguments["n"] == 4:
            raise ValueError("no 4")
        return {"n": arguments["n"]}


def asks(tool_format: str, *calls: tuple[str, int]) -> dict[str, Any]:
    if tool_format == "text":
        made = (f"<tool_call>\n{name}({{ n: {number} }})\n</tool_call>" for name, number in calls)
        return {"text": "\n".join(made)}
    return {"tool_calls": [{"name": name, "arguments": {"n": number}} for name, number in calls]}


def replies(tool_format: str) -> list[dict[str, Any]]:
    """What the model says in six steps: calls side by side, one that fails, the same one four times, and
    one of a tool that isn't there."""
    return [
        asks(tool_format, ("look", 1), ("look", 2)),
        asks(tool_format, ("act", 4), ("look", 5)),
        asks(tool_format, ("act", 6), ("act", 6)),
        asks(tool_format, ("act", 6), ("act", 6), ("act", 6)),
        asks(tool_format, ("none", 7)),
        {"text": "done"},
    ]


def helper(tool_format: str) -> AgentDef:
    return AgentDef("helper", system_prompt="Be brief.", model="mock", options={"tool_format": tool_format})


def process(store: Store, tools: Tools, said: list[dict[str, Any]]) -> SessionRuntime:
    loops = LoopFactory(tools=tools.entries())
    for reply in said:
        loops.mock.add(reply)
    return SessionRuntime(store, agents=loops)


def told(result: TurnResult) -> tuple[Any, ...]:
    messages = [{**message, "tool_calls": None, "tool_call_id": None} for message in result.messages]
    return (result.status, result.text, result.steps, result.usage, result.cost, messages)


def types(session: Session) -> list[str]:
    return [event.type for event in session.events()]


def begun(session: Session) -> list[str]:
    """The keys of the calls that have no end."""
    keys: list[tuple[str, str]] = []
    for event in session.events():
        if event.type == "tool_started":
            keys.append((event.data["tool"], event.data["idempotency_key"]))
        elif event.type == "tool_completed":  # those of one tool end in order
            ended = [known for known in keys if known[0] == event.data["tool"]]
            keys = [known for known in keys if known not in ended[:1]]
    return [key for _, key in keys]


@pytest.mark.parametrize("tool_format", ["native", "text"])
def test_a_loop_is_killed_at_every_append(store: Store, tool_format: str) -> None:
    said = replies(tool_format)
    whole, lives = Tools(), 1000
    with process(mortal(store, lives), whole, said) as runtime:
        runtime.create(helper(tool_format), id="whole")
        expected = runtime.send("whole", "go", idempotency_key="k")
        log = types(runtime.get("whole"))
        appends = lives - runtime.store.lives - 1  # type: ignore[attr-defined]
    assert expected.status == "completed"
    for count in range(0, appends, EVERY):
        id, tools = f"s{count}", Tools()
        with process(store, tools, said) as runtime:
            runtime.create(helper(tool_format), id=id)
        with process(mortal(store, count), tools, said) as runtime, pytest.raises(Killed):
            runtime.send(id, "go", idempotency_key="k")
        with SessionRuntime(store) as runtime:
            session = runtime.get(id)
            left = types(session)
            answered, fenced = left.count("step_completed"), begun(session)
        with process(store, tools, said[answered:]) as runtime:
            result = runtime.send(id, "go", idempotency_key="k")
            session = runtime.get(id)
            assert len(runtime.agents.mock.calls()) == len(said) - answered
            assert runtime.send(id, "go", idempotency_key="k").turn_id == result.turn_id
            if tool_format == "native":
                assert_accepted(session.window(), OPENAI)
        assert result.turn_id == session.event(2).id
        assert types(session).count("turn_started") == 1
        assert session.revision == 2
        assert session.events()[: len(left)][-1].type == left[-1]
        ends = [event.data for event in session.events() if event.type == "tool_completed"]
        fences = [end["error"] for end in ends if "acrfence" in end.get("error", "")]
        assert fences == [
            f'Error: acrfence: prior tool execution for key "{key}" started but did not complete'
            for key in fenced
        ]
        keys = [event.data["idempotency_key"] for event in session.events() if event.type == "tool_started"]
        assert len(set(keys)) == len(keys)
        if not fenced:  # what the model reads then is something else, and so is what repeats
            assert (told(result), types(session), tools.ran) == (told(expected), log, whole.ran)


def speaker(tools: Tools) -> Any:
    """A function of six steps."""

    def agent(messages: Any, turn: Turn) -> Iterator[Any]:
        for number in range(1, 6):
            with turn.step(model="m") as step:
                step.usage = {"input_tokens": number}
            found = turn.tool("look", {"n": number * 10}, tools._run)
            yield {"role": "assistant", "content": f"{messages[-1]['content']}: {found}"}
        with turn.step(model="m"):
            yield "do"
            yield "ne"

    return agent


def test_a_function_is_killed_at_every_append(store: Store) -> None:
    whole, lives = Tools(), 1000
    with SessionRuntime(mortal(store, lives)) as runtime:
        runtime.create(id="whole")
        expected = runtime.send("whole", "go", agent=speaker(whole), idempotency_key="k")
        log = types(runtime.get("whole"))
        appends = lives - runtime.store.lives - 1  # type: ignore[attr-defined]
    for count in range(0, appends, EVERY):
        id, tools = f"s{count}", Tools()
        with SessionRuntime(store) as runtime:
            runtime.create(id=id)
        with SessionRuntime(mortal(store, count)) as runtime, pytest.raises(Killed):
            runtime.send(id, "go", agent=speaker(tools), idempotency_key="k")
        with SessionRuntime(store) as runtime:
            session = runtime.get(id)
            fenced = begun(session)
            if fenced:
                with pytest.raises(ToolAmbiguous) as raised:
                    runtime.send(id, "go", agent=speaker(tools), idempotency_key="k")
                assert raised.value.key == fenced[0]
                assert types(session).count("turn_completed") == 1
                continue
            result = runtime.send(id, "go", agent=speaker(tools), idempotency_key="k")
        assert (told(result), types(session), tools.ran) == (told(expected), log, whole.ran)
