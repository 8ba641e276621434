"""`harnpy run --watch-agents`: what the agents are doing, live on stderr.

The view is below the program's output: it is removed before the program writes to the terminal, and comes
back with the next event, below a finished line. When stderr is not a terminal, each agent is one line.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from harnpy.builtins.bridge.contexts import context_of
from harnpy.cli.console import counted

if TYPE_CHECKING:
    from harnpy import Vm
    from harnpy.llm.call import Models
    from harnpy.world import World

# What the agents of a running program are doing, one row each, from the events that observers receive.
#
# Agent events name their session; the events of the models' trace belong to the session that is being driven
# when they come.


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


#: Lines of the view without an agent: the header, the sum, and the cursor's.
_FRAME = 3
_REFRESH_PER_SECOND = 8
_STYLES = {ASKING: "cyan", ACTING: "yellow", "done": "green"}


def watched(run: Callable[..., Any], world: World, console: Console | None = None) -> Callable[..., Any]:
    """``run(vm, …)`` with a view of its agents. Call it before the Vm is made, with the Vm's world."""
    view = View(world, Console(stderr=True) if console is None else console)
    return lambda vm, *rest: view.run(run, vm, *rest)


class View:
    """The view on the console while a program runs, whose output goes through ``world``."""

    def __init__(self, world: World, console: Console) -> None:
        self._console = console
        self._is_live = console.is_terminal and not console.is_dumb_terminal
        self._live: Live | None = None
        self._within_line = False
        self._board: Board | None = None
        self._write: Callable[[str], object] | None = None
        if self._is_live:
            world.streams.write_err = self._giving_way(world.streams.write_err)
            if world.streams.isatty("stdout"):
                world.streams.write_out = self._giving_way(world.streams.write_out)

    def run(self, program: Callable[..., Any], vm: Vm, *rest: Any) -> Any:
        """``program(vm, …)``, watched."""
        notify: dict[str, Any] = {"on_change": self._show} if self._is_live else {"on_end": self._say}
        # Through the Vm's own world: a program that is recorded has the same view in a replay.
        clock, self._write = vm.unguarded.clock, vm.unguarded.streams.write_err
        board = Board(lambda: context_of(vm).sessions.ids, clock.monotonic, **notify)
        self._board = board
        vm.sessions.observers.append(board.receive)
        vm.settings.on_models.append(board.listen)
        try:
            return program(vm, *rest)
        finally:
            self._hide()
            board.close()
            if self._is_live and board.agents:
                sys.stdout.flush()
                self._console.print(table(board, None))

    # --- a terminal -------------------------------------------------------------------------------

    def _giving_way(self, write: Callable[[str], object]) -> Callable[[str], object]:
        def write_above(text: str) -> None:
            self._hide()
            write(text)
            self._within_line = not text.endswith("\n") if text else self._within_line

        return write_above

    def _show(self) -> None:
        if self._live is not None or self._within_line or not self._board or not self._board.agents:
            return
        sys.stdout.flush()
        self._live = Live(
            console=self._console,
            get_renderable=self._table,
            refresh_per_second=_REFRESH_PER_SECOND,
            transient=True,
            redirect_stdout=False,  # rich would send the program's output to stderr
            redirect_stderr=False,
        )
        self._live.start(refresh=True)

    def _hide(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _table(self) -> Table:
        assert self._board
        return table(self._board, self._console.height - _FRAME)

    # --- anything else ----------------------------------------------------------------------------

    def _say(self, agent: Agent) -> None:
        assert self._write is not None
        self._write(f"[harn] agent {agent.name}: {_summary(agent)}\n")


def table(board: Board, limit: int | None) -> Table:
    """A row for each agent, running ones first when there are more than ``limit``."""
    view = Table(box=None, pad_edge=False, header_style="dim")
    view.add_column("agent", overflow="ellipsis", no_wrap=True)
    view.add_column("status", no_wrap=True)
    view.add_column("turn", justify="right", no_wrap=True)
    view.add_column("tool", overflow="ellipsis", no_wrap=True)
    for head in ("in", "out", "cost", "time"):
        view.add_column(head, justify="right", no_wrap=True)
    now, family = board.clock(), board.family()
    agents = [agent for _, agent in family]
    shown = _fitting(agents, limit)
    for depth, agent in family:
        if id(agent) not in shown:
            continue
        view.add_row(
            Text("  " * depth + agent.name),
            Text(agent.status, style=_STYLES.get(agent.status, "red")),
            str(agent.turn),
            Text(", ".join(list(agent.tools.values()))),
            *_account(agent),
            _time(agent.seconds(now)),
        )
    working = sum(agent.ended is None for agent in agents)
    count = counted(len(agents), "agent")
    said = f"{count}, {working} at work" if working else count
    view.add_row(Text(said), "", "", "", *_account(*agents), _time(_span(agents, now)), style="dim")
    return view


def _fitting(agents: list[Agent], limit: int | None) -> set[int]:
    """The identities of the agents that fit."""
    first = sorted(agents, key=lambda agent: (agent.ended is not None, -(agent.ended or 0)))
    return {id(agent) for agent in first[: None if limit is None else max(limit, 0)]}


def _account(*agents: Agent) -> tuple[str, str, str]:
    asked = sum(agent.input_tokens for agent in agents)
    answered = sum(agent.output_tokens for agent in agents)
    return f"{asked:,}", f"{answered:,}", f"${sum(agent.cost for agent in agents):.4f}"


def _span(agents: list[Agent], now: float) -> float:
    """From the first beginning to the last end."""
    if not agents:
        return 0.0
    ends = (now if agent.ended is None else agent.ended for agent in agents)
    return max(ends) - min(agent.begun for agent in agents)


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def _summary(agent: Agent) -> str:
    turns = counted(agent.turn, "turn")
    tokens = f"{agent.input_tokens} in + {agent.output_tokens} out tokens"
    return f"{agent.status}, {turns}, {tokens}, ${agent.cost:.4f}, {agent.seconds(0.0):.1f} s"
