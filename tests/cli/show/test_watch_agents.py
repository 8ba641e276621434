"""`harnpy run --watch-agents`: what the board knows, what stands on a terminal, what elsewhere."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from harnpy import Vm
from harnpy.cli.watch_agents import Board, name_of, table, watched
from tests.clock import SimulatedClock
from tests.support import PATIENCE, ROOT, Command
from tests.worlds import OwnWorld

TEAM = """
fn registry(name) {
  return tool_define(tool_registry(), "look", "Looks.", {
    parameters: {q: "string"},
    handler: { args ->
      show(name)
      return "found"
    },
  })
}

pipeline main(task) {
  let call = "<tool_call>\\nlook({ q: \\"a\\" })\\n</tool_call>"
  let end = "<user_response>ok</user_response>\\n<done>##DONE##</done>"
  llm_mock({match: "lead\\nuser", text: call, input_tokens: 50, output_tokens: 7})
  llm_mock({match: "*", text: end, input_tokens: 9, output_tokens: 2})
  let more = {provider: "mock", persistent: true, tool_format: "text"}
  println("before")
  agent_loop("lead", nil, more + {session_id: "lead", tools: registry("lead")})
  print("be")
  println("tween")
  sub_agent_run("help", {provider: "mock", session_id: "helper"})
  agent_loop("x", nil, more + {session_id: "broke", budget: {max_output_tokens: 1}})
  println("after")
}
"""


class Screen(OwnWorld):
    """A terminal, or none, and a clock that the test moves."""

    def __init__(self, terminal: bool = True) -> None:
        self.screen = StringIO()
        self.time = SimulatedClock(tick=0)
        self._terminal = terminal
        super().__init__(self.screen.write, self.screen.write, clock=self.time)

    def isatty(self, stream: str) -> bool:
        return self._terminal


def watch(host: Screen, source: str, console: Console, show: Any = lambda name: None) -> Any:
    run = watched(lambda vm: vm.run_source(source), host, console)
    vm = Vm(world=host)
    vm.register("show(name: string) -> nil", show)
    return run(vm)


def rows(board: Board) -> list[list[str]]:
    console = Console(file=StringIO(), width=100)
    console.print(table(board, None))
    file: Any = console.file
    return [line.split() for line in file.getvalue().splitlines()]


# The board.


def board_of(driven: list[str]) -> tuple[Board, Screen]:
    world = Screen()
    return Board(lambda: driven, world.time.monotonic), world


def test_a_row_follows_its_agent() -> None:
    driven = ["lead"]
    board, world = board_of(driven)
    board.receive({"type": "turn_start", "session_id": "lead", "iteration": 0})
    world.time.passed += 2
    assert rows(board)[1] == ["lead", "asking", "1", "0", "0", "$0.0000", "2.0", "s"]
    board.hear_trace({"type": "llm_call", "input_tokens": 1200, "output_tokens": 34})
    call = {"type": "tool_call_update", "session_id": "lead", "tool_call_id": "t1", "tool_name": "look"}
    board.receive({**call, "status": "in_progress"})
    assert rows(board)[1] == ["lead", "acting", "1", "look", "1,200", "34", "$0.0000", "2.0", "s"]
    board.receive({**call, "status": "completed"})
    driven.append("helper")
    board.receive({"type": "turn_start", "session_id": "helper", "iteration": 0})
    board.hear_trace({"type": "loop_complete", "status": "stuck"})
    driven.pop()
    board.receive({"type": "turn_start", "session_id": "lead", "iteration": 1})
    world.time.passed += 60
    assert rows(board)[1:] == [
        ["lead", "asking", "2", "1,200", "34", "$0.0000", "1:02"],
        ["helper", "stuck", "1", "0", "0", "$0.0000", "0.0", "s"],
        ["2", "agents,", "1", "at", "work", "1,200", "34", "$0.0000", "1:02"],
    ]


def test_who_works_for_an_agent_stands_below_it() -> None:
    driven: list[str] = []
    board, _ = board_of(driven)
    for path in ("a", "a a1", "b", "b b1", "a a1 a11"):
        driven[:] = path.split()
        id = driven[-1]
        board.receive({"type": "turn_start", "session_id": id, "iteration": 0})
    assert [(depth, agent.name) for depth, agent in board.family()] == [
        (0, "a"),
        (1, "a1"),
        (2, "a11"),
        (0, "b"),
        (1, "b1"),
    ]


def test_an_agent_that_works_again_goes_on_with_its_account() -> None:
    board, world = board_of(["a"])
    for _ in range(2):
        board.receive({"type": "turn_start", "session_id": "a", "iteration": 0})
        world.time.passed += 3
        board.hear_trace({"type": "llm_call", "input_tokens": 1, "output_tokens": 1})
        board.hear_trace({"type": "loop_complete", "status": "done"})
        world.time.passed += 100
    assert rows(board)[1] == ["a", "done", "1", "2", "2", "$0.0000", "6.0", "s"]


def test_calls_outside_agents_and_events_of_others_are_let_be() -> None:
    board, _ = board_of([])
    board.hear_trace({"type": "llm_call", "input_tokens": 1, "output_tokens": 1})
    board.receive({"type": "agent_session_closed", "session_id": "x"})
    assert board.agents == {}


@pytest.mark.parametrize(
    ("id", "name"),
    [
        ("researcher", "researcher"),
        ("agent_session_01932b5e-0000-7000-8000-0000deadbeef", "agent …adbeef"),
        ("sub_agent_session_01932b5e-0000-7000-8000-0000deadbeef", "sub-agent …adbeef"),
        ("01932b5e-0000-7000-8000-0000deadbeef", "session …adbeef"),
        ("\x1b[31mred\n[bold]x", "�[31mred�[bold]x"),
    ],
)
def test_names(id: str, name: str) -> None:
    assert name_of(id) == name


def test_who_works_is_shown_when_there_is_no_room_for_all() -> None:
    driven = [""]
    board, world = board_of(driven)
    for n in range(30):
        driven[0] = f"agent-{n:02d}"
        board.receive({"type": "turn_start", "session_id": driven[0], "iteration": 0})
        if n != 3:
            world.time.passed += 1
            board.hear_trace({"type": "loop_complete", "status": "done"})
    console = Console(file=StringIO(), width=100)
    console.print(table(board, 3))
    file: Any = console.file
    shown = [line.split()[0] for line in file.getvalue().splitlines()]
    assert shown == ["agent", "agent-03", "agent-28", "agent-29", "30"]


# The view.


def test_nothing_of_the_program_changes(harnpy: Command, tmp_path: Path) -> None:
    (tmp_path / "team.harn").write_text(TEAM.replace("show(name)", "nil"), encoding="utf-8")
    plain = harnpy("run", "team.harn")
    seen = harnpy("run", "--watch-agents", "team.harn")
    assert (seen.stdout, seen.returncode) == (plain.stdout, plain.returncode)
    assert (plain.stderr, plain.stdout) == ("", "before\nbetween\nafter\n")
    assert [re.sub(r"[\d.]+ s$", "T s", line) for line in seen.stderr.splitlines()] == [
        "[harn] agent lead: done, 2 turns, 59 in + 9 out tokens, $0.0003, T s",
        "[harn] agent helper: done, 1 turn, 9 in + 2 out tokens, $0.0001, T s",
        "[harn] agent broke: budget_exhausted, 1 turn, 0 in + 0 out tokens, $0.0000, T s",
    ]


def test_a_loop_that_fails_is_told_of_at_the_end() -> None:
    host = Screen(terminal=False)
    source = """
    let options = {provider: "mock", session_id: "s", persistent: true}
    try { agent_loop("x", nil, options + {budget: {max_output_tokens: "no"}}) } catch (e) { nil }
    llm_mock({error: {category: "auth", message: "no"}})
    try { agent_loop("x", nil, options) } catch (e) { println(e.category) }
    """
    watch(host, source, Console(file=StringIO()))
    assert host.screen.getvalue().splitlines()[-1].startswith("[harn] agent s: failed, 1 turn, ")


def test_a_terminal_shows_the_agents_while_they_work() -> None:
    host = Screen()
    console = Console(file=host.screen, force_terminal=True, width=100, height=20)
    seen: dict[str, str] = {}
    watch(host, TEAM, console, lambda name: seen.update({name: host.screen.getvalue()}))
    lead = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen["lead"])
    assert "before\n" in lead
    assert "lead" in lead.partition("before\n")[2]
    end = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", host.screen.getvalue())
    final = end.partition("after\n")[2]
    assert [line.split()[:3] for line in final.splitlines() if line.strip()][-4:] == [
        ["lead", "done", "2"],
        ["helper", "done", "1"],
        ["broke", "budget_exhausted", "1"],
        ["3", "agents", "68"],
    ]


def test_the_view_never_cuts_a_line_of_the_program() -> None:
    host = Screen()
    console = Console(file=host.screen, force_terminal=True, width=100, height=20)
    watch(host, TEAM, console)
    assert "between\n" in host.screen.getvalue()


def test_without_agents_there_is_no_view() -> None:
    host = Screen()
    watch(host, 'println("hi")', Console(file=host.screen, force_terminal=True))
    assert host.screen.getvalue() == "hi\n"


def test_stdout_stays_clean_when_only_stderr_is_a_terminal(tmp_path: Path) -> None:
    waiting = 'while shell("cat seen").status != 0 { sleep(20) }'
    (tmp_path / "team.harn").write_text(TEAM.replace("show(name)", waiting), encoding="utf-8")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "harnpy", "run", "--watch-agents", "team.harn"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(theirs)
    screen = b""
    while select.select([ours], [], [], PATIENCE)[0]:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        screen += piece
        if b"look" in screen:
            (tmp_path / "seen").touch()
    out, _ = process.communicate(timeout=PATIENCE)
    os.close(ours)
    assert (out, process.returncode) == (b"before\nbetween\nafter\n", 0)
    assert screen.count(b"\x1b[?25l") == screen.count(b"\x1b[?25h") > 0, "the cursor is back"
