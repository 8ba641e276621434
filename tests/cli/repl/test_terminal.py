"""The REPL and colours on a real (pseudo) terminal. Spec: 09 §1.4, §5."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import PATIENCE, ROOT

_ESCAPES = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|[=>]|\][^\x07]*\x07)")


def _at_terminal(slave: int) -> None:
    """Ctrl+C becomes a signal that counts, even where the tests run as a shell's background job."""
    os.login_tty(slave)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Terminal:
    """A `harnpy` process on a pseudo-terminal; `seen` is everything it has shown."""

    def __init__(self, *args: str, cwd: Path, **env: str) -> None:
        self.master, slave = pty.openpty()
        settings = {"PYTHONPATH": str(ROOT), "HOME": str(cwd), "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
        inherited = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "harnpy", *args],
            cwd=cwd,
            env=inherited | settings | env,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            preexec_fn=lambda: _at_terminal(slave),
        )
        os.close(slave)
        self.seen = ""

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def submit(self, line: str) -> None:
        """Type a line at the prompt and wait until it was taken: what is typed earlier goes astray."""
        self.type(line + "\r")
        self.expect(line + "\n")

    def enter(self, line: str) -> None:
        """Submit a line at the next prompt."""
        self.expect("harn〉")
        self.submit(line)

    def ask(self, line: str, answer: str) -> None:
        """Submit a line at the next prompt and wait for what it shows."""
        self.enter(line)
        self.expect(answer)

    def complete(self, start: str, name: str) -> None:
        """Type the beginning of a name at the next prompt and wait until it is complete."""
        self.expect("harn〉")
        self.type(start + "\t")
        self.expect(name)

    def expect(self, text: str, seconds: float = PATIENCE) -> None:
        """Wait until `text` shows after what was expected before; colours and movements don't count."""
        deadline = time.monotonic() + seconds
        while text not in self.plain:
            left = deadline - time.monotonic()
            assert left > 0, f"{text!r} never came; the terminal shows:\n{self.plain}"
            assert self._read(left), f"the process ended before {text!r}:\n{self.plain}"
        self._forget(text)

    @property
    def plain(self) -> str:
        return _ESCAPES.sub("", self.seen).replace("\r", "")

    def rest(self) -> str:
        """All that is still to come, and the process's end."""
        while self._read(PATIENCE):
            pass
        self.process.wait(timeout=PATIENCE)
        return self.seen

    def _forget(self, text: str) -> None:
        self.seen = self.plain.partition(text)[2]

    def _read(self, seconds: float) -> bool:
        """Read what is there; False at the end of the process."""
        if not select.select([self.master], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError:  # how Linux says that the other side is closed
            return False
        self.seen += data.decode("utf-8", "replace")
        return bool(data)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[type]:
    """Start a `Terminal` in the test's directory; it is gone when the test ends."""
    started: list[Terminal] = []

    def start(*args: str, **env: str) -> Terminal:
        started.append(Terminal(*args, cwd=tmp_path, **env))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.wait()
        os.close(one.master)


def test_a_conversation(terminal) -> None:
    repl = terminal("repl")
    repl.expect("Type expressions or statements. Ctrl+C or Ctrl+D to exit.")
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


def test_history_is_kept_for_the_next_session(terminal, tmp_path: Path) -> None:
    first = terminal("repl")
    first.ask("40 + 2", "42\n")
    first.expect("harn〉")
    first.type("\x03")
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
