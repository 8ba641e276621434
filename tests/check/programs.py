"""What the checks say of a program, for the tests of all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy import Vm
from harnpy.check.allow import silenced
from harnpy.check.lint.engine import lint
from harnpy.check.lint.settings import Settings
from harnpy.syntax.errors import SyntaxFault
from harnpy.syntax.parser import parse
from harnpy.syntax.span import Lines
from harnpy.syntax.structure import check_structure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.syntax.diagnostic import Diagnostic


def diagnostics(source: str, *, linted: bool = False, enabled: Sequence[str] = ()) -> list[Diagnostic]:
    """All that parser, structure and types have to say of a program, and lint if asked for, in this order.

    ``enabled``: rules of the linter that aren't on by default.
    """
    try:
        program = parse(source)
    except SyntaxFault as fault:
        return fault.diagnostics
    found = [found for fault in check_structure(program, source) for found in fault.diagnostics]
    settings = Settings(enabled=enabled)
    vm = Vm()
    known = vm.builtins.knowledge(), vm.imports_of(source, ".")
    findings = lint(source, program, "program.harn", *known, settings) if linted else []
    return [*found, *(one.diagnostic(Lines(source)) for one in silenced(source, findings))]
