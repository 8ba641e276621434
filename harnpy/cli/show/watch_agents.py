"""`harnpy run --watch-agents`: what the agents are doing, live on stderr.

The view is below the program's output: it is removed before the program writes to the terminal, and comes
back with the next event, below a finished line. When stderr is not a terminal, each agent is one line.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from harnpy.builtins.bridge.contexts import context_of
from harnpy.cli.show.agent_board import ACTING, ASKING, Agent, Board

if TYPE_CHECKING:
    from harnpy import Vm
    from harnpy.world import World

#: Lines of the view without an agent: the header, the sum, and the cursor's.
_FRAME = 3
_REFRESH_PER_SECOND = 8
_STYLES = {ASKING: "cyan", ACTING: "yellow", "done": "green"}


def watched(run: Callable[..., Any], world: World, console: Console | None = None) -> Callable[..., Any]:
    """``run(vm, …)`` with a view of its agents. Call it before the Vm is made, with the Vm's world."""
    view = View(world, console or Console(stderr=True))
    return lambda vm, *rest: view.run(run, vm, *rest)


class View:
    """The view on the console while a program runs, whose output goes through ``world``."""

    def __init__(self, world: World, console: Console) -> None:
        self._clock = world.clock
        self._streams = world.streams
        self._console = console
        self._is_live = console.is_terminal and not console.is_dumb_terminal
        self._live: Live | None = None
        self._within_line = False
        self._board: Board | None = None
        if self._is_live:
            world.streams.write_err = self._giving_way(world.streams.write_err)
            if world.streams.isatty("stdout"):
                world.streams.write_out = self._giving_way(world.streams.write_out)

    def run(self, program: Callable[..., Any], vm: Vm, *rest: Any) -> Any:
        """``program(vm, …)``, watched."""
        notify: dict[str, Any] = {"on_change": self._show} if self._is_live else {"on_end": self._say}
        board = Board(lambda: context_of(vm).sessions.ids, self._clock.monotonic, **notify)
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
        self._streams.write_err(f"[harn] agent {agent.name}: {_summary(agent)}\n")


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
    count = f"{len(agents)} {'agent' if len(agents) == 1 else 'agents'}"
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
    turns = f"{agent.turn} {'turn' if agent.turn == 1 else 'turns'}"
    tokens = f"{agent.input_tokens} in + {agent.output_tokens} out tokens"
    return f"{agent.status}, {turns}, {tokens}, ${agent.cost:.4f}, {agent.seconds(0.0):.1f} s"
