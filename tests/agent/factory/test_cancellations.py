"""Loops with tools that are cancelled at each await, in the shapes of four services (10 §C12.1 a, §C16.4).

OpenAI's chat completions and Anthropic's messages come over a socket, through the SDKs; OpenAI's responses
and Gemini's contents from providers such as an application writes, since harnpy speaks neither. Issue 30,
line 5.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from harnpy import AgentDef, LoopFactory, Tool
from harnpy.adapters.openai_agents import items_of
from harnpy.formats.tool_messages import calls_of
from harnpy.llm.request import Request
from harnpy.session.aio import AsyncSessionRuntime
from harnpy.session.log import Session
from harnpy.session.view import replay
from tests.clock import SimulatedClock
from tests.counts import COUNT
from tests.guarantees.writers import is_paired
from tests.llm.test_real_calls import WireHost, environment
from tests.llm.wire import ANTHROPIC, OPENAI, Call, Say, Wire
from tests.session.rules.provider_rules import assert_body_accepted

from .agents import said

Dict = dict[str, Any]

#: The steps of the loop, by the tools that each calls; the first two run side by side.
STEPS = (("fast", "slow", "broken"), ("slow",), ("broken", "fast"))


async def slow(arguments: Any) -> str:
    for _ in range(3):
        await asyncio.sleep(0)
    return "slow"


async def broken(arguments: Any) -> str:
    await asyncio.sleep(0)
    raise ValueError("broken")


async def fast(arguments: Any) -> str:
    await asyncio.sleep(0)
    return "fast"


TOOLS = [
    Tool("fast", "", {}, fast, read_only=True),
    Tool("slow", "", {}, slow, read_only=True),
    Tool("broken", "", {}, broken),
]

_CAN = '[[capabilities.provider.acme]]\nmodel_match = "*"\nnative_tools = true\n'


class CancellingLoop(asyncio.SelectorEventLoop):
    """Cancels a task before the step number ``at`` of anything that runs on it from then on."""

    def __init__(self) -> None:
        super().__init__()
        self._victim: asyncio.Task[Any] | None = None
        self._left = 0

    def cancel_at(self, at: int, victim: asyncio.Task[Any]) -> None:
        self._victim, self._left = victim, at

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Any = None) -> asyncio.Handle:
        def step(*args: Any) -> None:
            self._left -= 1
            if not self._left and self._victim:
                self._victim.cancel()
            callback(*args)

        return super().call_soon(step, *args, context=context)


class Service:
    """A service, and what it was asked: ``check`` fails unless the bodies are paired as it requires."""

    def __init__(self, loops: LoopFactory, model: str, check: Callable[[], None]) -> None:
        self.loops, self.model, self.check = loops, model, check


@contextmanager
def on_the_wire(protocol: str, directory: Path, stream: bool) -> Iterator[Service]:
    calls = [
        Say("I see.", tuple(Call(name, id=f"call_{step}{n}") for n, name in enumerate(names)), thinking="Hm")
        for step, names in enumerate(STEPS)
    ]
    with Wire(protocol, *calls, Say("done")) as wire:

        def check() -> None:
            for received in wire.requests:
                assert_body_accepted(received.body["messages"], protocol)
                assert received.body["stream"] is stream

        (directory / "harn.toml").write_text(_CAN, "utf-8")
        host = WireHost(environment(wire, directory), SimulatedClock())
        host.cwd = lambda: str(directory)  # type: ignore[method-assign]
        yield Service(LoopFactory(tools=TOOLS, host=host), "acme/m-1", check)


class Translated:
    """A provider that gives the conversation to a service in that one's own shape."""

    def __init__(self, call_id: str, bodies: list[Any], body_of: Callable[[list[Dict]], Any]) -> None:
        self._call_id, self._bodies, self._body_of = call_id, bodies, body_of
        self._steps = iter(STEPS)

    async def complete(self, request: Request) -> Any:
        self._bodies.append(self._body_of(request.messages))
        for _ in range(3 if request.transport.stream else 1):
            await asyncio.sleep(0)
        step = len(self._bodies)
        calls = [
            {"id": self._call_id.format(step=step, number=number, name=name), "name": name, "arguments": {}}
            for number, name in enumerate(next(self._steps, ()))
        ]
        return said(request, "I see." if calls else "done", tool_calls=calls)


def responses_of(messages: list[Dict]) -> list[Dict]:
    return [item for message in messages for item in items_of(message)]


def check_responses(items: list[Dict]) -> None:
    """Each call has one output behind it, under its id, and each output a call."""
    waiting: list[str] = []
    called: set[str] = set()
    for item in items:
        if item.get("type") == "function_call":
            assert item["call_id"] not in called, "two calls of one id"
            called.add(item["call_id"])
            waiting.append(item["call_id"])
        elif item.get("type") == "function_call_output":
            assert item["call_id"] in waiting, (
                f"No tool call found for function call output {item['call_id']}"
            )
            waiting.remove(item["call_id"])
    assert not waiting, f"no output for the calls {waiting}"


