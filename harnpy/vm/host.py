"""Every effect a program has on the world goes through a `Host`.

The real one is here; a test, a sandbox or a replay hands the Vm another. Nothing else in the VM or the
builtins touches clocks, files, streams, randomness or the environment.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import random
    from collections.abc import Callable


class Leaving(BaseException):
    """Unwinds a program or task that is over: none of its `finally` and `defer` blocks run any more."""


class ExitRequest(Leaving):
    """The program called `exit(code)`."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Host:
    """The real world. ``stdout`` and ``stderr`` are functions that take text; ``stdin`` a text stream."""

    def __init__(
        self,
        stdout: Callable[[str], object] | None = None,
        stderr: Callable[[str], object] | None = None,
        stdin: object = None,
    ) -> None:
        self.write_out = stdout or _writer("stdout")
        self.write_err = stderr or _writer("stderr")
        self._stdin = stdin
        self._random: random.Random | None = None

    # --- streams ----------------------------------------------------------------------------------

    @property
    def stdin(self):  # type: ignore[no-untyped-def]
        return self._stdin or sys.stdin

    def read_line(self) -> str | None:
        """One line of standard input without its line ending; None at its end."""
        line: str = self.stdin.readline()
        return line.removesuffix("\n").removesuffix("\r") if line else None

    def read_all(self) -> str:
        """All that is left of standard input."""
        text: str = self.stdin.read()
        return text

    def isatty(self, stream: str) -> bool:
        """Whether ``"stdin"``, ``"stdout"`` or ``"stderr"`` is a terminal."""
        target = self.stdin if stream == "stdin" else getattr(sys, stream)
        return bool(target) and bool(target.isatty())

    # --- files -------------------------------------------------------------------------------------

    def cwd(self) -> str:
        """The working directory, absolute: what relative paths are relative to."""
        return os.getcwd()

    def read_text(self, path: str) -> str:
        """The text of a UTF-8 file as it is. Raises OSError and UnicodeDecodeError."""
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()

    def write_text(self, path: str, text: str, append: bool = False) -> None:
        """Write a UTF-8 file, or add to it; its directory is made if need be. Raises OSError."""
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        mode = "a" if append else "w"
        with open(path, mode, encoding="utf-8", errors="surrogatepass", newline="") as file:
            file.write(text)

    def is_dir(self, path: str) -> bool:
        return os.path.isdir(path)

    def list_dir(self, path: str) -> list[str]:
        """The names in a directory, sorted; those of directories end in ``/``. Raises OSError."""
        with os.scandir(path) as entries:
            return sorted(f"{entry.name}/" if entry.is_dir() else entry.name for entry in entries)

    # --- time, environment, chance ----------------------------------------------------------------

    def now(self) -> float:
        """Seconds since 1970, UTC."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back."""
        return time.monotonic()

    def sleep(self, seconds: float | None) -> None:
        """Block the whole thread; None is for ever, or until a signal."""
        time.sleep(1e9 if seconds is None else seconds)

    def env(self, name: str) -> str | None:
        return os.environ.get(name)

    @property
    def random(self) -> random.Random:
        if self._random is None:
            import random

            self._random = random.Random()
        return self._random

    def uuid7(self) -> str:
        """A new time-ordered id, as 36 characters."""
        from uuid6 import uuid7

        return str(uuid7())


def _writer(name: str) -> Callable[[str], object]:
    """Writes to the process's stream, whatever it is at that moment; stderr shows after what came before."""

    def write(text: str) -> None:
        if name == "stderr":
            sys.stdout.flush()
        getattr(sys, name).write(text)

    return write
