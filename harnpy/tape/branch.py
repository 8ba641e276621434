"""Branches: a recorded run that goes on differently, and live, from a call of a model. Spec: 13 §5."""

from __future__ import annotations

import os.path
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from harnpy.durable.journal import ENV, MODEL, PIECE
from harnpy.durable.values import decode
from harnpy.embedding import Vm
from harnpy.tape.changes import (
    ChangedRequests,
    Changes,
    calls_of,
    edited,
    edited_files,
    inherited,
    install,
)
from harnpy.tape.description import kind_of, task_of
from harnpy.tape.forks import Forking, Forks, is_fork
from harnpy.tape.overlay import Overlay, check_keep, shown
from harnpy.tape.rules import BRANCHING
from harnpy.tape.scratch import ScratchProcesses
from harnpy.tape.tapes import Asking, Origin, Tape, TapeError, TapeWriter, free_name, read_tape
from harnpy.tape.undone_files import undo
from harnpy.tape.worlds import TapedWorld
from harnpy.vm.errors import ExitRequest
from harnpy.workflow.engines.contract import PROGRAM
from harnpy.world import World
from harnpy.world.files import system_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike
    from types import TracebackType
    from typing import Self

    from harnpy.storage.contract import Store
    from harnpy.tape.directory import Changed, Tree
    from harnpy.tape.journal import TapeJournal
    from harnpy.workflow.engines.contract import Json, Step
    from harnpy.world.files import Files

SUFFIX: Final = ".tape"


