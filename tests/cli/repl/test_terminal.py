"""The REPL and colours on a real (pseudo) terminal. Spec: 09 §1.4, §5."""

from __future__ import annotations

from pathlib import Path

from tests.support import PATIENCE


def test_a_conversation(terminal) -> None:
    repl = terminal("repl")
    repl.expect("Type expressions or statements, :help for commands. Ctrl+D or :quit to exit.")
    repl.enter("fn twice(n) {")
    repl.expect(":::")
    repl.submit("return n * 2 }")
    repl.ask("twice(21)", "42\n")
    repl.enter('let s = agent_session_open("talk")')
    repl.ask('agent_session_inject(s, {role: "user", content: "hi"})', "nil\n")
    repl.enter("let b = agent_session_fork(s)")
    repl.ask("throw agent_session_length(b)", "Error: Thrown: 1\n")
    repl.expect("| throw agent_session_length(b)\n")
    repl.expect("| ^^^^^\n")
    repl.ask("agent_session_length(b) + 1", "2\n")
    repl.ask('print("no end of line")', "no end of line\n")
    repl.expect("harn〉")
    repl.type("\x04")
    repl.expect("Goodbye!")
    assert repl.rest().strip() == ""
    assert repl.process.returncode == 0


def test_completion_knows_builtins_and_live_names(terminal) -> None:
    repl = terminal("repl")
    repl.enter("let my_long_name = 7")
    repl.complete("my_lo", "my_long_name")
    repl.type("\r")
    repl.expect("\n7\n")
    repl.complete("type_o", "type_of")
    repl.submit("(1)")
    repl.expect("int\n")


def test_completion_knows_what_a_value_has(terminal) -> None:
    repl = terminal("repl")
    repl.enter('let who = {role: "writer", address: {street: "Elm"}}')
    repl.complete("who.ro", "who.role")
    repl.type("\r")
    repl.expect("\nwriter\n")
    repl.complete("who.address.st", "who.address.street")


def test_history_is_kept_for_the_next_session(terminal, tmp_path: Path) -> None:
    first = terminal("repl")
    first.ask("40 + 2", "42\n")
    first.expect("harn〉")
    first.type("\x04")
    first.expect("Goodbye!")
    first.rest()
    assert "40 + 2" in (tmp_path / ".harn" / "repl_history").read_text(encoding="utf-8")
    second = terminal("repl")
    second.expect("harn〉")
    second.type("\x1b[A\r")
    second.expect("42\n")


def test_an_interrupted_input_costs_only_itself(terminal) -> None:
    repl = terminal("repl")
    repl.ask('if true { println("going"); while true { } }', "going\n")
    repl.type("\x03")
    repl.expect("Error: interrupted\n")
    repl.ask("1 + 1", "2\n")


def test_an_interrupt_at_the_prompt_clears_what_is_typed(terminal) -> None:
    repl = terminal("repl")
    repl.expect("harn〉")
    repl.type("40 +")
    repl.expect("40 +")
    repl.type("\x03")
    repl.enter("1 + 1")
    repl.expect("2\n")
    repl.expect("harn〉")
    repl.type("\x03")
    repl.expect("(Ctrl+D or :quit to exit)")
    repl.ask("2 + 2", "4\n")


def test_sigterm_ends_the_conversation(terminal) -> None:
    repl = terminal("repl")
    repl.ask('if true { println("going"); while true { } }', "going\n")
    repl.process.terminate()
    assert repl.process.wait(timeout=PATIENCE) == 124


def test_diagnostics_have_colour_on_a_terminal(terminal, tmp_path: Path) -> None:
    (tmp_path / "bad.harn").write_text("let a =", encoding="utf-8")
    assert "\x1b[1;31merror\x1b[0m" in terminal("run", "bad.harn").rest()
    assert "\x1b" not in terminal("run", "bad.harn", NO_COLOR="1").rest()


def test_the_report_has_colour_on_a_terminal(terminal, tmp_path: Path) -> None:
    (tmp_path / "x.harn").write_text("pipeline test_a(t) { 1 }", encoding="utf-8")
    assert "\x1b[32mPASS\x1b[0m" in terminal("test", "x.harn").rest()
    assert "\x1b" not in terminal("test", "x.harn", NO_COLOR="1").rest()


def test_a_long_run_shows_its_progress(terminal, tmp_path: Path) -> None:
    suite = tmp_path / "conformance"
    suite.mkdir()
    waiting = f'while shell("cat {tmp_path}/seen").status != 0 {{ sleep(20) }}'
    for name, text in (("a", ""), ("b", waiting), ("c", "")):
        (suite / f"{name}.harn").write_text(text, encoding="utf-8")
        (suite / f"{name}.expected").write_text("", encoding="utf-8")
    run = terminal("test", "conformance")
    run.expect("1/3")
    (tmp_path / "seen").touch()
    assert "3 passed, 0 failed, 3 total" in run.rest()
