"""From source to a unit that runs: parse, check, resolve, emit, compile; with the cache in front.

A `Unit` is a compiled program: plain data that `marshal` can keep, so that a warm start parses nothing.
"""

from __future__ import annotations

from _imp import _fix_co_filename  # type: ignore[attr-defined]  # what imports of .pyc files use

from harnpy import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType
    from typing import Any

    from harnpy.syntax.span import Lines
    from harnpy.vm.declare.table import BuiltinTable
    from harnpy.vm.emit.program import Text
    from harnpy.vm.emit.unit import UnitDraft
    from harnpy.vm.modules.linker import Linker
    from harnpy.vm.modules.offers import Imports
    from harnpy.vm.resolve.resolved import Resolved
    from harnpy.vm.resolve.scopes import Declared
    from harnpy.vm.values.objects import Fn
    from harnpy.vm.vm import Vm

    Value = Any

#: The parts of a unit that are kept, in the order of its parameters.
_KEPT = ("code", "called", "valued", "globals", "methods", "helpers")


class Unit:
    """A program, module or input that can run.

    ``directory`` is where the source file lies, None when there is none; ``module`` names the unit when it
    was imported.
    """

    __slots__ = ("_lines", "directory", "file", "module", "source")

    def __init__(self, file: str, source: str) -> None:
        self.file = file
        self.source = source
        self.directory: str | None = None
        self.module: str | None = None
        self._lines: Lines | None = None

    @property
    def lines(self) -> Lines:
        if self._lines is None:
            from harnpy.syntax.span import Lines

            self._lines = Lines(self.source)
        return self._lines

    def get_source(self, name: str) -> str:
        """The source text: to Python's `linecache`, which asks for it, the unit is a loader."""
        return self.source

    def main(
        self, vm: Vm, impls: dict[str, dict[str, Fn]], linker: Linker | None, table: dict[str, Value]
    ) -> Callable[[int], Value]:
        """What runs the unit, called with the depth of calls.

        ``impls`` collects its `impl` methods, ``linker`` does its imports, ``table`` holds the variables that
        its functions share with one another or with other inputs.
        """
        raise NotImplementedError


class CompiledUnit(Unit):
    """Generated code and what belongs to it.

    ``code`` has the positions of the Harn source (`harnpy.vm.emit.locations`). ``called`` and ``valued``
    (builtins, with the modules that declare them), ``globals``, ``methods``, ``helpers``: what the code
    refers to outside itself, each after the Python name that it has there. ``tree`` is there when some
    functions are walked; such a unit isn't cached.
    """

    __slots__ = ("called", "code", "globals", "helpers", "methods", "tree", "valued")

    def __init__(
        self,
        file: str,
        source: str,
        code: CodeType,
        called: list[tuple[str, str, str]],
        valued: list[tuple[str, str, str]],
        globals: list[tuple[str, str]],
        methods: list[tuple[str, str, int]],
        helpers: list[tuple[str, str]],
    ) -> None:
        super().__init__(file, source)
        self.code = code
        self.called = called
        self.valued = valued
        self.globals = globals
        self.methods = methods
        self.helpers = helpers
        self.tree: Resolved | None = None

    def main(
        self, vm: Vm, impls: dict[str, dict[str, Fn]], linker: Linker | None, table: dict[str, Value]
    ) -> Callable[[int], Value]:
        from harnpy.vm.run.namespace import namespace

        # The same text may have been compiled, and kept, under another name.
        _fix_co_filename(self.code, vm.path_of(self.file))
        space = namespace(vm, self, impls, linker)
        space["m"] = table
        if self.tree is not None:
            from harnpy.vm.walk.fallback import walking_helpers

            space.update(walking_helpers(vm, self, self.tree, impls, linker, table))
        exec(self.code, space)  # noqa: S102
        main: Callable[[int], Value] = space["main"]
        return main


def program_unit(
    source: str,
    file: str,
    entry: str | None,
    table: BuiltinTable,
    checked: bool = True,
    imports: Imports | None = None,
) -> CompiledUnit:
    """The unit for a program, from the cache if it is there.

    Unless ``checked``, what only the static checks refuse is left to fail when it runs (09 §3.1);
    ``imports`` are needed when there are any. Raises SourceFault (syntax, structure or an undefined call
    target), KeyError for an unknown entry.
    """
    key = f"{entry or ''}\0{checked}\0{_fingerprint(table, imports)}\0{source}"
    try:
        return _cached(
            "unit", key, source, file, lambda: compile_program(source, file, entry, table, checked, imports)
        )
    except RecursionError:
        raise _too_deep(0, source, file) from None