class Branching(TapedWorld):
    """The world of a branch: what ``tape`` knows up to its call ``at``, then ``real``, whose files are under
    an overlay. The branch is written to the tape ``out``.

    Raises `TapeError` when there is no such call, or a change can't be made. Close it: the overlay goes with
    it. Spec: 13 §5.
    """

    rules = BRANCHING
    tape: Tape

    def __init__(
        self,
        tape: Tape | str | PathLike[str],
        at: int,
        changes: Changes | None = None,
        *,
        out: str | PathLike[str] | None = None,
        real: World | None = None,
    ) -> None:
        tape = tape if isinstance(tape, Tape) else read_tape(tape)
        changes, real = Changes() if changes is None else changes, World() if real is None else real
        self.call = at
        self.changes = changes
        if tape.job.kind != PROGRAM:
            raise TapeError(
                f"{tape.path} is the tape of a Python program, which harnpy can't run from a call on"
            )
        _check(tape, at, changes)
        cwd = tape.job.body["cwd"]
        edits = edited_files(changes, real.files, cwd)
        tape = edited(tape, edits, is_other=changes.code is not None)
        places = [*calls_of(tape.steps), len(tape.steps)]
        before, after = tape.steps[: places[at - 1]], tape.steps[places[at - 1] :]
        keys = [tape.steps[place].key for place in places[:-1]]
        former = Origin("", 0) if tape.header.branch is None else tape.header.branch
        asking = Asking(
            at,
            keys[at - 1] if at <= len(keys) else None,
            changes.code is not None,
            changes.message,
            changes.model,
            dict(changes.options),
        )
        self._requests = inherited(tape)
        if changes.is_of_call:
            self._requests.append(ChangedRequests(asking, keys[: at - 1]))
        #: What the tape has of the pieces of calls behind those in the records, by the calls' keys.
        self.pieces = {
            tape.steps[place].key: rest
            for place in places[: at - 1]
            if (rest := _rest(tape.steps, place, len(before)))
        }
        facts = [step for step in after if kind_of(step.key) == ENV]
        self.directory = cwd
        reason = f"branch of {os.path.basename(tape.path)} at call {at}"
        self.forks = Forks(tape.steps, real, reason, "branch before it begins")
        self.forks.divide(before, after)
        stem = f"{tape.path.removesuffix(SUFFIX)}.branch-{at}"
        writer = TapeWriter(free_name(stem, SUFFIX) if out is None else out, beside=tape.path)
        self.overlay = Overlay(real.files)
        try:
            kept = {each.key for each in edits}
            if self.program is not None:
                kept.add(self.overlay.key(self.program))
                _check_program(real.files, changes)
            first = undo(tape.steps, self.overlay, cwd, kept)
            given = {
                key: data
                for key in map(self.overlay.key, former.edits)
                if (data := first.get(key)) is not None
            }
            for key, data in {**given, **{self.overlay.key(each.key): each.data for each in edits}}.items():
                self.overlay.give(key, data)
        except BaseException:
            self.overlay.close()
            raise
        self._processes = ScratchProcesses(real.processes, self.overlay, self.overlay.key(cwd))
        super().__init__(
            _Layered(real, self.overlay, self._processes),
            tape=tape,
            steps=[step for step in (*before, *facts) if not is_fork(step)],
            writer=writer,
            origin=Origin(
                tape.path,
                at,
                changes.told(),
                [*former.asking, asking] if changes.is_of_call else former.asking,
                [*former.edits, *(each.key for each in edits if each.key not in former.edits)],
            ),
        )
        self._writer, self.path = writer, writer.path
        #: Whether the branch has gone on live.
        self.is_live = False
        self.on_begin.append(self._begin)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Drop the overlay."""
        self._processes.close()
        self.overlay.close()

    def tree(self, directory: str) -> Tree:
        return self.overlay.tree(directory)

    def kept(self, store: Store) -> Store:
        if store.url.startswith("memory:"):
            return store
        return self.forks.store(store)  # type: ignore[return-value]

    def _begin(self, journal: TapeJournal, vm: Any) -> None:
        install(journal, vm, self._requests)
        journal.follower = _GoingOn(self, journal)

    def run(self, prepare: Callable[[Any], object] = lambda vm: None) -> Any:
        """Run the program, in a Vm that is given to ``prepare`` before; return what it returns."""
        vm: Any = Vm(world=self)
        prepare(vm)
        if self.program is None:
            return vm.run_recorded()
        body = self.tape.job.body
        return vm.run_file(self.program, args=body["args"], entry=body.get("pipeline"))

    @property
    def is_made(self) -> bool:
        """Whether the branch's tape is there: not where the program came to differ before the call."""
        return self._writer.has_ended

    @property
    def program(self) -> str | None:
        """The absolute path of the file of another program; None: the tape's own runs."""
        code = self.changes.code
        return None if code is None else os.path.join(self.overlay.cwd(), code)

    def written(self) -> list[str]:
        """Return the files that the branch has written, from the run's directory if they are in there."""
        self._processes.take_back()
        return [shown(key, self.directory) for key in self.overlay.written()]

    def deleted(self) -> list[str]:
        """Return the files on the disk that the branch has deleted, likewise."""
        self._processes.take_back()
        return [shown(key, self.directory) for key in self.overlay.deleted()]

    def keep(self, directory: str | PathLike[str]) -> None:
        """Write the overlay to a directory that is empty or isn't there (`Overlay.keep`).

        Raises `TapeError`; the overlay stays on the disk then.
        """
        self._processes.take_back()
        self.overlay.keep(directory, self.directory)


class _GoingOn(Forking):
    """Takes a branch past the end of its records."""

    def __init__(self, branching: Branching, journal: TapeJournal) -> None:
        super().__init__(branching.forks, journal)
        self._branching = branching

    def changed(self, changed: Changed) -> None:
        self._branching.overlay.change(self._branching.directory, changed)

    def live(self) -> None:
        super().live()
        self._branching.is_live = True

    def pieces(self, key: str) -> Sequence[Step] | None:
        return self._branching.pieces.get(key)


class _Layered(World):
    """``real``, with other files and processes."""

    def __init__(self, real: World, files: Overlay, processes: ScratchProcesses) -> None:
        super().__init__(files=files, processes=processes)
        self._real = real

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            return getattr(self._real, name)


