"""Definitions, loops and providers for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from harnpy import AgentDef, LoopFactory, Tool, tool
from harnpy.llm.reply import Reply
from harnpy.llm.request import Request
from harnpy.session import SessionRuntime

HELPER = AgentDef("helper", system_prompt="Be brief.", model="mock")


@tool(read_only=True)
def weather(city: str, days: int = 1) -> str:
    """The weather in a city.

    Args:
        city: Where.
        days: How many days ahead.
    """
    return f"sunny in {city}, {days}"


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """A mocked reply that calls a tool."""
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


def loops_with(*replies: dict[str, Any], tools: Iterable[Any] = (weather,), **options: Any) -> LoopFactory:
    """Loops whose mock provider has these replies."""
    loops = LoopFactory(tools=tools, **options)
    for reply in replies:
        loops.mock.add(reply)
    return loops


def runtime_with(
    *replies: dict[str, Any], agent: AgentDef = HELPER, url: str = "memory:", **options: Any
) -> SessionRuntime:
    """A runtime with a session ``s`` of the agent."""
    runtime = SessionRuntime(url, agents=loops_with(*replies, **options))
    runtime.create(agent, id="s")
    return runtime


class Provider:
    """Answers calls by a function, sync or async."""

    def __init__(self, answer: Callable[[Request], Any]) -> None:
        self.complete = answer


def said(request: Request, text: str = "", **fields: Any) -> Reply:
    return Reply(
        text=text,
        model=request.model,
        provider=request.provider,
        requested_model=request.model,
        input_tokens=10,
        output_tokens=2,
        **fields,
    )


def types(runtime: SessionRuntime) -> list[str]:
    return [event.type for event in runtime.get("s").events()]


def texts(runtime: SessionRuntime) -> list[str]:
    return [message["content"] for message in runtime.get("s").messages()]


__all__ = ["Tool"]
