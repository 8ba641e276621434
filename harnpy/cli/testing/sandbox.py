"""One program in a fresh Vm, within a time limit: its output, or the text of its error. Spec: 09 §3.3.

Used by both test runners and by pytest. The program has the real file system and environment, but its
output is captured, its stdin is empty and real models are disabled.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from time import perf_counter
from types import FrameType

from harnpy import Vm
from harnpy.cli import console
from harnpy.cli.model_fixtures import replay
from harnpy.cli.project_setup import bind_project
from harnpy.cli.testing.differences import HEAD, difference
from harnpy.llm.errors import FixtureError
from harnpy.vm.errors import ExitRequest
from harnpy.vm.run.backtrace import Frame, harn_frames
from harnpy.world import World
from harnpy.world.environment import RealEnvironment
from harnpy.world.streams import RealStreams

# A time limit on code that can't be asked to stop.


class TimedOut(BaseException):
    """The limit has passed. No `Exception`: a program's own `catch` must not stop it."""


@contextmanager
def time_limit(ms: float) -> Iterator[None]:
    """Raise `TimedOut` in the body after `ms` milliseconds. For the main thread only.

    The alarm keeps ringing, so that a `finally` of the program that runs long is stopped as well.
    """
    previous = signal.signal(signal.SIGALRM, _ring)
    signal.setitimer(signal.ITIMER_REAL, ms / 1000, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def _ring(number: int, frame: FrameType | None) -> None:
    raise TimedOut


#: The variables that name where programs keep files for their next run.
_STATE = {
    "HARN_STATE_DIR": ".harn",
    "HARN_RUN_DIR": ".harn-runs",
    "HARN_WORKER_STATE_DIR": ".harn/workers",
}

_FAILED = "error: Thrown: Assertion failed"
#: What an error begins with whose message is that of `assert_eq` itself.
_OF_VALUES = re.compile(rf"\A{_FAILED}: expected .*?(?=\n +--> )", re.DOTALL)

#: Milliseconds that a test may take unless the command line says otherwise.
DEFAULT_TIMEOUT = 30_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a run.

    `error` is None after a success, and `report` is the error as `run` shows it; `unjudged` means that
    the error is not the program's. A program that called `exit` succeeded,
    whatever the code; only user tests read it.
    """

    output: str = ""
    ms: float = 0.0
    error: str | None = None
    report: str = ""
    unjudged: bool = False
    exit_code: int = 0
    #: How the values differ that `assert_eq` compared, as lines.
    difference: tuple[str, ...] = ()


def sandboxed_world(
    out: Callable[[str], object],
    default_provider: str | None = None,
    scratch: str | None = None,
    err: Callable[[str], object] = lambda text: None,
) -> World:
    """The real world, without its terminal, its input and real models."""
    return World(environment=_Environment(default_provider, scratch), streams=_Streams(out, err))


class _Streams(RealStreams):
    def __init__(self, out: Callable[[str], object], err: Callable[[str], object]) -> None:
        super().__init__(stdout=out, stderr=err, stdin=StringIO())

    def isatty(self, stream: str) -> bool:
        return False


class _Environment(RealEnvironment):
    def __init__(self, default_provider: str | None, scratch: str | None) -> None:
        self._default_provider = default_provider
        self._scratch = scratch

    def get(self, name: str) -> str | None:
        if name == "HARN_LLM_CALLS_DISABLED":
            return "1"
        if name == "HARN_LLM_PROVIDER":
            return super().get(name) or self._default_provider
        if self._scratch is not None and name in _STATE:
            return super().get(name) or os.path.join(self._scratch, _STATE[name])
        return super().get(name)


def run_program(
    path: Path,
    *,
    timeout_ms: float = DEFAULT_TIMEOUT,
    entry: str | None = None,
    shown: Path | None = None,
    default_provider: str | None = None,
    skill_dirs: Sequence[str] = (),
    scratch: str | None = None,
    evaluator: str = "compile",
    attach: Callable[[Vm], object] = lambda vm: None,
) -> Outcome:
    """Run `path` as a program of its own; `STEM.llm-mock.jsonl` beside it answers its model calls.

    `entry` is the pipeline to run instead of the usual one, `shown` what messages call the file, and
    `default_provider` the value of HARN_LLM_PROVIDER where it is not set. `skill_dirs` hold skills for it.
    The files for its next run go to the directory `scratch`, if given. `evaluator` is one of `Vm`'s;
    `attach` is called with the Vm before the program runs. A user test's output is all that it writes.
    """
    written: list[str] = []
    err = (lambda text: None) if entry is None else written.append
    vm = Vm(sandboxed_world(written.append, default_provider, scratch, err), evaluator=evaluator)
    vm.on_warnings = lambda unit: written.extend(f"warning: {w.message}\n" for w in unit.warnings)
    fixtures = path.with_suffix(".llm-mock.jsonl")
    start = perf_counter()
    try:
        bind_project(vm, str(path), skill_dirs)
        attach(vm)
        if fixtures.exists():
            replay(vm, str(fixtures))
        with time_limit(timeout_ms):
            source = path.read_bytes().decode("utf-8", "replace")
            # A user test, which names its entry, is not type-checked (09 §3.1).
            vm.run_source(
                source,
                file=str(shown or path),
                directory=str(path.absolute().parent),
                entry=entry,
                checked=entry is None,
            )
        ending = Outcome()
    except TimedOut as timeout:
        text = f"timed out after {timeout_ms:g}ms"
        place = "".join(f"\n  --> {frame.file}:{frame.line}:{frame.column}" for frame in _inside(timeout))
        ending = Outcome(error=text, report=f"{text}{place}", unjudged=True)
    except FixtureError as error:
        text = f"llm mock setup error: {error}"
        ending = Outcome(error=text, report=text, unjudged=True)
    except ExitRequest as request:
        ending = Outcome(exit_code=request.code)
    except Exception as error:
        lines = _difference(error)
        report = console.rendered_error(error)
        if lines[:1] == [HEAD]:
            # The default message holds both values in full once more.
            report = _OF_VALUES.sub(_FAILED, report, count=1)
        ending = Outcome(error=console.error_text(error), report=report, difference=tuple(lines))
    return replace(ending, output="".join(written), ms=(perf_counter() - start) * 1000)


def _inside(timeout: TimedOut) -> tuple[Frame, ...]:
    """Return the call of the program that was running, if one was, without its callers."""
    return harn_frames(timeout.__traceback__)[:1]


def _difference(error: Exception) -> list[str]:
    """Return the lines that show how the values of a failed `assert_eq` differ; none for another error."""
    compared = getattr(error, "compared", None)
    return [] if compared is None else difference(*compared)
