"""The whole text of a unit: the makers of its functions, then `main`, which runs it."""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.emit.function import DISCARD, RETURN, Emitter
from harnpy.vm.emit.tables import WRITERS
from harnpy.vm.emit.unit import UnitDraft
from harnpy.vm.emit.writer import Line
from harnpy.vm.resolve.tree import lineage, script_order, setup_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence, Set

    from harnpy.vm.declare.table import BuiltinTable
    from harnpy.vm.resolve.scopes import Resolution


def draft_of(
    program: ast.Program, resolution: Resolution, table: BuiltinTable, walked: Set[int] = frozenset()
) -> UnitDraft:
    return UnitDraft(program, resolution, table, WRITERS, walked)


def program_lines(unit: UnitDraft, entry: ast.Pipeline | None) -> list[Line]:
    """The text of a program that starts at ``entry``, or at its first statement; it defines ``main(d)``."""
    if entry is None:
        return _main_lines(unit, _script)
    return _main_lines(unit, lambda e: _pipeline(e, entry), whole=entry)


def input_lines(unit: UnitDraft) -> list[Line]:
    """Like a script's, but `main` returns the value of a last expression (REPL)."""
    return _main_lines(unit, lambda e: e.statements(script_order(unit.program), RETURN))


def module_lines(unit: UnitDraft) -> list[Line]:
    """The text of a module: its declarations, and what it hands out."""
    return _main_lines(unit, _module, "module")


def _main_lines(
    unit: UnitDraft,
    body: Callable[[Emitter], None],
    shown: str = "pipeline",
    whole: ast.Node | None = None,
) -> list[Line]:
    """The lines of a unit; ``whole`` is the node that `main` is made from, if not the file."""
    unit.names["main"] = shown, shown
    if id(unit.program) in unit.walked:
        return [Line(0, "main = walked_main", unit.start)]
    function = unit.resolution.functions[id(unit.program)]
    e = Emitter(unit, function)
    e.indent = 1
    e.open_scope(unit.program)
    with e.deferring():
        body(e)
    head = [Line(0, "def main(d):", whole or unit.start)]
    if e.uses_depth:
        head.append(Line(1, "e = d + 1", whole or unit.start))
    makers = [line for _, lines in unit.makers for line in lines]
    return [*makers, *head, *e.lines, Line(1, "return None", unit.start)]


def _script(e: Emitter) -> None:
    """Top-level statements in order; only an executed `return` gives a value (02 §10.5)."""
    e.statements(script_order(e.unit.program), DISCARD)


def _module(e: Emitter) -> None:
    """Imports, variables, functions; then what its importers may have of them (06 §4)."""
    program = e.unit.program
    e.statements(setup_order(program), DISCARD)
    functions = [node for node in program.items if isinstance(node, ast.FnDecl)]
    tools = [node for node in program.items if isinstance(node, ast.ToolDecl)]
    # Few files declare tools.
    published = [_by_name(e, functions), *([_by_name(e, tools)] if tools else [])]
    e.line(f"publish({', '.join(published)})")
    for node in program.items:
        if isinstance(node, ast.Import) and node.pub:
            e.at = node
            e.line(f"pass_on({node.path!r}, {node.names!r})")


def _by_name(e: Emitter, nodes: Sequence[ast.FnDecl | ast.ToolDecl]) -> str:
    """A dict display of what the nodes declare."""
    return f"{{{', '.join(f'{node.name!r}: {e.declared_by(node, node.name).python}' for node in nodes)}}}"


def _pipeline(e: Emitter, entry: ast.Pipeline) -> None:
    """The setup, the pipelines that ``entry`` extends, ``entry`` itself (02 §10.2, §10.4)."""
    program = e.unit.program
    e.statements(setup_order(program), DISCARD)
    for pipeline in lineage(program, entry):
        e.open_scope(pipeline)
        e.statements(pipeline.body.statements, RETURN if pipeline is entry else DISCARD)
