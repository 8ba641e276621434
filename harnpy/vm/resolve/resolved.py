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
    from collections.abc import Callable

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
    source: str, file: str, entry: str | None, table: BuiltinTable, imports: Imports | None
) -> Resolved:
    """A file to be run. Raises also KeyError, for an unknown ``entry``."""
    program = _prepared(source, file, table)
    pipeline = entry_pipeline(program, entry)
    if entry is not None and pipeline is None:
        raise KeyError(entry)
    resolver = _resolver(table)
    resolution = _resolution(lambda: resolver.program(program, pipeline, imports), source, file)
    return Resolved("program", program, resolution, pipeline)


def resolved_module(source: str, file: str, table: BuiltinTable, imports: Imports) -> Resolved:
    """A file that another imports."""
    program = _prepared(source, file, table)
    resolver = _resolver(table)
    return Resolved("module", program, _resolution(lambda: resolver.module(program, imports), source, file))


def resolved_input(
    source: str, file: str, declared: Declared, table: BuiltinTable, imports: Imports | None
) -> Resolved:
    """An input of a REPL: it reads and adds to what is ``declared``."""
    program = parsed(source, file)
    resolver = _resolver(table)
    resolution = _resolution(lambda: resolver.input(program, declared, imports), source, file)
    return Resolved("input", program, resolution)


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


def _resolution(resolve: Callable[[], Resolution], source: str, file: str) -> Resolution:
    try:
        return resolve()
    except RecursionError:
        raise too_long(source, file) from None


def too_long(source: str, file: str) -> Exception:
    """What is wrong with a program whose tree is deeper than Python recurses.

    The syntax limits the nesting of brackets and blocks, so that is a chain of tens of thousands of operators
    or calls (01 §10).
    """
    from harnpy.syntax.diagnostic import Diagnostic
    from harnpy.syntax.errors import CompileFault
    from harnpy.syntax.span import Lines

    text = "an expression is too long; put parts of it into variables"
    found = Diagnostic("error", text, Lines(source).span(0, 1), "in this file")
    return CompileFault(1, text, [found], source, file)


def _resolver(table: BuiltinTable) -> Resolver:
    return Resolver(table.is_builtin, table.is_global)
