"""What the checks say of a program, for the tests of all of them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from harnpy import Vm
from harnpy.check.allow import silenced
from harnpy.check.checker import check_program
from harnpy.check.lint.rules import lint
from harnpy.check.lint.settings import Settings
from harnpy.syntax.diagnostic import Lines, SyntaxFault
from harnpy.syntax.parser import parse
from harnpy.syntax.structure import check_structure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.check.findings import Finding
    from harnpy.check.knowledge import Knowledge
    from harnpy.syntax.diagnostic import Diagnostic


@cache
def knowledge() -> Knowledge:
    """What is known of the builtins."""
    return Vm().builtins.knowledge()


def findings(source: str, *, strict: bool = False) -> list[Finding]:
    """What the type checker says of a program that parses."""
    imports = Vm().imports_of(source, ".")
    return check_program(parse(source), source, knowledge(), imports, strict=strict)


def said(source: str) -> list[str]:
    """The same as `line severity code message`."""
    lines = Lines(source)
    return [
        f"{lines.line(found.start)} {found.severity} {found.code}: {found.message}"
        for found in findings(source)
    ]


def diagnostics(
    source: str, *, linted: bool = False, enabled: Sequence[str] = (), strict: bool = False
) -> list[Diagnostic]:
    """All that parser, structure and types have to say of a program, and lint if asked for, in this order.

    ``enabled``: rules of the linter that aren't on by default; ``strict``: strict types.
    """
    try:
        program = parse(source)
    except SyntaxFault as fault:
        return fault.diagnostics
    found = [found for fault in check_structure(program, source) for found in fault.diagnostics]
    if found:
        return found
    each = findings(source, strict=strict)
    if linted:
        imports = Vm().imports_of(source, ".")
        each += lint(source, program, "program.harn", knowledge(), imports, Settings(enabled=enabled))
    return [one.diagnostic(Lines(source)) for one in silenced(source, each)]
