"""The process, from argv to its exit status: signals, streams, the end. Spec: 09 §1.1–1.3, 2.4.

`run` is dispatched here, by hand: its start-up is part of every script's, and a command-line
framework alone takes longer to import than a small program takes to run. One module, because each costs a
start: signals are handled from its first line on.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # the Python module above it costs a start too much: enum
import _thread
import _warnings
import os
import sys
import time

from harnpy.cli import INTERRUPTED, Stopped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, NoReturn


#: Modules that have something to do when the interpreter ends: a profile to show, a debugger's prompt.
_LATER = frozenset(("_lsprof", "bdb"))
#: Seconds between the first signal and the end of the process, whatever the program does with them.
_GRACE = 2.0
_GLANCE = 0.01
_NOTICE = b"[harn] signal received, flushing state...\n"


def entry() -> NoReturn:
    """The console script."""
    signals = Signals()
    try:
        signals.handle()
        status = _finished(sys.argv[1:], signals)
        signals.leaving = True
    except KeyboardInterrupt:
        signals.leaving = signals.came = True
        status = 0
    leave(status, signals)


def leave(status: int, signals: Signals) -> NoReturn:
    """End the process without finalizing the interpreter, which takes an eighth of a small program's time.

    Everything observable is done first: exit functions, other threads unless a signal came, buffers.
    """
    import atexit

    if not _LATER.isdisjoint(sys.modules):
        sys.exit(signals.status(status))
    if "threading" in sys.modules and not signals.came:
        from threading import _shutdown  # type: ignore[attr-defined]

        _shutdown()
    atexit._run_exitfuncs()
    signals.end(status)


def _finished(argv: Sequence[str], signals: Signals) -> int:
    """Run a command line and return its exit status; what it has printed is written then."""
    try:
        _prepare_streams()
        status = main(argv, signals)
        sys.stdout.flush()
        return status
    except Exception as error:
        from harnpy.cli.console import report_failure

        return report_failure(error, debug="--debug" in argv)


def _prepare_streams() -> None:
    """Let any text be read and written: what the encoding lacks is replaced or escaped."""
    if None in (sys.stdin, sys.stdout, sys.stderr):
        from harnpy.cli.process import open_closed_streams

        open_closed_streams()
    sys.stdin.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def main(argv: Sequence[str], signals: Signals | None = None) -> int:
    """Run one command line and return the exit status. `harnpy FILE.harn …` is `harnpy run FILE.harn …`.

    ``signals`` are those of the process, when it is this command's.
    """
    if argv and argv[0].endswith(".harn"):
        argv = ("run", *argv)
    if argv and argv[0] == "run":
        from harnpy.cli.commands import run

        return run.main(argv[1:], signals)
    from harnpy.cli import app

    return app.main(argv)


class Signals:
    """SIGINT and SIGTERM end the command with status 124, whenever and however often they come.

    The first raises `Stopped` in the main thread, wherever that is. Two seconds later the process ends. What
    is to be finished first (`before`) delays both, until another signal comes.
    """

    def __init__(self) -> None:
        self.came = False
        #: The command is done: a signal has nothing to stop, and only decides the exit status.
        self.leaving = False
        self._to_raise = False
        #: When the process ends at the latest, on the monotonic clock.
        self._end = 0.0
        #: What is finished first: how it is begun, and the seconds that it may take.
        self._first: dict[object, tuple[Callable[[Callable[[], None]], None], float]] = {}
        self._main = _thread.get_ident()

    def handle(self) -> None:
        """Handle signals from now on."""
        _signal.signal(_signal.SIGINT, self._handle)
        _signal.signal(_signal.SIGTERM, self._handle)

    def before(self, begin: Callable[[Callable[[], None]], None], seconds: float) -> Callable[[], None]:
        """As `harnpy.world.host` has it."""
        key = object()
        self._first[key] = begin, seconds
        return lambda: self._finish(key)

    def _finish(self, key: object) -> None:
        """Note that something is finished, or needn't be any more; after the last, the command ends."""
        if self._first.pop(key, None) and not self._first and self.came:
            self._raise_soon()

    def _raise_soon(self) -> None:
        self._end = min(self._end, time.monotonic() + _GRACE)
        self._to_raise = True

    def status(self, status: int) -> int:
        """Return the exit status of a command that ended with ``status``."""
        return INTERRUPTED if self.came else status

    def end(self, status: int) -> NoReturn:
        """End the process."""
        if self.came:
            _end_children()
        for stream in (sys.stdout, sys.stderr):
            _flush(stream)
        os._exit(self.status(status))

    def _handle(self, number: int, frame: object) -> None:
        if not self.came:
            self.came = True
            first = list(self._first.items())
            self._end = time.monotonic() + max([seconds for _, (_, seconds) in first], default=0.0) + _GRACE
            self._announce()
            for key, (begin, _) in first:
                begin(lambda key=key: self._finish(key))  # type: ignore[misc]
            # Not before: another signal, which comes meanwhile, would end the announcement.
            self._to_raise = not self._first
        elif self._first and not self._to_raise:
            self._first.clear()
            self._raise_soon()
        if self.leaving or not self._to_raise or _is_importing(frame):
            return
        # In the middle of writing: `Stopped` would lose what is to be written. `_watch` comes back.
        if _flush(sys.stdout):
            self._to_raise = False
            raise Stopped

    def _announce(self) -> None:
        _thread.start_new_thread(self._watch, ())
        sys.unraisablehook = self._ignored
        _be_quiet()
        try:
            os.write(2, _NOTICE)
        except OSError:
            return  # nobody can be told

    def _ignored(self, what: Any) -> None:
        """Note that Python dropped an exception, as it does in `__del__`; `Stopped` is raised again."""
        if isinstance(what.exc_value, Stopped):
            self._to_raise = True

    def _watch(self) -> None:
        """Raise what could not be raised; end the process when its time is over."""
        while time.monotonic() < self._end:
            time.sleep(_GLANCE)
            if self._to_raise and not self.leaving:
                _signal.pthread_kill(self._main, _signal.SIGTERM)
        try:
            _end_children()
        finally:
            os._exit(INTERRUPTED)


def _is_importing(frame: Any) -> bool:
    """Return True in the middle of an import: an extension that makes a class there may crash when it is
    interrupted (msgspec 0.22 does). `_watch` comes back."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def _be_quiet() -> None:
    """Show no warnings and logs of Python from now on: they are about what was interrupted."""
    _warnings.filters.insert(0, ("ignore", None, Warning, None, 0))
    _warnings._filters_mutated()  # type: ignore[attr-defined]
    disable = getattr(sys.modules.get("logging"), "disable", None)
    if disable:
        disable()


def _flush(stream: Any) -> bool:
    """Write what is buffered; return False if the stream is being written to, further down on the stack."""
    try:
        stream.flush()
    except RuntimeError:
        return False
    except Exception:
        pass  # closed, or full: reported when the command ends
    return True


def _end_children() -> None:
    from harnpy.cli.process import end_children

    end_children()
