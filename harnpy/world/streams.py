"""Standard output, error and input. On the start-up path: imports nothing heavy."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol, TextIO

    from harnpy.world.threads import Reading

    class Streams(Protocol):
        write_out: Callable[[str], object]
        write_err: Callable[[str], object]

        def read_line(self, within: float | None = None) -> str | None:
            """One line of standard input without its line ending; None at its end.

            Raises TimeoutError when it doesn't come ``within`` so many seconds; the next call returns it.
            """

        def read_all(self, within: float | None = None) -> str:
            """All that is left of standard input; likewise."""

        def isatty(self, stream: str) -> bool:
            """Return whether ``"stdin"``, ``"stdout"`` or ``"stderr"`` is a terminal."""


class OutputLost(OSError):
    """Writing to ``stream`` failed; no program can catch this."""

    def __init__(self, stream: str, error: OSError) -> None:
        super().__init__(error.errno, error.strerror)
        self.stream = stream

    def __str__(self) -> str:
        return f"cannot write to {self.stream}: {self.strerror} (os error {self.errno})"


class RealStreams:
    """The process's own streams, whatever they are at that moment, except for those that are given.

    ``stdout`` and ``stderr`` are functions that take text; ``stdin`` is a text stream.
    """

    def __init__(
        self,
        stdout: Callable[[str], object] | None = None,
        stderr: Callable[[str], object] | None = None,
        stdin: TextIO | None = None,
    ) -> None:
        self.write_out = _write_out if stdout is None else stdout
        self.write_err = _write_err if stderr is None else stderr
        self._stdin = stdin
        #: What somebody stopped waiting for.
        self._reading: Reading | None = None
        self._ahead = ""

    @property
    def stdin(self) -> TextIO:
        return self._stdin or sys.stdin

    def read_line(self, within: float | None = None) -> str | None:
        line = self._read(self.stdin.readline, within)
        line = self.take_back() + line
        return line.removesuffix("\n").removesuffix("\r") if line else None

    def put_back(self, text: str) -> None:
        """Have ``text`` come first in what is read next: somebody looked for a key and found more."""
        self._ahead += text

    def take_back(self) -> str:
        """Return what was put back, which then doesn't come again."""
        ahead, self._ahead = self._ahead, ""
        return ahead

    def read_all(self, within: float | None = None) -> str:
        if self._reading is None:
            text = self._read(self.stdin.read, within)
            return self.take_back() + text
        # A line that somebody stopped waiting for comes first.
        return self._read(self.stdin.readline, within) + self._read(self.stdin.read, within)

    def _read(self, read: Callable[[], str], within: float | None) -> str:
        if self._reading is None and within is None:
            return read()
        from harnpy.world.threads import Reading

        reading = self._reading = self._reading or Reading(read)
        text = reading.text(within)
        self._reading = None
        return text

    def isatty(self, stream: str) -> bool:
        target = self.stdin if stream == "stdin" else getattr(sys, stream)
        return bool(target) and bool(target.isatty())


def _write_out(text: str) -> None:
    try:
        sys.stdout.write(text)
    except OSError as error:
        raise OutputLost("stdout", error) from None


def _write_err(text: str) -> None:
    try:
        # What was printed before shows before.
        sys.stdout.flush()
    except OSError as error:
        raise OutputLost("stdout", error) from None
    try:
        sys.stderr.write(text)
    except OSError as error:
        raise OutputLost("stderr", error) from None
