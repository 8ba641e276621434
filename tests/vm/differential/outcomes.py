"""What a run of a program showed: everything in which two evaluators must agree."""

from __future__ import annotations

import errno
import os
import re
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from harnpy import Vm, VmError, World
from harnpy.syntax.diagnostic import SourceFault
from harnpy.syntax.parser import parse
from harnpy.vm.errors import ExitRequest
from harnpy.vm.run.backtrace import render
from harnpy.vm.values import display
from harnpy.world.files import RealFiles
from harnpy.world.processes import Ended, RealProcesses
from harnpy.world.streams import RealStreams

EVALUATORS = ("compile", "walk")
FILE = "/nowhere/program.harn"
MODULE = "/nowhere/shared.harn"
#: Processor seconds that a program may take; a generated one takes some thousandths.
PATIENCE = 2.0
#: Endings that depend on the host, so that nothing is compared.
UNCOMPARED = {"slow", "deep"}
#: Callbacks in callbacks (02 §9.4) end where Python's stack does, which a walker reaches sooner.
_HOST_DEPTH = re.compile(r"… \d+ more (calls )?…")


@dataclass(frozen=True, slots=True)
class Program:
    """A program and the text of the module that it may import as ``"shared"``.

    In a ``session`` each of its statements is an input of a REPL.
    """

    text: str
    module: str = ""
    session: bool = False

    def __str__(self) -> str:
        module = f"\n// --- shared.harn\n{self.module}" if self.module else ""
        return ("// --- a session\n" if self.session else "") + self.text + module


@dataclass(frozen=True, slots=True)
class Outcome:
    """``ending`` says how the run ended: `value`, `error`, `exit`, `refused`, `deadlock`, `slow`, `deep` or
    `python`.

    ``text`` is the value as shown, the rendered error, the exit status or, after `python`, the traceback.
    """

    output: str
    ending: str
    text: str

    def __str__(self) -> str:
        return f"{self.output}=> {self.ending}: {self.text}"


class TooSlow(BaseException):
    """Nothing that a program could catch."""


class Deadlock(BaseException):
    """Every task waits for another one."""


class StillClock:
    """A clock that only sleeping moves, so that looking at it more often changes nothing."""

    def __init__(self) -> None:
        self.passed = 0.0

    def now(self) -> float:
        return 1_700_000_000.0 + self.passed

    def monotonic(self) -> float:
        return self.passed

    def sleep(self, seconds: float | None) -> None:
        if seconds is None:
            raise Deadlock
        self.passed += seconds


class Nothing(RealProcesses):
    """Processes that can't be started."""

    async def run(self, *argv: Any, **how: Any) -> Ended:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))


class OneModule(RealFiles):
    """Files of which only the module is there, and to which nothing can be added."""

    def __init__(self, text: str) -> None:
        self._text = text

    def cwd(self) -> str:
        return os.path.dirname(MODULE)

    def exists(self, path: str) -> bool:
        return path == MODULE

    is_file = exists

    def is_dir(self, path: str) -> bool:
        return False

    def make_directory(self, path: str) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)

    def real_path(self, path: str) -> str:
        return path

    def read_text(self, path: str, errors: str = "strict") -> str:
        if path != MODULE:
            raise FileNotFoundError(path)
        return self._text


def outcome(program: Program, evaluator: str) -> Outcome:
    """Run a program in a fresh Vm."""
    written: list[str] = []
    try:
        with _patience():
            ending, text = _ending(program, evaluator, written)
    except TooSlow:
        ending, text = "slow", f"more than {PATIENCE:g} s of processor time"
    except Deadlock:
        ending, text = "deadlock", ""
    except Exception:
        ending, text = "python", traceback.format_exc(limit=-6)
    output = "".join(written)
    if _HOST_DEPTH.search(output) or _HOST_DEPTH.search(text):
        ending = "deep"
    return Outcome(output, ending, text)


def _ending(program: Program, evaluator: str, written: list[str]) -> tuple[str, str]:
    """How the program, or the last input of the session, ends; how others do is written."""
    streams = RealStreams(stdout=written.append, stderr=written.append)
    files = OneModule(program.module)
    world = World(clock=StillClock(), files=files, processes=Nothing(), streams=streams)
    vm = Vm(world, evaluator=evaluator)
    if not program.session:
        return _end_of(lambda: vm.run_source(program.text, file=FILE, checked=False))
    session, ending = vm.repl(), ("value", "")
    for item in parse(program.text).items:
        source = program.text[item.start : item.end]
        ending = _end_of(lambda source=source: session.run(source))  # type: ignore[misc]
        written.append(f"=> {ending[0]}: {ending[1]}\n")
    return ending


def _end_of(run: Callable[[], object]) -> tuple[str, str]:
    try:
        return "value", display(run())
    except SourceFault as fault:
        return "refused", fault.render()
    except VmError as error:
        return "error", render(error)
    except ExitRequest as request:
        return "exit", str(request.code)


def outcomes(program: Program, evaluators: Sequence[str] = EVALUATORS) -> str:
    """What each evaluator shows of a program, one below the other."""
    return "".join(f"--- {evaluator}\n{outcome(program, evaluator)}\n" for evaluator in evaluators)


@contextmanager
def _patience() -> Iterator[None]:
    """End a block that takes too much processor time, by `TooSlow`."""

    def ring(number: int, frame: FrameType | None) -> None:
        if frame is not None and frame.f_code.co_name == "gc_callback":
            # Hypothesis's own, called by the collector, which swallows what is raised there.
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.001)
            return
        raise TooSlow

    before = signal.signal(signal.SIGVTALRM, ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
