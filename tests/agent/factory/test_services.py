"""Definitions that ask services: over a socket, through the SDKs, in both faces (10 §C7.1)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from harnpy import AgentDef, LoopFactory
from harnpy.llm.errors import CallError
from harnpy.session import SessionRuntime
from harnpy.session.aio import AsyncSessionRuntime
from tests.clock import SimulatedClock
from tests.llm.test_real_calls import WireHost, environment, program
from tests.llm.wire import OPENAI, Call, Fail, Say, Wire

from .agents import types, weather

AGENT = AgentDef(
    "a", system_prompt="Be brief.", model="acme/m-1", options={"tool_format": "native"}, tools=()
)


def loops_on(wire: Wire, directory: Path) -> LoopFactory:
    host = WireHost(environment(wire, directory), SimulatedClock())
    return LoopFactory(tools=[weather], host=host)


def runtime_on(wire: Wire, directory: Path) -> SessionRuntime:
    runtime = SessionRuntime("memory:", agents=loops_on(wire, directory))
    runtime.create(AGENT, id="s")
    return runtime


def test_an_answer_is_shown_as_it_comes(tmp_path: Path) -> None:
    with Wire(OPENAI, Say("Hello, world")) as wire:
        with runtime_on(wire, tmp_path) as runtime:
            events = list(runtime.stream("s", "hi"))
            again: list[str] = []
            runtime.send("s", "hi", stream=again.append)
        assert [event.text for event in events[:-1]] == again == ["Hell", "o, w", "orld"]
        assert events[-1].result is not None
        assert (events[-1].result.text, events[-1].result.usage["total_tokens"]) == ("Hello, world", 18)
        assert wire.connections == 1  # which outlives the turn


def test_tools_in_text_format(tmp_path: Path) -> None:
    asks = '<tool_call>weather({ city: "Rome", days: 2 })</tool_call>'
    answers = (Say(asks), Fail(503), Say("<user_response>Sunny.</user_response>\n<done>##DONE##</done>"))
    with Wire(OPENAI, *answers) as wire:
        with SessionRuntime("memory:", agents=loops_on(wire, tmp_path)) as runtime:
            runtime.create(AgentDef("a", model="acme/m-1", options={"tool_format": "text"}), id="s")
            shown: list[str] = []
            result = runtime.send("s", "hi", stream=shown.append)
            assert (result.text, result.steps, "".join(shown)) == ("Sunny.", 2, "Sunny.")
            assert len(shown) > 1
            assert "sunny in Rome, 2" in runtime.get("s").messages()[2]["content"]
            retried = [
                event.data for event in runtime.get("s").events() if event.type == "escalation_retried"
            ]
            assert [(each["scope"], each["agent_id"]) for each in retried] == [("model", "a")]
        assert "declare function weather" in wire.requests[0].body["messages"][0]["content"]


def test_tools_go_natively_to_a_server_of_ones_own(tmp_path: Path) -> None:
    with Wire(OPENAI, Say(calls=(Call("weather", '{"city": "Rome"}'),)), Say("Sunny.")) as wire:
        with SessionRuntime("memory:", agents=loops_on(wire, tmp_path)) as runtime:
            runtime.create(AgentDef("a", model="acme/m-1"), id="s")
            assert [event.text for event in runtime.stream("s", "hi")][:-1] == ["Sunn", "y."]
        assert wire.requests[0].body["tools"][0]["function"]["name"] == "weather"


def test_a_programs_loop_has_the_same_default(tmp_path: Path) -> None:
    with Wire(OPENAI, Say("Sunny.")) as wire:
        loop = """
            let tools = tool_define(tool_registry(), "look", "", {parameters: {}, handler: { args -> "" }})
            println(agent_loop("hi", nil, {model: "m-1", tools: tools}).tools.mode)
            agent_loop("hi", nil, {model: "m-1", tools: tools, tool_format: "text"})
        """
        assert program(wire, tmp_path, loop) == "native\n"
        assert ["tools" in request.body for request in wire.requests] == [True, False]


def test_a_server_that_refuses_tools_says_what_to_do(tmp_path: Path) -> None:
    with Wire(OPENAI, Fail(400, "m-1 does not support tools")) as wire:
        runtime = SessionRuntime("memory:", agents=loops_on(wire, tmp_path))
        runtime.create(AgentDef("a", model="acme/m-1"), id="s")
        with runtime, pytest.raises(CallError) as caught:
            runtime.send("s", "hi")
    assert 'tool_format: "text"' in caught.value.message
    assert "harn.toml:\n\n[[capabilities.provider.acme]]" in caught.value.message
    assert "native_tools = false" in caught.value.message


def test_one_factory_in_both_faces(tmp_path: Path) -> None:
    with Wire(OPENAI, Say("hi")) as wire:
        loops = loops_on(wire, tmp_path)
        with SessionRuntime("memory:", agents=loops) as runtime:
            runtime.create(AGENT, id="s")

            async def main() -> list[str]:
                face = AsyncSessionRuntime("memory:", agents=loops)
                await face.create(AGENT, id="t")
                sent = [face.send("t", "one"), face.send("t", "two")]
                found = [result.text for result in await asyncio.gather(*sent)]
                found.append(runtime.send("s", "three").text)
                await face.close()
                return found

            for _ in range(2):
                assert asyncio.run(main()) == ["hi", "hi", "hi"]
        assert wire.connections == 3  # one of the runtime's loop, one of each run


def test_a_service_that_refuses(tmp_path: Path) -> None:
    answers = (Fail(401, "bad key {key}"), Say("fine"))
    with Wire(OPENAI, *answers) as wire, runtime_on(wire, tmp_path) as runtime:
        with pytest.raises(CallError):
            runtime.send("s", "hi")
        assert types(runtime)[-2:] == ["step_completed", "turn_completed"]
        assert runtime.send("s", None).text == "fine"
