"""From source to a compiled unit: parse, check, resolve, emit, compile; with the cache in front.

A unit is kept as plain data that `marshal` can write, so that a warm start parses nothing.
"""

from __future__ import annotations

from harnpy import cache
from harnpy.vm.unit import LANGUAGE, CompiledUnit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FunctionType
    from typing import Any

    from harnpy.vm.declare import BuiltinTable
    from harnpy.vm.emit.program import UnitDraft
    from harnpy.vm.emit.source_map import Line, SourceRange
    from harnpy.vm.front_end import Resolved
    from harnpy.vm.imports import Imports
    from harnpy.vm.resolve import Declared

    Written = tuple[UnitDraft, list[Line], list[SourceRange], dict[str, CodeType]]

#: The parts of a unit that are kept, in the order of its parameters; its warnings come after them.
_KEPT = ("codes", "called", "valued", "globals", "methods", "helpers")


def program_unit(
    source: str,
    file: str,
    entry: str | None,
    table: BuiltinTable,
    checks: str = LANGUAGE,
    imports: Imports | None = None,
) -> CompiledUnit:
    """The unit for a program, from the cache if it is there.

    What the static ``checks`` don't look for is left to fail when it runs (09 §3.1); ``imports`` are needed
    when there are any. Raises SourceFault (syntax, structure or what the checks refuse), KeyError for an
    unknown entry.
    """
    key = f"{entry or ''}\0{checks}\0{_fingerprint(table, imports)}\0{source}"
    key = _prepared(key, source, file, table)
    return _cached(
        "unit", key, source, file, lambda: compile_program(source, file, entry, table, checks, imports)
    )


def module_unit(source: str, file: str, table: BuiltinTable, imports: Imports) -> CompiledUnit:
    """The unit for an imported file, likewise. Raises SourceFault (syntax or structure)."""
    key = f"{_fingerprint(table, imports)}\0{source}"
    key = _prepared(key, source, file, table)

    def compiled() -> CompiledUnit:
        from harnpy.vm import front_end

        return front_end.module_unit(_unit, source, file, table, imports)

    return _cached("module", key, source, file, compiled)


def _cached(kind: str, key: str, source: str, file: str, make: Callable[[], CompiledUnit]) -> CompiledUnit:
    """The unit kept under ``kind`` and ``key``, else what ``make`` returns."""
    kept = cache.load(kind, key)
    if isinstance(kept, tuple) and len(kept) == len(_KEPT) + 1:
        return _kept_unit(file, source, kept)
    try:
        unit = make()
    except RecursionError:
        from harnpy.vm.front_end import too_long

        raise too_long(source, file) from None
    if unit.walked is None:
        cache.store(kind, key, (*(getattr(unit, field) for field in _KEPT), _packed_warnings(unit)))
    return unit


def _kept_unit(file: str, source: str, kept: tuple[Any, ...]) -> CompiledUnit:
    unit = CompiledUnit(file, source, *kept[:-1])
    if kept[-1]:
        from harnpy.check.findings import unpacked

        unit.warnings = unpacked(kept[-1])
    return unit


def _packed_warnings(unit: CompiledUnit) -> tuple[Any, ...]:
    if not unit.warnings:
        return ()
    from harnpy.check.findings import packed

    return packed(unit.warnings)


def _fingerprint(table: BuiltinTable, imports: Imports | None) -> str:
    """Changes whenever the same text may mean something else."""
    return f"{table.fingerprint()}\0{imports.fingerprint()}" if imports else table.fingerprint()


def _prepared(key: str, source: str, file: str, table: BuiltinTable) -> str:
    """``key`` for a file whose tree may be changed before it is compiled."""
    return f"{table.preparation.key(source, file)}\0{key}" if table.preparation else key


