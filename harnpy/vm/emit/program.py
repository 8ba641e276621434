"""The whole text of a unit: the makers of its functions, then `main`, which runs it.

A `UnitDraft` is what the functions of one unit share while its text is written: it notes what the text refers
to outside itself, and collects the makers. `WRITERS` lists which function writes which node.
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.syntax.ast import walk
from harnpy.syntax.names import lineage, script_order, setup_order
from harnpy.vm import emit
from harnpy.vm.emit import CONSTANT, NIL, SLOT, Operand, constant
from harnpy.vm.emit.emitter import DISCARD, RETURN, Emitter
from harnpy.vm.emit.source_map import Line
from harnpy.vm.resolve.kinds import Kinds
from harnpy.vm.resolve.names import CALLS, calls_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence, Set
    from typing import Any

    from harnpy.vm.declare import BuiltinTable
    from harnpy.vm.emit.source_map import Names
    from harnpy.vm.resolve import Resolution, Variable

    #: Writes a node of one class; the first argument is the function that it stands in.
    Writer = Callable[..., Any]

#: Nodes whose evaluation can assign to a local of the function they stand in …
_ASSIGNING = (ast.If, ast.Match, ast.Try, ast.Retry, ast.Deadline, ast.Select)
#: … and those that are functions of their own.
_FUNCTIONS = (ast.Closure, ast.FnExpr, ast.Spawn)


class Writers:
    """The functions that write nodes, by the class of the node.

    ``expressions`` return Python text; ``forms`` (blocks with a value) put it into a destination;
    ``statements`` have no value.
    """

    def __init__(
        self,
        expressions: ast.NodeTable,
        forms: ast.NodeTable,
        statements: ast.NodeTable,
    ) -> None:
        self.expressions = expressions
        self.forms = forms
        self.statements = statements


class UnitDraft:
    """One resolved program being written against a table of builtins."""

    def __init__(
        self,
        program: ast.Program,
        resolution: Resolution,
        table: BuiltinTable,
        writers: Writers,
        walked: Set[int],
    ) -> None:
        self.program = program
        self.resolution = resolution
        self.table = table
        self.writers = writers
        self.kinds = Kinds(resolution)
        self.walked = walked
        """Functions that Python cannot express, by the identity of their nodes: they are walked."""
        self.start: ast.Node = ast.Program(0, 0, ())
        """The beginning of the file: what lines that belong to no node stand for."""
        self.makers: list[tuple[ast.Node, list[Line]]] = []
        """The functions written so far, each with the lines of its maker."""
        self.names: dict[str, Names] = {"<module>": ("<module>", "<module>")}
        """What generated functions are called."""
        self.called: set[tuple[str, str]] = set()
        self.valued: set[tuple[str, str]] = set()
        self.globals: set[tuple[str, str]] = set()
        self.methods: set[tuple[str, str, int]] = set()
        impls = [item for item in program.items if isinstance(item, ast.ImplDecl)]
        self.impl_methods = {method.name for impl in impls for method in impl.methods}
        """The names of the methods of the file's `impl` blocks."""
        self._functions = 0
        self._calling: dict[int, bool] = {}
        self._assigning: dict[int, bool] = {}

    # --- what the text refers to ------------------------------------------------------------------

    def builtin_function(self, name: str) -> str:
        python = emit.builtin_function(name)
        self.called.add((python, name))
        return python

    def builtin_value(self, name: str) -> Operand:
        python = emit.builtin_value(name)
        self.valued.add((python, name))
        return Operand(python, SLOT)

    def global_value(self, name: str) -> Operand:
        python = emit.global_value(name)
        self.globals.add((python, name))
        return Operand(python, SLOT)

    def method_table(self, name: str, count: int) -> str:
        python = emit.method_table(name, count)
        self.methods.add((python, name, count))
        return python

    # --- functions --------------------------------------------------------------------------------

    def number_function(self, shown: str) -> int:
        """A number for one more function, which backtraces call ``shown``."""
        self._functions += 1
        number = self._functions
        self.names[f"f{number}"] = shown, shown
        # Profiles tell functions on one line apart by their names.
        self.names[f"f{number}_items"] = f"{shown}.<items>", shown
        self.names[f"make{number}"] = f"<maker of {shown}>", "<closure>"
        return number

    def calls_out(self, fn: ast.FnDecl) -> bool:
        """Return True if running ``fn`` may call user code."""
        if id(fn) not in self._calling:
            self._calling[id(fn)] = calls_out(fn)
        return self._calling[id(fn)]

    def assigns_locals(self, node: ast.Node) -> bool:
        """Return True if evaluating ``node`` can assign to a variable of the function around it."""
        known = self._assigning.get(id(node))
        if known is None:
            below = () if isinstance(node, _FUNCTIONS) else node.children()
            # A list, not a generator: that would recurse through C.
            inside = [self.assigns_locals(child) for child in below]
            known = isinstance(node, _ASSIGNING) or True in inside
            self._assigning[id(node)] = known
        return known

    def may_change(self, variable: Variable, node: ast.Node) -> bool:
        """Return True if evaluating ``node`` can assign to ``variable``; any call can if it is shared."""
        if variable.shared and any(isinstance(part, CALLS) for part in walk(node)):
            return True
        return self.assigns_locals(node)


