"""From source to a resolved tree, which the compiler and the walker read: parse, check, resolve.

All of it raises SourceFault for syntax and structure.
"""

from __future__ import annotations

from harnpy.syntax.parser import parse_cached
from harnpy.syntax.structure import check_structure
from harnpy.vm.resolve.names import Resolver
from harnpy.vm.resolve.tree import entry_pipeline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.syntax import ast
    from harnpy.vm.declare.table import BuiltinTable
    from harnpy.vm.modules.offers import Imports
    from harnpy.vm.resolve.scopes import Declared, Resolution


class Resolved:
    """A program, a module or an input of a REPL, with what its names mean.

    ``role``: ``"program"``, which starts at ``entry`` or at its first statement, ``"module"`` or ``"input"``.
    """

    __slots__ = ("entry", "program", "resolution", "role")

    def __init__(
        self, role: str, program: ast.Program, resolution: Resolution, entry: ast.Pipeline | None = None
    ) -> None:
        self.role = role
        self.program = program
        self.resolution = resolution
        self.entry = entry


def resolved_program(
    source: str, file: str, entry: str | None, table: BuiltinTable, checked: bool, imports: Imports | None
) -> Resolved:
    """A file to be run.

    Unless ``checked``, what only the static checks refuse is left to fail when it runs (09 §3.1). Raises
    SourceFault also for an undefined call target, KeyError for an unknown ``entry``.
    """
    program = _prepared(source, file, table)
    pipeline = entry_pipeline(program, entry)
    if entry is not None and pipeline is None:
        raise KeyError(entry)
    resolution = _resolver(table).program(program, pipeline, imports)
    if checked and resolution.has_faults:
        from harnpy.vm.resolve.static_faults import refuse_faults

        refuse_faults(resolution, source, file, table)
    return Resolved("program", program, resolution, pipeline)


def resolved_module(source: str, file: str, table: BuiltinTable, imports: Imports) -> Resolved:
    """A file that another imports."""
    program = _prepared(source, file, table)
    return Resolved("module", program, _resolver(table).module(program, imports))


def resolved_input(
    source: str, file: str, declared: Declared, table: BuiltinTable, imports: Imports | None
) -> Resolved:
    """An input of a REPL: it reads and adds to what is ``declared``."""
    program = parsed(source, file)
    return Resolved("input", program, _resolver(table).input(program, declared, imports))


def parsed(source: str, file: str) -> ast.Program:
    """The program's tree, its structure checked."""
    program = parse_cached(source, file)
    faults = check_structure(program, source, file)
    if faults:
        raise faults[0]
    return program


def _prepared(source: str, file: str, table: BuiltinTable) -> ast.Program:
    program = parsed(source, file)
    return program if table.preparation is None else table.preparation.changed(program, source, file)


def _resolver(table: BuiltinTable) -> Resolver:
    return Resolver(table.is_builtin, table.is_global)