def compile_program(
    source: str, file: str, entry: str | None, table: BuiltinTable, checks: str, imports: Imports | None
) -> CompiledUnit:
    """Return what `program_unit` keeps, made anew."""
    from harnpy.vm import front_end

    return front_end.program_unit(_unit, source, file, entry, table, checks, imports)


def input_unit(
    source: str, file: str, declared: Declared, table: BuiltinTable, imports: Imports | None = None
) -> CompiledUnit:
    """Return the unit for one input of a REPL, which isn't kept."""
    from harnpy.vm import front_end

    return front_end.input_unit(_unit, source, file, declared, table, imports)


def listing_of(
    source: str, file: str, table: BuiltinTable, imports: Imports | None = None, as_module: bool = False
) -> str:
    """Return the Python that a program becomes, beside its own lines; ``as_module``: as an imported file.

    Raises SourceFault.
    """
    from harnpy.vm.emit.source_map import listing
    from harnpy.vm.front_end import resolved_module, resolved_program
    from harnpy.vm.imports import Imports

    if as_module:
        tree = resolved_module(source, file, table, imports or Imports())
    else:
        tree = resolved_program(source, file, None, table, imports)
    _, lines, _, _ = _written(tree, table)
    return listing(lines, source)


def _written(tree: Resolved, table: BuiltinTable) -> Written:
    """Write a tree as text that Python can compile; functions that it cannot express are walked instead."""
    from harnpy.vm.emit.emitter import TooDeep
    from harnpy.vm.emit.program import draft_of, unit_lines
    from harnpy.vm.emit.source_map import render

    walked: set[int] = set()
    while True:
        draft = draft_of(tree.program, tree.resolution, table, walked)
        try:
            lines = unit_lines(draft, tree.role, tree.entry)
            text, ranges = render(lines)
            return draft, lines, ranges, _codes(text)
        except TooDeep as deep:
            walked.add(id(deep.function))
        except (SyntaxError, RecursionError, MemoryError) as error:
            if not _is_limit(error):
                raise
            walked |= _inexpressible(draft) - walked or {id(tree.program)}


def _unit(tree: Resolved, table: BuiltinTable, source: str, file: str) -> CompiledUnit:
    from harnpy.vm.emit import helpers_used
    from harnpy.vm.emit.source_map import Locations

    draft, _, ranges, codes = _written(tree, table)
    locations = Locations(source, file, ranges, draft.names)
    unit = CompiledUnit(
        file,
        source,
        {name: locations.locate(code) for name, code in codes.items()},
        [(python, name, table.module_of(name)) for python, name in sorted(draft.called)],
        [(python, name, table.module_of(name)) for python, name in sorted(draft.valued)],
        sorted(draft.globals),
        sorted(draft.methods),
        helpers_used(codes.values()),
    )
    if draft.walked:
        from harnpy.vm.walk.program import walking_helpers

        unit.walked = lambda *given: walking_helpers(tree, *given)
    return unit


def _codes(text: str) -> dict[str, CodeType]:
    """Return the functions that a unit's text consists of, by name.

    Their definitions are executed, which calls none of them: the first `compile` of a process takes 0.9 ms
    more, since it makes Python's classes of syntax trees.
    """
    functions: dict[str, FunctionType | None] = {"walked_main": None}
    exec(text, functions)  # noqa: S102
    del functions["__builtins__"]
    return {name: function.__code__ for name, function in functions.items() if function is not None}


def _is_limit(error: Exception) -> bool:
    """Return True if Python refuses a text only because of how deep it is nested."""
    return not isinstance(error, SyntaxError) or "nested" in str(error) or "indent" in str(error)


def _inexpressible(draft: UnitDraft) -> set[int]:
    """The functions whose text alone is beyond Python's limits, by the identity of their nodes."""
    from harnpy.vm.emit.source_map import render

    found: set[int] = set()
    for function, lines in draft.makers:
        try:
            _codes(render(lines)[0])
        except (SyntaxError, RecursionError, MemoryError):
            found.add(id(function))
    return found
