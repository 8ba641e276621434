"""Mutated programs end in a result or in a Harn error with a position: no Python traceback, no hang.

The seeds are the conformance programs; each is damaged in a way that leaves many of them running, and run
under a deadline of its own.
"""

from __future__ import annotations

import io
import random
import time
from pathlib import Path

import pytest

from harnpy import Vm, VmError
from harnpy.syntax.errors import SourceFault
from harnpy.vm.host import ExitRequest, Host

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted((ROOT / "conformance").rglob("*.harn"))
ROUNDS = 2_000
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


class Impatient(Host):
    """A host whose sleeps are short, so that a program that only waits is soon over."""

    def sleep(self, seconds: float) -> None:
        time.sleep(min(seconds, 0.01))


def outcome(source: str) -> str:
    vm = Vm(Impatient(stdout=lambda text: None, stderr=lambda text: None, stdin=io.StringIO("line\n")))
    vm.tasks.root.deadlines = (time.monotonic() + SECONDS,)
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


@pytest.mark.parametrize("part", range(8))
def test_damaged_programs_never_show_python(part: int) -> None:
    chance = random.Random(part)
    seen: dict[str, int] = {}
    for _ in range(ROUNDS // 8):
        path = chance.choice(PROGRAMS)
        source = damaged(path.read_text(encoding="utf-8"), chance)
        start = time.monotonic()
        try:
            result = outcome(source)
        except Exception as error:
            error.add_note(f"from {path.relative_to(ROOT)}:\n{source}")
            raise
        assert time.monotonic() - start < 10 * SECONDS, source
        seen[result] = seen.get(result, 0) + 1
    assert seen.keys() <= {"refused", "failed", "ran", "left"}, seen
    assert seen["refused"] > 20, seen
    assert seen["failed"] + seen["ran"] > 20, seen
