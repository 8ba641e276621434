"""The front end: from source to a checked and resolved tree, which the compiler and the walker read.

Parsing, structure, names and the verdict of the static checks; all of it raises SourceFault. A `ReplSession`
keeps what its inputs bind, and each input is resolved and checked with what those before it have declared.
"""

from __future__ import annotations

from harnpy.syntax.parser import parse_cached
from harnpy.syntax.structure import check_structure
from harnpy.vm.resolve import Declared, Variable, entry_pipeline
from harnpy.vm.resolve.names import Resolver
from harnpy.vm.unit import ALL, LANGUAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import TypeVar

    from harnpy.check.findings import Finding
    from harnpy.check.knowledge import Imported
    from harnpy.syntax import ast
    from harnpy.vm.declare import BuiltinTable
    from harnpy.vm.imports import Imports
    from harnpy.vm.resolve import Resolution
    from harnpy.vm.unit import Unit
    from harnpy.vm.values import Fn, Value
    from harnpy.vm.vm import Vm

    U = TypeVar("U", bound=Unit)
    Make = Callable[["Resolved", BuiltinTable, str, str], U]

# From source to a resolved tree, which the compiler and the walker read: parse, check, resolve.
#
# All of it raises SourceFault for syntax and structure.


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
    """Return what is wrong with a program whose tree is deeper than Python recurses.

    The syntax limits the nesting of brackets and blocks, so that is a chain of tens of thousands of operators
    or calls (01 §10).
    """
    from harnpy.syntax.diagnostic import CompileFault, Diagnostic, Lines

    text = "an expression is too long; put parts of it into variables"
    found = Diagnostic("error", text, Lines(source).span(0, 1), "in this file")
    return CompileFault(1, text, [found], source, file)


def _resolver(table: BuiltinTable) -> Resolver:
    return Resolver(table.is_builtin, table.is_global)


# What the static checks say of a program that is about to run. Spec: 03 §1.
#
# Asked when the program is compiled; what they warn of is kept with the compiled unit, so that a warm start
# checks nothing and still warns.


def warnings_of(
    tree: Resolved, source: str, file: str, table: BuiltinTable, imports: Imported | None, checks: str
) -> list[Finding]:
    """Return the warnings for a program that is to run. Raises SourceFault, with all findings, for an error.

    ``checks`` is ALL, or LANGUAGE to be silent on what the language itself leaves to the run.
    """
    from harnpy.check.checker import check_program

    # A tool may have put probes into the tree that runs.
    program = tree.program if table.preparation is None else parsed(source, file)
    found = check_program(program, source, table.knowledge(), imports)
    if not found:
        return []
    from harnpy.check.allow import CERTAIN, is_own, silenced

    found = silenced(source, found)
    if checks != ALL:
        found = [finding for finding in found if not is_own(finding.code)]
        for finding in found:
            finding.severity = "warning" if finding.code in CERTAIN else finding.severity
    error = next((finding for finding in found if finding.severity == "error"), None)
    if error is not None:
        raise _fault(error, found, source, file)
    # What is our own advice belongs to `harnpy check`: it is no part of what a program prints (09 §3.3).
    return [finding for finding in found if not is_own(finding.code)]


def _fault(error: Finding, found: Sequence[Finding], source: str, file: str) -> Exception:
    from harnpy.syntax.diagnostic import Lines, SourceFault

    lines = Lines(source)
    return SourceFault(error.message, [finding.diagnostic(lines) for finding in found], source, file)


class EarlierInputs:
    """The names that an input of a REPL sees: those of the inputs before it, and of its own imports.

    It is never ``complete``: a name that nobody has declared yet may be by the time a function is called.
    """

    def __init__(self, declared: Declared, imports: Imports | None) -> None:
        self._imports = imports
        self.complete = self.whole = False
        self.functions = imports.functions if imports else set()
        self.names = {*declared.names, *(imports.names if imports else ())}
        self.types: dict[str, ast.Node] = {**declared.structs, **(imports.types if imports else {})}

    def bound_by(self, node: ast.Import) -> Collection[str]:
        return self._imports.bound_by(node) if self._imports else ()

    def missing(self, node: ast.Import) -> None:
        """An import that fails says so when it runs."""


