"""From source to something that runs: parse, check, resolve, emit, compile; and the cache in front.

A `Unit` is a compiled program: plain data that `marshal` can keep, so that a warm start parses nothing.
"""

from __future__ import annotations

from harnpy.syntax import cache
from harnpy.vm.run.namespace import helpers_used

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType
    from typing import Any

    from harnpy.syntax import ast
    from harnpy.syntax.span import Lines
    from harnpy.vm.declare.table import BuiltinTable
    from harnpy.vm.modules.offers import Imports
    from harnpy.vm.resolve.scopes import Declared, Resolution


#: The parts of a unit that are kept, in the order of its parameters.
_KEPT = ("code", "offsets", "shown", "called", "valued", "globals", "methods", "helpers")


class Unit:
    """Generated code and what belongs to it.

    ``offsets``: the source offset of each line of the generated text. ``shown``: the names of generated
    functions in backtraces. ``called`` and ``valued`` (builtins), ``globals``, ``methods``, ``helpers``:
    what the code refers to outside itself. ``directory`` is where the source file lies, None when there
    is none; ``module`` names the unit when it was imported.
    """

    __slots__ = (
        "_lines",
        "called",
        "code",
        "directory",
        "file",
        "globals",
        "helpers",
        "methods",
        "module",
        "offsets",
        "shown",
        "source",
        "valued",
    )

    def __init__(
        self,
        file: str,
        source: str,
        code: CodeType,
        offsets: list[int],
        shown: dict[str, str],
        called: list[str],
        valued: list[str],
        globals: list[str],
        methods: list[tuple[str, int]],
        helpers: list[str],
    ) -> None:
        self.file = file
        self.source = source
        self.code = code
        self.offsets = offsets
        self.shown = shown
        self.called = called
        self.valued = valued
        self.globals = globals
        self.methods = methods
        self.helpers = helpers
        self.directory: str | None = None
        self.module: str | None = None
        self._lines: Lines | None = None

    @property
    def lines(self) -> Lines:
        if self._lines is None:
            from harnpy.syntax.span import Lines

            self._lines = Lines(self.source)
        return self._lines


def load(
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
    return _kept(
        "unit", key, source, file, lambda: compile_program(source, file, entry, table, checked, imports)
    )


def load_module(source: str, file: str, table: BuiltinTable, imports: Imports) -> Unit:
    """The unit for an imported file, likewise. Raises SourceFault (syntax or structure)."""
    key = f"{_fingerprint(table, imports)}\0{source}"
    return _kept("module", key, source, file, lambda: compile_module(source, file, table, imports))


def _kept(kind: str, key: str, source: str, file: str, make: Callable[[], Unit]) -> Unit:
    kept = cache.load(kind, key)
    if isinstance(kept, tuple) and len(kept) == len(_KEPT):
        return Unit(file, source, *kept)
    try:
        unit = make()
    except RecursionError:
        raise _too_deep(0, source, file) from None
    cache.store(kind, key, tuple(getattr(unit, field) for field in _KEPT))
    return unit


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
    from harnpy.vm.resolve.names import Resolver
    from harnpy.vm.resolve.tree import entry_pipeline

    program = parsed(source, file)
    pipeline = entry_pipeline(program, entry)
    if entry is not None and pipeline is None:
        raise KeyError(entry)
    resolution = Resolver(table.is_builtin, table.is_global, imports=imports).program(program, pipeline)
    if checked:
        refuse_static_faults(resolution, source, file, table)
    emitter = _emitter(program, resolution, table)
    text, offsets = _written(lambda: emitter.program_text(pipeline), source, file)
    return _unit(emitter, text, offsets, source, file)


def compile_module(source: str, file: str, table: BuiltinTable, imports: Imports) -> Unit:
    from harnpy.vm.resolve.names import Resolver

    program = parsed(source, file)
    resolution = Resolver(table.is_builtin, table.is_global, imports=imports).module(program)
    emitter = _emitter(program, resolution, table)
    text, offsets = _written(emitter.module_text, source, file)
    return _unit(emitter, text, offsets, source, file)


def compile_input(
    source: str, file: str, known: Declared, table: BuiltinTable, imports: Imports | None = None
) -> Unit:
    """One input of a REPL: it reads and adds to what is ``known``; its last expression is its value."""
    from harnpy.vm.resolve.names import Resolver

    program = parsed(source, file)
    resolution = Resolver(table.is_builtin, table.is_global, known, imports).program(program, None)
    emitter = _emitter(program, resolution, table)
    text, offsets = _written(emitter.input_text, source, file)
    return _unit(emitter, text, offsets, source, file)


def parsed(source: str, file: str) -> ast.Program:
    """The program's tree, its structure checked."""
    from harnpy.syntax.parser import parse_cached
    from harnpy.syntax.structure import check_structure

    program = parse_cached(source, file)
    faults = check_structure(program, source, file)
    if faults:
        raise faults[0]
    return program


def _emitter(program: ast.Program, resolution: Resolution, table: BuiltinTable) -> Any:
    from harnpy.vm.emit.unit import UnitEmitter

    return UnitEmitter(program, resolution, table)


def _written(write: Any, source: str, file: str) -> tuple[str, list[int]]:
    """The generated text; blocks nested beyond what Python can say are refused like a syntax error."""
    from harnpy.vm.emit.function import TooDeep

    try:
        text: tuple[str, list[int]] = write()
    except TooDeep as deep:
        raise _too_deep(deep.offset, source, file) from None
    return text


def _too_deep(offset: int, source: str, file: str) -> Exception:
    from harnpy.syntax.diagnostic import Diagnostic
    from harnpy.syntax.errors import CompileFault
    from harnpy.syntax.span import Lines

    lines = Lines(source)
    text = "nested too deeply; move the inner part into a function"
    found = Diagnostic("error", text, lines.span(offset, offset + 1), "too deep here")
    return CompileFault(lines.line(offset), text, [found], source, file)


def _unit(emitter: Any, text: str, offsets: list[int], source: str, file: str) -> Unit:
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
        emitter.shown,
        sorted(emitter.called),
        sorted(emitter.valued),
        sorted(emitter.globals),
        sorted(emitter.methods),
        helpers_used(code),
    )


def refuse_static_faults(resolution: Resolution, source: str, file: str, table: BuiltinTable) -> None:
    """Calls of what nobody defines, misplaced `yield` and `emit`: errors before the run. Spec: 03 §8, §9.

    A module that was not found may define anything.
    """
    found = [(node, text) for node, text in resolution.misplaced]
    undefined = resolution.undefined_calls if resolution.complete else []
    found += [(node, _undefined_call(node.name, seen, table)) for node, seen in undefined]
    if not found:
        return
    from harnpy.syntax.diagnostic import Diagnostic
    from harnpy.syntax.errors import SourceFault
    from harnpy.syntax.span import Lines

    lines = Lines(source)
    found.sort(key=lambda pair: pair[0].start)
    diagnostics = [Diagnostic("error", text, lines.span(node.start, node.end)) for node, text in found]
    raise SourceFault(found[0][1], diagnostics, source, file)


def _undefined_call(name: str, visible: tuple[str, ...], table: BuiltinTable) -> str:
    from harnpy.syntax.spell import nearest

    text = f"call target `{name}` is not defined or imported"
    hint = nearest(name, [*sorted(table.names()), *sorted(visible)], limit=2)
    return f"{text} — did you mean `{hint}`?" if hint else text
