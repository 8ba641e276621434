"""What the agent-aware checks say of a program, through the checker."""

from __future__ import annotations

from harnpy import Vm
from harnpy.check.allow import silenced
from harnpy.check.checker import check_program
from harnpy.check.findings import Finding
from harnpy.syntax.parser import parse

#: What the types have to say beside it, in programs that aren't about them.
_OTHERS = ("undefined-name", "undefined-call", "immutable-assignment", "unreachable-code")


def findings(source: str, vm: Vm | None = None) -> list[Finding]:
    vm = vm or Vm()
    found = check_program(parse(source), source, vm.builtins.knowledge(), vm.imports_of(source, "."))
    return [each for each in silenced(source, found) if each.code not in _OTHERS]


def told(source: str) -> list[tuple[str, str, str]]:
    """Return code, message and the text that is marked, of all findings."""
    return [(found.code, found.message, source[found.start : found.end]) for found in findings(source)]
