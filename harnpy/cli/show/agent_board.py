"""What the agents of a running program are doing, one row each, from the events that observers receive.

Agent events name their session; the events of the models' trace belong to the session that is being driven
when they come.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harnpy.llm.call import Models

_MINTED = re.compile(r"(?:(sub_agent|agent)_session_)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

ASKING, ACTING, FAILED = "asking", "acting", "failed"


@dataclass(slots=True)
class Agent:
    """``parent`` is the session of the agent it works for; ``turn`` counts from 1; ``tools`` are the names of
    those in flight, by call; times are in seconds."""

    name: str
    parent: str | None
    begun: float
    status: str = ASKING
    turn: int = 0
    tools: dict[str, str] = field(default_factory=dict)
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    ended: float | None = None

    def seconds(self, now: float) -> float:
        return (now if self.ended is None else self.ended) - self.begun


class Board:
    """``driven`` returns the ids of the sessions being driven, innermost last; ``on_end`` is called with each
    agent that has ended, ``on_change`` after every change."""

    def __init__(
        self,
        driven: Callable[[], list[str]],
        clock: Callable[[], float],
        on_end: Callable[[Agent], object] = lambda agent: None,
        on_change: Callable[[], object] = lambda: None,
    ) -> None:
        self.agents: dict[str, Agent] = {}
        self.clock = clock
        self._driven = driven
        self._on_end = on_end
        self._on_change = on_change
        self._cost: Callable[[], float] = lambda: 0.0
        self._charged = 0.0

    def listen(self, models: Models) -> None:
        """Hear of the calls of a program that begins."""
        self._cost, self._charged = lambda: models.trace.cost, 0.0
        models.trace.observers.append(self.hear_trace)

    def receive(self, event: dict[str, Any]) -> None:
        """An event of an agent."""
        id, type = event["session_id"], event["type"]
        if type == "turn_start":
            agent = self._working(id)
            agent.status, agent.turn = ASKING, event["iteration"] + 1
        elif type == "tool_call_update" and id in self.agents:
            tools, call = self.agents[id].tools, event["tool_call_id"]
            if event["status"] == "in_progress":
                tools[call] = printable(event["tool_name"])
            else:
                tools.pop(call, None)
        self._on_change()

    def hear_trace(self, event: dict[str, Any]) -> None:
        """An event of the trace."""
        cost, self._charged = self._cost() - self._charged, self._cost()
        driven = self._driven()
        agent = self.agents.get(driven[-1]) if driven else None
        if agent is None:
            return
        if event["type"] == "llm_call":
            agent.status = ACTING
            agent.input_tokens += event["input_tokens"]
            agent.output_tokens += event["output_tokens"]
            agent.cost += cost
        elif event["type"] == "loop_complete":
            self._end(agent, event["status"])
        self._on_change()

    def family(self) -> list[tuple[int, Agent]]:
        """All agents, those that work for one behind it, with how many they work for."""
        below: dict[str | None, list[str]] = {}
        for id, agent in list(self.agents.items()):
            below.setdefault(agent.parent, []).append(id)

        def walk(parent: str | None, depth: int) -> Iterator[tuple[int, Agent]]:
            for id in below.get(parent, ()):
                yield depth, self.agents[id]
                yield from walk(id, depth + 1)

        return list(walk(None, 0))

    def close(self) -> None:
        """The program is over: who hasn't come to an end failed, or was cut short."""
        for agent in self.agents.values():
            if agent.ended is None:
                self._end(agent, FAILED)

    def _working(self, id: str) -> Agent:
        """Return the agent of a session; one that had ended is running again, and keeps its account."""
        agent = self.agents.get(id)
        if agent is None:
            around = [driven for driven in self._driven() if driven in self.agents]
            agent = self.agents[id] = Agent(name_of(id), around[-1] if around else None, self.clock())
        elif agent.ended is not None:
            agent.begun, agent.ended = self.clock() - (agent.ended - agent.begun), None
        return agent

    def _end(self, agent: Agent, status: str) -> None:
        agent.status, agent.ended = status, self.clock()
        agent.tools.clear()
        self._on_end(agent)


def name_of(id: str) -> str:
    """A session's name: its given id, or the end of a minted one."""
    minted = _MINTED.fullmatch(id)
    if minted is None:
        return printable(id)
    return f"{(minted[1] or 'session').replace('_', '-')} …{id[-6:]}"


def printable(text: str) -> str:
    """The text without what could steer a terminal."""
    return "".join(c if c.isprintable() else "�" for c in text)
