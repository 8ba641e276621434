"""From source to a unit that runs: parse, check, resolve, emit, compile; with the cache in front."""

from __future__ import annotations

from harnpy.vm.unit import Unit, cached_unit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.syntax import ast
    from harnpy.vm.declare.table import BuiltinTable
    from harnpy.vm.emit.program import Text
    from harnpy.vm.emit.unit import UnitDraft
    from harnpy.vm.modules.offers import Imports
    from harnpy.vm.resolve.scopes import Declared, Resolution


def program_unit(
    source: str,
    file: str,
    entry: str | None,
    table: BuiltinTable,
    checked: bool = True,
    imports: Imports | None = None,
) -> Unit:
    """The unit for a program, from the cache if it is there.

    Unless ``checked``, what only the static checks refuse is left to fail when it runs (09 §3.1);
    ``imports`` are needed when there are any. Raises SourceFault (syntax, structure or an undefined call
    target), KeyError for an unknown entry.
    """
    key = f"{entry or ''}\0{checked}\0{_fingerprint(table, imports)}\0{source}"
    try:
        return cached_unit(
            "unit", key, source, file, lambda: compile_program(source, file, entry, table, checked, imports)
        )
    except RecursionError:
        raise _too_deep(0, source, file) from None


def module_unit(source: str, file: str, table: BuiltinTable, imports: Imports) -> Unit:
    """The unit for an imported file, likewise. Raises SourceFault (syntax or structure)."""
    key = f"{_fingerprint(table, imports)}\0{source}"
    try:
        return cached_unit("module", key, source, file, lambda: compile_module(source, file, table, imports))
    except RecursionError:
        raise _too_deep(0, source, file) from None


def _fingerprint(table: BuiltinTable, imports: Imports | None) -> str:
    """Changes whenever the same text may mean something else."""
    return f"{table.fingerprint()}\0{imports.fingerprint()}" if imports else table.fingerprint()


def compile_program(
    source: str,
    file: str,
    entry: str | None,
    table: BuiltinTable,
    checked: bool = True,
    imports: Imports | None = None,
) -> Unit:
    """What `program_unit` keeps, made anew."""
    from harnpy.vm.emit.program import program_text
    from harnpy.vm.resolve.names import Resolver
    from harnpy.vm.resolve.static_faults import refuse_faults
    from harnpy.vm.resolve.tree import entry_pipeline

    program = parsed(source, file)
    pipeline = entry_pipeline(program, entry)
    if entry is not None and pipeline is None:
        raise KeyError(entry)
    resolution = Resolver(table.is_builtin, table.is_global).program(program, pipeline, imports)
    if checked:
        refuse_faults(resolution, source, file, table)
    return _unit(program, resolution, table, lambda draft: program_text(draft, pipeline), source, file)


def compile_module(source: str, file: str, table: BuiltinTable, imports: Imports) -> Unit:
    """What `module_unit` keeps, made anew."""
    from harnpy.vm.emit.program import module_text
    from harnpy.vm.resolve.names import Resolver

    program = parsed(source, file)
    resolution = Resolver(table.is_builtin, table.is_global).module(program, imports)
    return _unit(program, resolution, table, module_text, source, file)


def compile_input(
    source: str, file: str, declared: Declared, table: BuiltinTable, imports: Imports | None = None
) -> Unit:
    """One input of a REPL: it reads and adds to what is ``declared``; its last expression is its value."""
    from harnpy.vm.emit.program import input_text
    from harnpy.vm.resolve.names import Resolver

    program = parsed(source, file)
    resolution = Resolver(table.is_builtin, table.is_global).input(program, declared, imports)
    return _unit(program, resolution, table, input_text, source, file)


def parsed(source: str, file: str) -> ast.Program:
    """The program's tree, its structure checked. Raises SourceFault."""
    from harnpy.syntax.parser import parse_cached
    from harnpy.syntax.structure import check_structure

    program = parse_cached(source, file)
    faults = check_structure(program, source, file)
    if faults:
        raise faults[0]
    return program


def _unit(
    program: ast.Program,
    resolution: Resolution,
    table: BuiltinTable,
    write: Callable[[UnitDraft], Text],
    source: str,
    file: str,
) -> Unit:
    """The unit whose text ``write`` makes.

    Blocks nested beyond what Python can express are refused like a syntax error.
    """
    from harnpy.vm.emit.function import TooDeep
    from harnpy.vm.emit.program import draft_of
    from harnpy.vm.emit.protocol import helpers_used

    draft = draft_of(program, resolution, table)
    try:
        text, offsets = write(draft)
    except TooDeep as deep:
        raise _too_deep(deep.offset, source, file) from None
    try:
        code = compile(text, f"<harn {file}>", "exec", dont_inherit=True, optimize=2)
    except (SyntaxError, RecursionError, MemoryError) as error:
        if isinstance(error, SyntaxError) and "nested" not in str(error) and "indent" not in str(error):
            raise
        line = getattr(error, "lineno", None) or 1
        raise _too_deep(offsets[min(line, len(offsets)) - 1], source, file) from None
    return Unit(
        file,
        source,
        code,
        offsets,
        draft.shown,
        sorted(draft.called),
        sorted(draft.valued),
        sorted(draft.globals),
        sorted(draft.methods),
        helpers_used(code),
    )


def _too_deep(offset: int, source: str, file: str) -> Exception:
    from harnpy.syntax.diagnostic import Diagnostic
    from harnpy.syntax.errors import CompileFault
    from harnpy.syntax.span import Lines

    lines = Lines(source)
    text = "nested too deeply; move the inner part into a function"
    found = Diagnostic("error", text, lines.span(offset, offset + 1), "too deep here")
    return CompileFault(lines.line(offset), text, [found], source, file)
