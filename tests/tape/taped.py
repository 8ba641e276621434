"""Programs on tapes, for tests: recorded in an outside that counts (`tests.durable.runs`)."""

from __future__ import annotations

from pathlib import Path

from harnpy import Vm
from harnpy.tape import Recording, Tape, read_tape
from harnpy.world.files import RealFiles
from tests.durable.runs import Outside


class Placed(RealFiles):
    """The files of a process whose working directory is ``directory``."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._directory = str(directory)

    def cwd(self) -> str:
        return self._directory


def recorded(directory: Path, source: str, name: str = "a", outside: Outside | None = None) -> Tape:
    """Run a program in the directory, and return its tape, the file ``<name>.tape`` in there."""
    outside = Outside() if outside is None else outside
    outside.files = Placed(directory)
    path = directory / f"{name}.tape"
    vm = Vm(world=Recording(path, outside))
    outside.prepare(vm)
    try:
        vm.run_source(source, file="main.harn")
    except Exception:
        assert path.exists()
    return read_tape(path)


def provided(vm: Vm, file: str) -> None:
    """Give the Vm of a replay the provider that the recorded one had."""
    Outside().prepare(vm)
