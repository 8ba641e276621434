"""A `harnpy` process on a pseudo-terminal, for tests."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

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
        self.expect("〉")
        self.submit(line)

    def ask(self, line: str, answer: str) -> None:
        """Submit a line at the next prompt and wait for what it shows."""
        self.enter(line)
        self.expect(answer)

    def complete(self, start: str, name: str) -> None:
        """Type the beginning of a name at the next prompt and wait until it is complete."""
        self.expect("〉")
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

    def show(self, codes: str) -> None:
        """Wait until the terminal is sent `codes`, colours and movements included."""
        while codes not in self.seen:
            assert self._read(PATIENCE), f"the process ended before {codes!r}"

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
