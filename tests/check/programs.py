"""What the checks say of a program, for the tests of all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.syntax.errors import SyntaxFault
from harnpy.syntax.parser import parse
from harnpy.syntax.structure import check_structure

if TYPE_CHECKING:
    from harnpy.syntax.diagnostic import Diagnostic


def diagnostics(source: str) -> list[Diagnostic]:
    """All that parser, structure, types and lint have to say of a program, in this order."""
    try:
        program = parse(source)
    except SyntaxFault as fault:
        return fault.diagnostics
    return [found for fault in check_structure(program, source) for found in fault.diagnostics]
