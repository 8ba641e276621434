"""Mutated programs end in a result or in a Harn error with a position: no Python traceback, no hang.

The seeds are the conformance programs; each is damaged in a way that leaves many of them running, and run
under a deadline of its own, in simulated time.
"""

from __future__ import annotations

import errno
import io
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harnpy import Vm, VmError
from harnpy.syntax.diagnostic import SourceFault
from harnpy.vm.errors import ExitRequest
from harnpy.world.processes import Ended
from tests.clock import SimulatedClock, simulated_time
from tests.counts import COUNT
from tests.support import ends
from tests.worlds import OwnWorld

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted((ROOT / "conformance").rglob("*.harn"))
PARTS = 4
SECONDS = 1.0
TOKENS = [
    *"{}()[],:;.=+-*/%<>!?|&@$\"\n", "->", "|>", "??", "==", "&&", "nil", "true", "1", "9223372036854775807",
    "0.5", '"s"', "x", "let ", "var ", "fn ", "return ", "throw ", "try ", "catch ", "for ", " in ", "while ",
    "match ", "if ", "else ", "spawn ", "yield ", "defer ", "retry 2 ", "_", "...", "to ", "${", "break",
]  # fmt: skip


def damaged(source: str, chance: random.Random) -> str:
    """One to four small edits."""
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(source) + 1)
        match chance.randrange(5):
            case 0:
                source = source[:at] + source[at + chance.randint(1, 8) :]
            case 1:
                source = source[:at] + chance.choice(TOKENS) + source[at:]
            case 2:
                lines = source.split("\n")
                chance.shuffle(lines)
                source = "\n".join(lines)
            case 3:
                source = source[:at]
            case 4:
                start = chance.randrange(len(source) + 1)
                source = source[:at] + source[start : start + chance.randint(1, 20)] + source[at:]
    return source


class Harmless(OwnWorld):
    """Nobody knows what a damaged program does to the world: it runs no others, and writes in its directory
    only."""

    def __init__(self, directory: Path, clock: SimulatedClock) -> None:
        super().__init__(lambda text: None, lambda text: None, io.StringIO("line\n"))
        self._directory = str(directory)
        self.clock = clock

    def cwd(self) -> str:
        return self._directory

    async def run(self, *argv: Any, **how: Any) -> Ended:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    def write_text(self, path: str, *how: Any, **named: Any) -> None:
        super().write_text(self._own(path), *how, **named)

    def rename(self, path: str, new: str) -> None:
        super().rename(self._own(path), self._own(new))

    def delete_file(self, path: str, root: str) -> None:
        super().delete_file(self._own(path), self._own(root))

    def make_directory(self, path: str) -> None:
        super().make_directory(self._own(path))

    def try_lock(self, path: str) -> Callable[[], object] | None:
        return super().try_lock(self._own(path))

    def _own(self, path: str) -> str:
        if not os.path.realpath(path).startswith(self._directory):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        return path


def outcome(source: str, directory: Path, clock: SimulatedClock) -> str:
    vm = Vm(Harmless(directory, clock))
    vm.tasks.root.deadlines = (clock.monotonic() + SECONDS,)
    vm.tasks.may_interrupt = True
    vm.tasks.refresh()
    try:
        vm.run_source(source, file="fuzz.harn")
    except SourceFault as fault:
        placed = all(found.span or " at line " in found.message for found in fault.diagnostics)
        return "refused" if placed else f"refused without a position: {fault}"
    except VmError as error:
        return "failed" if error.frames else f"failed without a position: {error}"
    except ExitRequest:
        return "left"
    return "ran"


@pytest.mark.parametrize("part", range(PARTS))
def test_damaged_programs_never_show_python(part: int, tmp_path: Path) -> None:
    chance = random.Random(COUNT.seed + part)
    seen: dict[str, int] = {}
    for _ in range(COUNT.fuzzed_runs // PARTS):
        path = chance.choice(PROGRAMS)
        source = damaged(path.read_text(encoding="utf-8"), chance)
        try:
            with ends(), simulated_time() as clock:
                result = outcome(source, tmp_path, clock)
        except Exception as error:
            error.add_note(f"from {path.relative_to(ROOT)}:\n{source}")
            raise
        seen[result] = seen.get(result, 0) + 1
    assert seen.keys() <= {"refused", "failed", "ran", "left"}, seen
    assert seen["refused"] > 20, seen
    assert seen["failed"] + seen["ran"] > 10, seen
