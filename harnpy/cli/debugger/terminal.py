"""The debugger at a terminal: a prompt whenever the program has stopped. Spec: 09 §15.5."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from harnpy.cli import INTERRUPTED, Stopped
from harnpy.cli.debugger.commands import Commands
from harnpy.cli.debugger.program import Program

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from harnpy.cli.debugger.engine import Stop
    from harnpy.cli.debugger.program import Launch

_PROMPT = "debug〉"
#: Seconds that a program has to end in when its user leaves.
_GRACE = 2.0
#: Seconds between two looks at what the user wants while the program runs.
_GLANCE = 0.1


class Terminal:
    """One program at the terminal, from its start to its end."""

    def __init__(self, launch: Launch) -> None:
        self._events: SimpleQueue[Stop | int] = SimpleQueue()
        self._program = Program(launch, self._events.put, self._events.put)
        self._commands = Commands(self._program.engine, sys.stdout)
        self._read = _reader(self._commands)
        self._pausing = False

    def run(self) -> int:
        """Debug until the program has ended or the user leaves; return the exit status."""
        signal.signal(signal.SIGINT, self._interrupt)
        self._program.start()
        while True:
            event = self._next_event()
            if isinstance(event, int):
                print(f"the program has ended with status {event}")
                return event
            self._pausing = False
            sys.stdout.flush()
            self._commands.stopped(event)
            if not self._converse():
                return self._leave()

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """Ctrl+C stops a program that runs; once more, it ends the debugger."""
        if self._pausing or self._program.engine.is_stopped:
            raise KeyboardInterrupt
        self._pausing = True
        self._program.engine.pause()

    def _next_event(self) -> Stop | int:
        while True:
            # Python handles a signal between two steps of its own: one that comes just before a wait would
            # be handled after it.
            with suppress(Empty):
                return self._events.get(timeout=_GLANCE)

    def _converse(self) -> bool:
        """Take commands until the program goes on; False when the user leaves."""
        while self._program.engine.is_stopped:
            line = self._read()
            if line is None:
                return False
            self._commands.feed(line)
            if self._commands.done:
                return False
        return True

    def _leave(self) -> int:
        self._pausing = True
        self._program.engine.end()
        self._program.wait(_GRACE)
        return INTERRUPTED


def _reader(commands: Commands) -> Callable[[], str | None]:
    """A function that asks for one line; None at the end of the input."""
    return _prompter(commands) if sys.stdin.isatty() else _next_line


def _next_line() -> str | None:
    return sys.stdin.readline() or None


def _prompter(commands: Commands) -> Callable[[], str | None]:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter
    from prompt_toolkit.output import ColorDepth

    session: PromptSession[str] = PromptSession(
        _PROMPT,
        completer=WordCompleter(commands.words()),
        complete_while_typing=False,
        color_depth=ColorDepth.MONOCHROME if "NO_COLOR" in os.environ else None,
    )

    def ask() -> str | None:
        while True:
            try:
                return session.prompt()
            except Stopped:
                raise
            except KeyboardInterrupt:
                print("(Ctrl+D or q to leave)")
            except EOFError:
                return None

    return ask