def contents_of(messages: list[Dict]) -> list[Dict]:
    """Gemini's contents: results have the names of their calls, and are one turn of the user."""
    contents: list[Dict] = []
    names: dict[str, str] = {}
    for message in messages:
        role = "model" if message["role"] == "assistant" else "user"
        parts: list[Dict] = [{"text": message["content"]}] if message.get("content") else []
        for call in message.get("tool_calls", ()):
            function = call["function"]
            names[call["id"]] = function["name"]
            parts.append(
                {"functionCall": {"name": function["name"], "args": json.loads(function["arguments"])}}
            )
        if message["role"] == "tool":
            name = names[message["tool_call_id"]]
            parts = [{"functionResponse": {"name": name, "response": {"output": message["content"]}}}]
            if "functionResponse" in contents[-1]["parts"][-1]:
                contents[-1]["parts"] += parts
                continue
        contents.append({"role": role, "parts": parts})
    return contents


def named(content: Dict, kind: str) -> list[str]:
    return [part[kind]["name"] for part in content["parts"] if kind in part]


def check_contents(contents: list[Dict]) -> None:
    """The turn behind one with calls has as many responses, in their order, and nothing else."""
    calls: list[str] = []
    for content in contents:
        responses = [
            part["functionResponse"]["name"] for part in content["parts"] if "functionResponse" in part
        ]
        assert responses == calls, "as many function response parts as function call parts"
        assert not responses or len(responses) == len(content["parts"])
        calls = named(content, "functionCall")
        assert not calls or content["role"] == "model"
    assert not calls, "a function call turn comes before a function response turn"


def translated(
    call_id: str, body_of: Callable[[list[Dict]], list[Dict]], check: Callable[[list[Dict]], None]
) -> Any:
    @contextmanager
    def service(directory: Path, stream: bool) -> Iterator[Service]:
        bodies: list[Any] = []
        provider: Any = Translated(call_id, bodies, body_of)
        loops = LoopFactory(tools=TOOLS, providers={"mine": provider})
        yield Service(loops, "mine/m", lambda: [check(body) for body in bodies] and None)

    return service


SHAPES: dict[str, Callable[[Path, bool], Any]] = {
    "openai": lambda directory, stream: on_the_wire(OPENAI, directory, stream),
    "anthropic": lambda directory, stream: on_the_wire(ANTHROPIC, directory, stream),
    "responses": translated("fc_{step}_{number}", responses_of, check_responses),
    "gemini": translated("{name}", contents_of, check_contents),
}


async def sent(runtime: AsyncSessionRuntime, id: str, stream: bool) -> Any:
    """Send a prompt; return the result."""
    if not stream:
        return await runtime.send(id, "go")
    async with aclosing(runtime.stream(id, "go")) as events:
        return [event async for event in events][-1].result


async def cancelled_at(at: int, url: str, service: Service, stream: bool) -> bool:
    """Send, and cancel it before step ``at`` of the loop; check what is left. Return whether it was over."""
    options = {"tool_format": "native", "stream": stream}
    agent = AgentDef("a", system_prompt="Be brief.", model=service.model, options=options)
    id = f"s{at}"
    loop = asyncio.get_running_loop()
    assert isinstance(loop, CancellingLoop)
    async with AsyncSessionRuntime(url, agents=service.loops) as runtime:
        await runtime.create(agent, id=id)
        task = loop.create_task(sent(runtime, id, stream))
        loop.cancel_at(at, task)
        try:
            result = await task
        except asyncio.CancelledError:
            is_over = False
        else:
            is_over = True
            assert result.text.endswith("done")
        check(runtime.runtime.get(id))
        again = await runtime.send(id, "again")
        assert again.status == "completed"
        check(runtime.runtime.get(id))
        service.check()
    return is_over


def check(session: Session) -> None:
    """No turn and no call is open, each has one end, and nothing must be repaired for a request."""
    events = session.events()
    assert not session.view.open_turns
    begun, ended = (
        Counter(event.data["id"] for event in events if event.type == type)
        for type in ("tool_started", "tool_completed")
    )
    called = Counter(call.id for message in session.messages() for call in calls_of(message))
    assert begun <= ended == called
    assert is_paired(session.messages())
    assert session.window() == session.messages()
    assert replay(events).window.messages() == session.view.window.messages()


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("shape", SHAPES)
def test_cancelled_at_each_await(shape: str, stream: bool, tmp_path: Path) -> None:
    begin, step = 1 + COUNT.seed % COUNT.awaits_share, COUNT.awaits_share
    urls = ["memory:", f"sqlite:{tmp_path}/store.db", f"jsonl:{tmp_path}/store"][: COUNT.cancelled_stores]
    with asyncio.Runner(loop_factory=CancellingLoop) as runner:
        for url in urls:
            for at in count(begin, step):
                with SHAPES[shape](tmp_path, stream) as service:
                    if runner.run(cancelled_at(at, url, service, stream)):
                        break
            assert at > step