def _check_program(files: Files, changes: Changes) -> None:
    """Raise `TapeError` where the file of another program can't be read."""
    assert changes.code is not None
    try:
        files.read_text(changes.code, "replace")
    except OSError as error:
        raise TapeError(f"the program {changes.code} can't be read: {system_reason(error)}") from None


def _check(tape: Tape, at: int, changes: Changes) -> None:
    """Raise `TapeError` where there is no call ``at``, or nothing that the changes could change."""
    count = len(calls_of(tape.steps))
    calls = "1 call" if count == 1 else f"{count} calls"
    if not 1 <= at <= count + 1:
        raise TapeError(f"{tape.path} has {calls} of models: a branch is at 1 to {count + 1}, not at {at}")
    changes.check()
    goes_on = tape.end is None or changes.code is not None or changes.files
    if at > count and changes.is_of_call and not goes_on:
        raise TapeError(f"{tape.path} ends after {calls} of models: there is no call {at} to change")


def _rest(steps: Sequence[Step], place: int, cut: int) -> list[Step] | None:
    """Return the pieces behind ``cut`` of the reply that begins at ``place``; None if it ends before."""
    task, rest = task_of(steps[place].key), []
    for number, step in enumerate(steps[place:], place):
        if task_of(step.key) != task or kind_of(step.key) not in (MODEL, PIECE):
            continue
        if number > place and kind_of(step.key) == MODEL:
            break
        if number >= cut:
            rest.append(step)
        if _is_last(step):
            return rest or None
    return rest or None


def _is_last(step: Step) -> bool:
    """Return whether a reply ends with that record: with the whole of it, without a further piece, or with
    a failure."""
    if "ok" not in step.output:
        return True
    came = decode(step.output["ok"])
    return came[0] is None if isinstance(came, tuple) else not isinstance(came, str)


@dataclass(frozen=True, slots=True)
class Branched:
    """What came of a branch.

    ``path`` is its tape. ``value`` is what the program returned, or its exit status; ``error`` what it failed
    with. ``written`` and ``deleted`` are the files of the overlay, by their paths from the run's directory;
    ``sessions`` are the forks, by the ids of the recorded sessions.
    """

    path: str
    call: int
    value: Any = None
    error: Exception | None = None
    written: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    sessions: Mapping[str, str] = field(default_factory=dict)

    @property
    def tape(self) -> Tape:
        """The branch's tape."""
        return read_tape(self.path)


def branch(
    tape: Tape | str | PathLike[str],
    at: int,
    *,
    message: Json = None,
    model: str | None = None,
    options: Mapping[str, Json] | None = None,
    files: Mapping[str, str] | None = None,
    code: str | None = None,
    out: str | PathLike[str] | None = None,
    keep: str | PathLike[str] | None = None,
    world: World | None = None,
    prepare: Callable[[Any], object] = lambda vm: None,
) -> Branched:
    """Run a branch of ``tape`` at its call ``at`` to its end, and return what came of it.

    The changes are those of `Changes`; ``out`` is the branch's tape, by default
    ``<name>.branch-<at>.tape``; ``keep`` is a directory for the overlay's files, which are dropped otherwise.
    ``world`` is what is outside, ``prepare(vm)`` is called before the program begins. Raises `TapeError` when
    the branch can't be made; how its program fails is in what is returned.
    """
    changes = Changes(message, model, options or {}, files or {}, code)
    if keep is not None:
        check_keep(keep)
    branching = Branching(tape, at, changes, out=out, real=world)
    value, error = None, None
    with branching:
        try:
            value = branching.run(prepare)
        except ExitRequest as request:
            value = request.code
        except TapeError:
            raise
        except Exception as failure:
            error = failure
        written, deleted = tuple(branching.written()), tuple(branching.deleted())
        if keep is not None:
            branching.keep(keep)
    sessions = dict(branching.forks.sessions)
    return Branched(branching.path, at, value, error, written, deleted, sessions)