# Which function writes which node. A new construct adds a row; nothing else grows.


_EXPRESSIONS = ast.NodeTable(
    emit.__name__,
    {
        ast.Int: lambda e, node, into: constant(node.value),
        ast.Float: "expressions.floating",
        ast.Str: lambda e, node, into: Operand(ascii(node.value), CONSTANT),
        ast.Bool: lambda e, node, into: constant(node.value),
        ast.Nil: lambda e, node, into: NIL,
        ast.Duration: lambda e, node, into: f"Duration({node.ms})",
        ast.Interp: "expressions.interpolation",
        ast.List: "expressions.list_",
        ast.Dict: "expressions.dict_",
        ast.StructLit: "expressions.struct",
        ast.Spread: "expressions.spread",
        ast.Name: "expressions.name",
        ast.Member: "expressions.member",
        ast.Index: "expressions.index",
        ast.Slice: "expressions.slice_",
        ast.Unary: "expressions.unary",
        ast.Binary: "expressions.binary",
        ast.Ternary: "expressions.ternary",
        ast.RangeTo: "expressions.range_to",
        ast.Pipe: "calls.pipe",
        ast.Call: "calls.call",
        ast.MethodCall: "calls.method_call",
        ast.Propagate: "statements.propagate",
        ast.TryStar: "statements.try_star",
        ast.Closure: "functions.closure",
        ast.FnExpr: "functions.closure",
        ast.Spawn: "functions.spawn",
        ast.Parallel: "functions.parallel",
    },
)

_FORMS = ast.NodeTable(
    emit.__name__,
    {
        ast.If: "statements.if_",
        ast.Match: "patterns.match",
        ast.Try: "statements.try_",
        ast.Retry: "statements.retry",
        ast.Deadline: "statements.deadline",
        ast.Select: "statements.select",
    },
)

_STATEMENTS = ast.NodeTable(
    emit.__name__,
    {
        ast.Let: "patterns.let",
        ast.Assign: "patterns.assign",
        ast.For: "statements.for_",
        ast.While: "statements.while_",
        ast.Break: "statements.break_",
        ast.Continue: "statements.continue_",
        ast.Return: "statements.return_",
        ast.Throw: "statements.throw",
        ast.Yield: "statements.yield_",
        ast.Emit: "statements.yield_",
        ast.Guard: "statements.guard",
        ast.Require: "statements.require",
        ast.Defer: "functions.defer",
        ast.FnDecl: "functions.declaration",
        ast.ImplDecl: "functions.impl",
        ast.StructDecl: "statements.struct",
        ast.EnumDecl: "statements.nothing",
        ast.InterfaceDecl: "statements.nothing",
        ast.TypeDecl: "statements.nothing",
        ast.Pipeline: "statements.nothing",
        ast.Override: "statements.nothing",
        ast.Block: "statements.block",
        ast.Import: "statements.import_",
        ast.ToolDecl: "functions.tool",
        ast.SkillDecl: "statements.skill",
        ast.EvalPack: "statements.eval_pack",
        ast.Mutex: "statements.mutex",
    },
)

WRITERS = Writers(_EXPRESSIONS, _FORMS, _STATEMENTS)


def draft_of(
    program: ast.Program, resolution: Resolution, table: BuiltinTable, walked: Set[int] = frozenset()
) -> UnitDraft:
    return UnitDraft(program, resolution, table, WRITERS, walked)


def unit_lines(unit: UnitDraft, role: str = "program", entry: ast.Pipeline | None = None) -> list[Line]:
    """Return the text of a unit, which defines ``main(d)``.

    A ``"program"`` starts at ``entry``, or at its first statement; an ``"input"`` of a REPL also returns the
    value of a last expression; a ``"module"`` declares, and hands out what it declares.
    """
    if role == "module":
        return _main_lines(unit, _module, "module")
    if entry is not None:
        return _main_lines(unit, lambda e: _pipeline(e, entry), whole=entry)
    # At the top level of a script only an executed `return` gives a value (02 §10.5).
    into = RETURN if role == "input" else DISCARD
    return _main_lines(unit, lambda e: e.statements(script_order(unit.program), into))


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
