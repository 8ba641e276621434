"""A program that runs again at each save, on the tape of its last run up to the first call of a model whose
request has changed. Spec: 13 §9.

What changed before that without a call, a file that is read or a variable, happens anew, and calls that ask
for the same behind it are still answered from the tape.
"""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.durable.journal import ENV, MODEL, PIECE
from harnpy.durable.programs import missing_modules, program_texts
from harnpy.durable.values import Unreadable, decode
from harnpy.llm.reply import Reply
from harnpy.tape.description import kind_of, task_of
from harnpy.tape.directory import Left
from harnpy.tape.edits import files_read
from harnpy.tape.forks import Forking, Forks, is_fork
from harnpy.tape.rules import RECORDING, WATCHING
from harnpy.tape.tapes import FAILED, TapeWriter, is_tape, read_tape
from harnpy.tape.worlds import TapedWorld
from harnpy.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from harnpy.storage.contract import Store
    from harnpy.tape.directory import Changed
    from harnpy.tape.journal import TapeJournal
    from harnpy.tape.rules import TapeDiverged
    from harnpy.vm.vm import Vm
    from harnpy.workflow.engines.contract import Json, Step


class Calls(NamedTuple):
    """How many calls of models a run had: answered by its tape, and live."""

    from_tape: int
    live: int

    @property
    def text(self) -> str:
        """The numbers, for a person."""
        count = self.from_tape + self.live
        calls = "1 call" if count == 1 else f"{count} calls"
        if not self.from_tape:
            return f"{calls}, all live" if count else "no calls"
        return f"{self.from_tape} of {calls} from the tape" + (f", {self.live} live" if self.live else "")


class Watching(TapedWorld):
    """Runs a program on the tape at ``path`` as far as that goes, and writes the new one in its place.

    Where a run fails before anything new has happened, the tape stays: it has more than the new one would.
    Raises `TapeError` when something else than a tape is at ``path``.
    """

    def __init__(self, path: str, real: World | None = None) -> None:
        tape = read_tape(path) if is_tape(path) else None
        # Variables and settings are looked up anew.
        steps = [step for step in tape.steps if kind_of(step.key) != ENV or is_fork(step)] if tape else None
        super().__init__(real, tape=tape, steps=steps, writer=TapeWriter(path), reads_anew=True)
        self.rules = RECORDING if tape is None else WATCHING
        reason = f"new run of {os.path.basename(path)}"
        self._forks = None if tape is None else Forks(tape.steps, self.real, reason, f"remove {path}")
        self.journal: TapeJournal | None = None
        self.follower: _Again | None = None
        self.on_begin.append(self._begin)

    def _begin(self, journal: TapeJournal, vm: Vm) -> None:
        self.journal = journal
        if self._forks is not None:
            assert self.tape is not None
            left = Left(self.tape.steps, journal.cwd, self.real.files)
            self.follower = journal.follower = _Again(self._forks, journal, left)

    def kept(self, store: Store) -> Store:
        if self._forks is None or store.url.startswith("memory:"):
            return store
        return self._forks.store(store)  # type: ignore[return-value]

    def is_kept(self, status: str) -> bool:
        is_new = self.tape is None or status != FAILED or (self.journal is not None and self.journal.is_live)
        return self.has_run and is_new

    @property
    def parted(self) -> TapeDiverged | None:
        """Where the program has left its tape, if it has."""
        return None if self.follower is None else self.follower.difference

    @property
    def has_run(self) -> bool:
        """Whether the program could be read and checked, and has run."""
        return self.journal is not None and self.journal.has_begun

    @property
    def calls(self) -> Calls:
        """The calls of models in the run."""
        journal = self.journal
        return Calls(0, 0) if journal is None else Calls(journal.calls_repeated, journal.calls_made)


class _Again(Forking):
    """Does again what processes of the last run did, and answers calls behind the first difference from what
    is left of its tape."""

    def __init__(self, forks: Forks, journal: TapeJournal, left: Left) -> None:
        super().__init__(forks, journal)
        self._left = left
        self._rest: Rest | None = None
        self.difference: TapeDiverged | None = None

    def changed(self, changed: Changed) -> None:
        self._left.change(changed)

    def parted(self, difference: TapeDiverged) -> None:
        self.difference = difference
        remaining = self._journal.remaining()
        self._rest = Rest(remaining)
        self._forks.divide(self._journal.met(), remaining)

    def reply(self, asked: Callable[[], Json]) -> Reply | None:
        return None if self._rest is None else self._rest.answer(asked())


class Rest:
    """The replies in what is left of a tape: each answers one call that asks for the same, until a call asks
    for something else."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._replies = [(step.output.get("asked"), reply) for step, reply in _replies(steps)]
        self._is_over = False

    def answer(self, asked: Json) -> Reply | None:
        """Return the reply to a call; None when it has to be made."""
        if self._is_over:
            return None
        for number, (known, reply) in enumerate(self._replies):
            if known == asked:
                del self._replies[number]
                return reply
        self._is_over = True
        return None


def _replies(steps: Sequence[Step]) -> Iterator[tuple[Step, Reply]]:
    """Yield the records of calls that came to a whole reply, at once or piece by piece."""
    for number, step in enumerate(steps):
        if kind_of(step.key) != MODEL:
            continue
        task = task_of(step.key)
        of_task = (each for each in steps[number + 1 :] if task_of(each.key) == task)
        came = _outcome(step)
        while isinstance(came, str):
            piece = next(of_task, None)
            came = None if piece is None or kind_of(piece.key) != PIECE else _outcome(piece)
        if isinstance(came, Reply):
            yield step, came


def _outcome(step: Step) -> Any:
    try:
        return decode(step.output["ok"]) if "ok" in step.output else None
    except Unreadable:
        return None


def watched_files(file: str, tape: str, world: World | None = None) -> set[str]:
    """Return the paths of the files that a program depends on: its own, also modules that aren't there yet,
    and those that it has read, or wanted to read, in the run on a tape, if there is one."""
    files = (World() if world is None else world).files
    entry = os.path.join(files.cwd(), file)
    try:
        texts = program_texts(files, entry, files.read_text(entry, "replace")).texts
        found = {*texts, *missing_modules(files, texts)}
    except OSError:
        found = {entry}
    if is_tape(tape):
        known = read_tape(tape)
        cwd = known.job.body["cwd"]
        found.update(os.path.join(cwd, path) for path in files_read(known.steps))
    return found
