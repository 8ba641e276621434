"""The file of a recorded run. Spec: 13 §2.

The first line is the header, `{"harn_tape": 1, …}`, each further one a step, `["<key>", {…}]`: the records
that a durable run of the program would have (10 §C19.1), and what each effect was asked for. The last line,
`{"end": …}`, says how the program ended; a tape without one was cut off.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from harnpy.faults import MisuseError
from harnpy.version import __version__
from harnpy.workflow.engines.contract import PROGRAM, Job, Step
from harnpy.world.files import system_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import BinaryIO

    from harnpy.tape.redaction import Redaction


#: The layout that this version writes; those up to it are read.
LAYOUT: Final = 1
_BEGINNING = b'{"harn_tape":'

#: How programs end.
COMPLETED: Final = "completed"
FAILED: Final = "failed"
EXITED: Final = "exited"


class TapeError(MisuseError):
    """A tape can't be read or written, or a program can't be replayed from it. Nothing has changed."""


class Asking(Struct, omit_defaults=True, frozen=True):
    """A change of what models are asked, from call ``at`` on: ``call`` is the key of the first one, or of
    one of its task if the program ``is_other``; None: the first one that comes."""

    at: int
    call: str | None = None
    is_other: bool = False
    message: Any = None
    model: str | None = None
    options: dict[str, Any] = {}


class Origin(Struct, omit_defaults=True, frozen=True):
    """What a branch was made of: the tape, the model call from which it is live, and what was changed.

    ``asking`` and ``edits`` (absolute paths of files) are what holds for all that is made of the branch, with
    that of the branches before it.
    """

    tape: str
    call: int
    changed: list[str] = []
    asking: list[Asking] = []
    edits: list[str] = []


class Header(Struct, omit_defaults=True, frozen=True):
    """``job`` is the program, as a durable run has it; ``made`` is in seconds since 1970; ``vm`` has the
    options of its Vm, ``command`` those of `harnpy run` that a replay needs, too."""

    harn_tape: int
    harnpy: str
    job: Job
    made: float
    branch: Origin | None = None
    vm: dict[str, Any] = {}
    command: dict[str, Any] = {}


class End(Struct, omit_defaults=True, frozen=True):
    """How the program ended: ``value`` is what it returned, as JSON, or its exit status; ``seconds`` is how
    long it took."""

    status: str
    value: Any = None
    error: str | None = None
    seconds: float = 0.0


class Tape(Struct, frozen=True):
    """A recorded run. ``end`` is None for one that was cut off; ``path`` is the file."""

    path: str
    header: Header
    steps: list[Step]
    end: End | None

    @property
    def job(self) -> Job:
        """The program that was recorded."""
        return self.header.job


def is_tape(path: str | os.PathLike[str]) -> bool:
    """Return whether there is a file at ``path`` that begins as tapes do."""
    try:
        with open(path, "rb") as file:
            return file.read(len(_BEGINNING)) == _BEGINNING
    except OSError:
        return False


def names_tape(path: str) -> bool:
    """Return whether somebody means a tape by ``path``: one is there or is being written, or it is called
    like one."""
    return is_tape(path) or path.endswith(".tape") or os.path.exists(f"{path}.partial")


def free_name(stem: str, suffix: str) -> str:
    """Return the name of a tape that nothing has yet: with a number behind ``stem`` if need be."""
    number, name = 1, f"{stem}{suffix}"
    while os.path.lexists(name) or os.path.lexists(f"{name}.partial"):
        number += 1
        name = f"{stem}-{number}{suffix}"
    return name


def read_tape(path: str | os.PathLike[str]) -> Tape:
    """Return the tape in a file. A last line that is cut off is left out.

    Raise `TapeError` for a file that can't be read, isn't a tape, has been damaged or has a newer layout.
    """
    path = os.fspath(path)
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        if isinstance(error, FileNotFoundError) and os.path.exists(f"{path}.partial"):
            why = (
                f"isn't there yet: the run that is recorded in {path}.partial goes on, or was cut off; name "
                "that file to go as far as it does"
            )
        else:
            why = f"can't be read: {system_reason(error)}"
        raise TapeError(f"{path} {why}") from None
    if not data.startswith(_BEGINNING):
        raise TapeError(f"{path} isn't a tape: `harnpy run --record FILE.tape PROGRAM` makes one")
    lines = data.split(b"\n")
    lines.pop()  # nothing, or a line that is cut off
    return tape_of_lines(path, lines)


def tape_of_lines(path: str, lines: Sequence[bytes]) -> Tape:
    """Return the tape whose lines these are; ``path`` names it in messages. Raises `TapeError`."""
    if not lines:
        raise TapeError(f"{path} is cut off within its first line: record the run again")
    header = _read_header(path, lines[0])
    steps: list[Step] = []
    end: End | None = None
    for number, line in enumerate(lines[1:], 2):
        try:
            if end is not None:
                raise ValueError
            if line.startswith(b"["):
                step = msgspec.json.decode(line, type=Step)
                _check_step(step)
                steps.append(step)
            else:
                end = msgspec.json.decode(line, type=_Last).end
        except (ValueError, RecursionError):
            raise TapeError(f"{path} is damaged at line {number}: record the run again") from None
    return Tape(path, header, steps, end)


class _Last(Struct):
    end: End


def _read_header(path: str, line: bytes) -> Header:
    try:
        header = msgspec.json.decode(line, type=Header)
    except (ValueError, RecursionError):
        header = None
    layout = header.harn_tape if header is not None else _layout(line)
    if layout > LAYOUT:
        raise TapeError(
            f"{path} was made by a newer harnpy: it has the layout {layout}, this is {__version__} and reads "
            f"layouts up to {LAYOUT}"
        )
    if header is None or layout < 1 or not _is_program(header.job):
        raise TapeError(f"{path} is damaged at line 1: record the run again")
    return header


def _check_step(step: Step) -> None:
    """Raise ValueError for what no step comes to."""
    output = step.output
    if step.key.endswith(":out"):
        sound = isinstance(output, list) and len(output) == 2 and all(type(each) is int for each in output)
    else:
        sound = isinstance(output, dict) and isinstance(output.get("at", 0), int | float)
        sound = sound and not output.keys().isdisjoint(("ok", "error", "at"))
    if not sound:
        raise ValueError(step.key)


def _is_program(job: Job) -> bool:
    """Return whether a job that says that it is a program has one."""
    if job.kind != PROGRAM:
        return True
    body = job.body
    if not (isinstance(body, dict) and isinstance(body.get("files"), dict)):
        return False
    links = body.get("links") or {}
    if not isinstance(links, dict):
        return False
    texts = [body.get("entry"), body.get("cwd"), body.get("pipeline") or "", *body["files"].values()]
    texts += links.values()
    if not all(isinstance(each, str) for each in texts) or not isinstance(body.get("args"), list):
        return False
    return os.path.join(body["cwd"], body["entry"]) in body["files"]


def _layout(line: bytes) -> int:
    digits = line[len(_BEGINNING) :].partition(b",")[0].strip()
    return int(digits) if digits.isdigit() and len(digits) < 9 else 0


class TapeWriter:
    """Writes a tape. Its file has the name ``<path>.partial`` until it ends, so that a former tape stays
    until there is a whole new one.

    Raises `TapeError` when the file can't be begun, or another file than a tape is at ``path``. What can't be
    written later is the ``failure``, of which ``on_failure`` is told: the program goes on without being
    recorded, as its work is worth more.
    """

    def __init__(self, path: str | os.PathLike[str], *, beside: str | None = None) -> None:
        """``beside`` is the tape that this one is made of, and doesn't take the place of."""
        self.path = os.fspath(path)
        self.failure: TapeError | None = None
        self.on_failure: Callable[[TapeError], object] = lambda failure: None
        self._partial = f"{self.path}.partial"
        self._file: BinaryIO | None = None
        #: Whether the whole tape is there.
        self.has_ended = False
        #: What masks secrets in all that is written.
        self.redaction: Redaction | None = None
        if os.path.lexists(self.path) and not is_tape(self.path):
            raise TapeError(f"{self.path} is there already, and isn't a tape: choose another name")
        if beside is not None and os.path.realpath(self.path) == os.path.realpath(beside):
            raise TapeError(f"{self.path} is the tape that the branch is made of: choose another name")

    @property
    def files(self) -> tuple[str, str]:
        """The paths that it has, while it is written and then."""
        return self._partial, self.path

    def begin(self, header: Header) -> None:
        """Write the header."""
        try:
            descriptor = os.open(self._partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            self._file = open(descriptor, "wb", buffering=0)  # noqa: SIM115 - `end` and `leave` close it
        except OSError as error:
            raise self._failed(error) from None
        line = msgspec.json.encode(header)
        if self._masks(line):
            job = header.job
            body = self.redaction.record(msgspec.json.decode(msgspec.json.encode(job.body)))  # type: ignore[union-attr]
            line = msgspec.json.encode(replace(header, job=replace(job, body=body)))
        self._write([line])
        if self.failure is not None:
            raise self.failure

    def write(self, steps: Sequence[Step]) -> None:
        """Append the steps. They survive the end of the process."""
        if steps:
            self._write([self._line(step) for step in steps])

    def _line(self, step: Step) -> bytes:
        line = _LINES.encode(step)
        if not self._masks(line):
            return line
        masked = self.redaction.record(msgspec.json.decode(line))  # type: ignore[union-attr]
        return _LINES.encode(masked)

    def _masks(self, line: bytes) -> bool:
        return self.redaction is not None and self.redaction.concerns(line)

    def end(self, end: End) -> None:
        """Write how the program ended, and give the file its name."""
        line = msgspec.json.encode(_Last(end))
        if self._masks(line):
            value, error = self.redaction.record([end.value, end.error])  # type: ignore[union-attr]
            line = msgspec.json.encode(_Last(replace(end, value=value, error=error)))
        self._write([line])
        self.leave()
        if self.failure is None:
            try:
                os.replace(self._partial, self.path)
            except OSError as error:
                self._give_up(error)
                return
            self.has_ended = True

    def leave(self) -> None:
        """Close the file as it is: the program was cut off."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def discard(self) -> None:
        """Leave no tape: there was nothing to record."""
        self.leave()
        try:
            os.remove(self._partial)
        except OSError as error:
            self._give_up(error)

    def _write(self, lines: list[bytes]) -> None:
        if self.failure is not None:
            return
        assert self._file is not None, "the header is written first"
        data = memoryview(b"\n".join(lines) + b"\n")
        try:
            while data:
                data = data[self._file.write(data) :]
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self.failure = self._failed(error)
        self.on_failure(self.failure)

    def _failed(self, error: OSError) -> TapeError:
        return TapeError(f"the tape {self._partial} can't be written: {system_reason(error)}")


_LINES = msgspec.json.Encoder()
