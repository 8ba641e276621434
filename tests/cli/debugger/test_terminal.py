"""The debugger on a real (pseudo) terminal. Spec: 09 §15.5."""

from __future__ import annotations

from pathlib import Path


def test_a_conversation(terminal, tmp_path: Path) -> None:
    (tmp_path / "x.harn").write_text("let a = 1\nlet b = a + 1\nprintln(b)\n", encoding="utf-8")
    debug = terminal("debug", "x.harn")
    debug.expect("stopped at x.harn:1, the start")
    debug.ask("n", "stopped at x.harn:2, a step\n")
    debug.ask("p a + 40", "41\n")
    debug.expect("〉")
    debug.type("\x03")
    debug.expect("(Ctrl+D or q to leave)")
    debug.ask("c", "2\n")
    debug.expect("the program has ended with status 0")
    debug.rest()
    assert debug.process.returncode == 0


def test_ctrl_c_stops_a_loop_that_never_waits(terminal, tmp_path: Path) -> None:
    program = 'var n = 0\nwhile true { if n == 0 { println("going") }; n = n + 1 }\n'
    (tmp_path / "x.harn").write_text(program, encoding="utf-8")
    debug = terminal("debug", "x.harn")
    debug.ask("c", "going\n")
    debug.type("\x03")
    debug.expect("stopped at x.harn:2, a pause")
    debug.enter("q")
    debug.rest()
    assert debug.process.returncode == 124


def test_ctrl_c_stops_a_program_that_waits(terminal, tmp_path: Path) -> None:
    # The task that is awaited comes after the one that sleeps, so that one sleeps when the program goes on.
    program = 'spawn { sleep(1h) }\nawait(spawn { 1 })\nprintln("going")\nsleep(1h)\n'
    (tmp_path / "x.harn").write_text(program, encoding="utf-8")
    debug = terminal("debug", "x.harn")
    debug.ask("c", "going\n")
    debug.type("\x03")
    debug.expect("stopped at x.harn:4, a pause")
    debug.ask("t", "  2  task_root:spawn:1  <task> at x.harn:1\n")
    debug.expect("〉")
    debug.type("\x04")
    debug.rest()
    assert debug.process.returncode == 124