# Units: ``make`` is given a resolved tree, the builtins, the source and its file, and returns what can run.


def program_unit(
    make: Make[U],
    source: str,
    file: str,
    entry: str | None,
    table: BuiltinTable,
    checks: str = LANGUAGE,
    imports: Imports | None = None,
) -> U:
    """Return the unit for a program; without ``checks`` nothing is looked for before it runs."""
    tree = resolved_program(source, file, entry, table, imports)
    warnings = warnings_of(tree, source, file, table, imports, checks) if checks else ()
    unit = make(tree, table, source, file)
    unit.warnings = warnings
    return unit


def module_unit(make: Make[U], source: str, file: str, table: BuiltinTable, imports: Imports) -> U:
    """Return the unit for an imported file."""
    return make(resolved_module(source, file, table, imports), table, source, file)


def input_unit(
    make: Make[U],
    source: str,
    file: str,
    declared: Declared,
    table: BuiltinTable,
    imports: Imports | None = None,
) -> U:
    """Return the unit for an input of a REPL, which reads and adds to what is ``declared``."""
    earlier = EarlierInputs(declared, imports)
    tree = resolved_input(source, file, declared, table, imports)
    warnings = warnings_of(tree, source, file, table, earlier, LANGUAGE)
    unit = make(tree, table, source, file)
    unit.warnings = warnings
    return unit


# The inputs of a REPL: each is a program that sees what the ones before it bound. Spec: 09 §5.


class ReplSession:
    """Inputs that build on each other: each runs once, and what it binds stays (09 §5)."""

    def __init__(self, vm: Vm) -> None:
        self.vm = vm
        vm.file = "<repl>"
        # Functions of earlier inputs are to be seen when a later one asks for spans (04 §25).
        vm.traceable = True
        self.known = Declared()
        self.values: dict[str, Value] = {}
        self.impls: dict[str, dict[str, Fn]] = {}
        self.inputs = 0
        vm.start(lambda: None)

    def run(self, source: str, file: str | None = None) -> Value:
        """Run one input; the value of its last expression, else nil. What a failing one did before stays."""
        self.inputs += 1
        self.vm.signal.cancelled = False
        known = self.known.copy()
        imports = self.vm.imports_of(source, None)
        name = file or f"<repl:{self.inputs}>"
        unit = self.vm.units.input_unit(source, name, known, self.vm.builtins, imports)
        if unit.warnings and self.vm.on_warnings is not None:
            self.vm.on_warnings(unit)
        linker = self.vm.linker(unit, set()) if imports else None
        before = dict(self.values)
        try:
            main = unit.main(self.vm, self.impls, linker, self.values)
            value = self.vm.run(lambda: main(1))
        except BaseException:
            self._forget_undone(known, before)
            raise
        finally:
            self.known = known
        return value

    async def run_async(self, source: str, file: str | None = None) -> Value:
        """Like `run`, inside the running asyncio loop: while the input waits, the loop goes on."""
        from harnpy.vm.run.aio import run_inside

        return await run_inside(self.vm.tasks, lambda: self.run(source, file))

    def _forget_undone(self, known: Declared, before: dict[str, Value]) -> None:
        """Take from what an input declares the names that it failed to bind."""
        for name, variable in list(known.names.items()):
            old = self.known.names.get(name)
            if variable is old or (name in self.values and self.values[name] is not before.get(name)):
                continue
            if old is not None:
                known.names[name] = old
            elif name not in self.values:
                del known.names[name]

    def bind(self, name: str, value: Value) -> None:
        """Bind ``name`` from outside, as a `let` would."""
        variable = self.known.names[name] = Variable(name, 0, False, "let")
        variable.keep_in_table()
        variable.opaque = True
        from harnpy.vm.values.given import given

        self.values[name] = given(value, f"the name `{name}`")

    def names(self) -> list[str]:
        """The names bound so far."""
        return sorted(self.known.names)
