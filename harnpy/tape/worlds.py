"""The worlds of recorded and replayed programs, for a Vm: `Vm(world=Recording("run.tape"))`. Spec: 13 §4."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from harnpy.tape.changes import inherited, install
from harnpy.tape.directory import look
from harnpy.tape.journal import RECORDING, REPLAYING, Rules
from harnpy.tape.tapes import Tape, TapeError, TapeWriter, read_tape
from harnpy.workflow.engines.contract import PROGRAM
from harnpy.world import World

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    from harnpy.storage.contract import Store
    from harnpy.tape.directory import Tree
    from harnpy.tape.journal import TapeJournal
    from harnpy.tape.tapes import Origin
    from harnpy.vm.vm import Vm
    from harnpy.workflow.engines.contract import Step


class TapedWorld(World):
    """``real``, by the rules of a tape: the base of the others. One program runs in it."""

    rules: Rules

    def __init__(
        self,
        real: World | None = None,
        *,
        tape: Tape | None = None,
        steps: Sequence[Step] | None = None,
        writer: TapeWriter | None = None,
        origin: Origin | None = None,
        reads_anew: bool = False,
        command: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.real = World() if real is None else real
        self.tape = tape
        #: The records to begin with: by default all of the tape's.
        self.steps = steps
        self.writer = writer
        self.origin = origin
        #: Whether files that the program reads, and that were edited since, have their new content.
        self.reads_anew = reads_anew
        #: The options of `harnpy run` that a replay needs, too: by default the tape's.
        self.command = dict(command or {}) if tape is None or command else tape.header.command
        #: Called with the journal and the Vm before the program begins.
        self.on_begin: list[Callable[[TapeJournal, Any], object]] = []
        if tape is not None and tape.header.branch is not None:
            changes = inherited(tape)
            self.on_begin.append(lambda journal, vm: install(journal, vm, changes))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            return getattr(self.real, name)

    def tree(self, directory: str) -> Tree:
        """Return what is in a directory and below it, as processes have it."""
        return look(directory)

    def kept(self, store: Store) -> Store:
        """Return what a program has for a store that outlasts it."""
        return store

    def is_kept(self, status: str) -> bool:
        """Return whether the tape that was made of a run stays, which has ended with this status."""
        return True

    def vm_class(self) -> type[Vm]:
        """Return the class of the Vm whose programs see this world."""
        vm: type[Vm] = import_module("harnpy.tape.vm").TapedVm
        return vm


class Recording(TapedWorld):
    """Writes what a program sees of the real world to the tape at ``path``.

    The tape has its name once the program has ended, and is called ``<path>.partial`` until then. Raises
    `TapeError` when something else than a tape is at ``path``. Spec: 13 §4.
    """

    rules = RECORDING

    def __init__(
        self,
        path: str | os.PathLike[str],
        real: World | None = None,
        *,
        command: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(real, writer=TapeWriter(path), command=command)


class Replaying(TapedWorld):
    """Shows a program what is on a tape, and touches nothing outside but the streams that it prints to.

    Raises `TapeError` when the tape can't be read. What the program does otherwise than its tape says raises
    `TapeDiverged`. ``reads_anew``: a file that was edited since has its new content. Spec: 13 §4.
    """

    rules = REPLAYING

    def __init__(
        self, tape: Tape | str | os.PathLike[str], real: World | None = None, *, reads_anew: bool = False
    ) -> None:
        tape = tape if isinstance(tape, Tape) else read_tape(tape)
        if tape.job.kind != PROGRAM:
            raise TapeError(
                f"{tape.path} is the tape of a Python program: run that with `runtime(replay=...)`, "
                "docs/time-machine.md shows how"
            )
        super().__init__(real, tape=tape, reads_anew=reads_anew)
