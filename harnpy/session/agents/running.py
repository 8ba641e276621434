"""Calling agents: functions and generators, sync and async, and objects with ``run``. Spec: 10 §C7.1."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import aclosing, closing
from types import FunctionType
from typing import TYPE_CHECKING, Any

from harnpy.session.errors import InvalidArgument
from harnpy.storage.errors import Unsupported

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from harnpy.session.agents.turn import Turn


def name_of_agent(agent: Any) -> str:
    """Return what an agent is called."""
    return str(getattr(agent, "name", None) or getattr(agent, "__name__", type(agent).__name__))


def check_agent(agent: Any, session_id: str) -> None:
    """Raise `Unsupported` where there is no agent, `InvalidArgument` for what is none."""
    if agent is None:
        raise Unsupported(f"session '{session_id}' has no agent: pass agent= or create it with a definition")
    if not callable(agent) and not callable(getattr(agent, "run", None)):
        kind = type(agent).__name__
        raise InvalidArgument(f"an agent is a function or has a method `run`, got {kind}", session_id)


def run_agent(agent: Any, turn: Turn) -> None:
    """Run an agent on its turn: whatever it gives, the turn gets."""
    call = turn.session.caller
    run = getattr(agent, "run", None)
    if callable(run):
        found = call(run, turn)
    elif _takes_turn(agent):
        found = call(agent, turn.messages, turn)
    else:
        found = call(agent, turn.messages)
    if inspect.isgenerator(found):
        with closing(found):
            for item in found:
                seen = turn.take(item)
                if seen is not None:
                    seen.result()
                turn.check()
    elif inspect.isasyncgen(found):
        call(_drain, turn, found)
    else:
        turn.answer(found)


async def _drain(turn: Turn, items: AsyncGenerator[Any, None]) -> None:
    async with aclosing(items):
        async for item in items:
            seen = turn.take(item)
            if seen is not None:
                await asyncio.wrap_future(seen)
            turn.check()


def _takes_turn(agent: Any) -> bool:
    """Whether a function wants a second argument: one without a default, or called ``turn``."""
    if type(agent) is FunctionType and not agent.__dict__:  # not wrapped: it says so itself, and at once
        names = agent.__code__.co_varnames[: agent.__code__.co_argcount]
        defaults = len(agent.__defaults__ or ())
        return len(names) > 1 and (len(names) - defaults > 1 or names[1] == "turn")
    try:
        parameters = inspect.signature(agent).parameters.values()
    except ValueError:  # built in, and tells nothing
        return False
    positional = [
        each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    return len(positional) > 1 and (
        positional[1].default is inspect.Parameter.empty or positional[1].name == "turn"
    )
