"""Tapes as tests: the program as it is now, replayed on the tape of a run, does the same. Spec: 13 §10.

No model is asked, and nothing outside is touched but the program's own files, and those that it reads and
that were edited since.
"""

from __future__ import annotations

import os.path
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from harnpy.durable.journal import HTTP, MODEL, PROCESS, SESSION, WRITE
from harnpy.embedding import Vm
from harnpy.formats.json import compact_json
from harnpy.tape.description import kind_of
from harnpy.tape.tapes import COMPLETED, EXITED, FAILED, End, TapeError, read_tape
from harnpy.tape.worlds import Replaying, data_of
from harnpy.vm.errors import ExitRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harnpy.tape.tapes import Tape
    from harnpy.world import World

#: The beginning of what is said of a program that can't be read or isn't well-formed by now.
DOES_NOT_RUN: Final = "the program of {} doesn't run any more"
#: What is done outside, as it is counted for people: one, and several.
_DONE = {
    MODEL: ("call of a model", "calls of models"),
    HTTP: ("request", "requests"),
    PROCESS: ("process", "processes"),
    WRITE: ("write of a file", "writes of files"),
    SESSION: ("write to a session", "writes to sessions"),
}


def program_of(tape: Tape, here: str) -> str | None:
    """Return where a tape's program is now: seen from the directory ``here``, else from one that the tape is
    in, else where it was; None if it is nowhere."""
    body = tape.job.body
    for place in _places(tape.path, here, body["cwd"]):
        path = os.path.join(place, body["entry"])
        if os.path.isfile(path):
            return path
    return None


def _places(path: str, here: str, there: str) -> Iterator[str]:
    yield here
    place = os.path.dirname(os.path.abspath(os.path.join(here, path)))
    while place != os.path.dirname(place):
        yield place
        place = os.path.dirname(place)
    yield there


def failure_of(
    path: str, real: World, prepare: Callable[[Vm, str], object] = lambda vm, program: None
) -> str:
    """Replay the program of the tape at ``path`` as it is now; return how it differs, empty if it doesn't.

    It prints to the streams of ``real``. ``prepare`` is called with the Vm, and with the program as the tape
    names it.
    """
    try:
        tape = read_tape(path)
        world = Replaying(tape, real, reads_anew=True)
        program = program_of(tape, real.files.cwd())
        if program is None:
            entry = tape.job.body["entry"]
            return f"its program {entry} isn't there: run the test where it is, or delete the tape"
        vm: Any = Vm(world)
        prepare(vm, tape.job.body["entry"])
        end = end_of(lambda: vm.run_file(program, args=tape.job.body["args"]))
    except (TapeError, OSError) as error:
        return str(error)
    known = tape.end if tape.end is not None else end
    masking = vm.journal.masking
    now = replace(
        end, value=masking.record(end.value), error=masking.record(end.error), seconds=known.seconds
    )
    if now == known:
        return ""
    edited = f"; edited: {', '.join(vm.journal.edited)}" if vm.journal.edited else ""
    if not vm.journal.has_begun:
        return f"{DOES_NOT_RUN.format(path)}: {now.error}{edited}"
    differs = f"recorded was that it {_told(known)}, now it {_told(now)}{edited}"
    return f"the program differs from {path} at its end: {differs}"


def end_of(run: Callable[[], Any]) -> End:
    """Return how a program ends that ``run()`` runs. Raises `TapeError`."""
    try:
        return End(COMPLETED, data_of(run()))
    except ExitRequest as request:
        return End(EXITED, request.code)
    except TapeError:
        raise
    except Exception as error:
        return End(FAILED, error=str(error))


def _told(end: End) -> str:
    if end.status == COMPLETED:
        return f"returned {compact_json(end.value)}"
    return f"ended with status {end.value}" if end.status == EXITED else f"failed: {end.error}"


def done_live(tape: Tape) -> str:
    """Return what the run of a tape did outside, and what a live run of its program may do again."""
    counts = Counter(kind_of(step.key) for step in tape.steps)
    parts = [
        f"{counts[kind]} {one if counts[kind] == 1 else more}"
        for kind, (one, more) in _DONE.items()
        if counts[kind]
    ]
    return ", ".join(parts) or "nothing outside"