def module_unit(source: str, file: str, table: BuiltinTable, imports: Imports) -> CompiledUnit:
    """The unit for an imported file, likewise. Raises SourceFault (syntax or structure)."""
    key = f"{_fingerprint(table, imports)}\0{source}"
    try:
        return _cached("module", key, source, file, lambda: compile_module(source, file, table, imports))
    except RecursionError:
        raise _too_deep(0, source, file) from None


def _cached(kind: str, key: str, source: str, file: str, make: Callable[[], CompiledUnit]) -> CompiledUnit:
    """The unit kept under ``kind`` and ``key``, else what ``make`` returns."""
    kept = cache.load(kind, key)
    if isinstance(kept, tuple) and len(kept) == len(_KEPT):
        return CompiledUnit(file, source, *kept)
    unit = make()
    if unit.tree is None:
        cache.store(kind, key, tuple(getattr(unit, field) for field in _KEPT))
    return unit


def _fingerprint(table: BuiltinTable, imports: Imports | None) -> str:
    """Changes whenever the same text may mean something else."""
    return f"{table.fingerprint()}\0{imports.fingerprint()}" if imports else table.fingerprint()


def compile_program(
    source: str, file: str, entry: str | None, table: BuiltinTable, checked: bool, imports: Imports | None
) -> CompiledUnit:
    """What `program_unit` keeps, made anew."""
    from harnpy.vm.emit.program import program_text
    from harnpy.vm.resolve.resolved import resolved_program

    tree = resolved_program(source, file, entry, table, checked, imports)
    return _unit(tree, table, lambda draft: program_text(draft, tree.entry), source, file)


def compile_module(source: str, file: str, table: BuiltinTable, imports: Imports) -> CompiledUnit:
    """What `module_unit` keeps, made anew."""
    from harnpy.vm.emit.program import module_text
    from harnpy.vm.resolve.resolved import resolved_module

    return _unit(resolved_module(source, file, table, imports), table, module_text, source, file)


def input_unit(
    source: str, file: str, declared: Declared, table: BuiltinTable, imports: Imports | None = None
) -> CompiledUnit:
    """One input of a REPL: it reads and adds to what is ``declared``; its last expression is its value."""
    from harnpy.vm.emit.program import input_text
    from harnpy.vm.resolve.resolved import resolved_input

    return _unit(resolved_input(source, file, declared, table, imports), table, input_text, source, file)


def _unit(
    tree: Resolved,
    table: BuiltinTable,
    write: Callable[[UnitDraft], Text],
    source: str,
    file: str,
) -> CompiledUnit:
    """The unit whose text ``write`` makes. Functions that Python cannot express are walked instead."""
    from harnpy.vm.emit.function import TooDeep
    from harnpy.vm.emit.locations import Locations
    from harnpy.vm.emit.program import draft_of
    from harnpy.vm.emit.protocol import helpers_used

    walked: set[int] = set()
    while True:
        draft = draft_of(tree.program, tree.resolution, table, walked)
        try:
            text, stretches = write(draft)
            code = _code(text, file)
        except TooDeep as deep:
            walked.add(id(deep.function))
        except (SyntaxError, RecursionError, MemoryError) as error:
            if not _is_limit(error):
                raise
            walked |= _inexpressible(draft, file) - walked or {id(tree.program)}
        else:
            break
    unit = CompiledUnit(
        file,
        source,
        Locations(source, file, stretches, draft.names).locate(code),
        [(python, name, table.module_of(name)) for python, name in sorted(draft.called)],
        [(python, name, table.module_of(name)) for python, name in sorted(draft.valued)],
        sorted(draft.globals),
        sorted(draft.methods),
        helpers_used(code),
    )
    unit.tree = tree if walked else None
    return unit


def _code(text: str, file: str) -> CodeType:
    return compile(text, file, "exec", dont_inherit=True, optimize=2)


def _is_limit(error: Exception) -> bool:
    """Whether Python refuses a text only because of how deep it is nested."""
    return not isinstance(error, SyntaxError) or "nested" in str(error) or "indent" in str(error)


def _inexpressible(draft: UnitDraft, file: str) -> set[int]:
    """The functions whose text alone is beyond Python's limits, by the identity of their nodes."""
    from harnpy.vm.emit.writer import render

    found: set[int] = set()
    for function, lines in draft.makers:
        try:
            _code(render(lines)[0], file)
        except (SyntaxError, RecursionError, MemoryError):
            found.add(id(function))
    return found


def _too_deep(offset: int, source: str, file: str) -> Exception:
    from harnpy.syntax.diagnostic import Diagnostic
    from harnpy.syntax.errors import CompileFault
    from harnpy.syntax.span import Lines

    lines = Lines(source)
    text = "nested too deeply; move the inner part into a function"
    found = Diagnostic("error", text, lines.span(offset, offset + 1), "too deep here")
    return CompileFault(lines.line(offset), text, [found], source, file)
