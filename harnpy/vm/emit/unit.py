"""A whole program's generated text: the makers, the entry, and what it refers to outside itself."""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.emit.annotations import parameter_check
from harnpy.vm.emit.function import DISCARD, RETURN, Emitter
from harnpy.vm.emit.functions import FunctionText, with_defers, write_function
from harnpy.vm.emit.writer import Line, render
from harnpy.vm.resolve.kinds import Kinds
from harnpy.vm.resolve.tree import lineage, script_order, setup_order, walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.vm.declare.table import BuiltinTable
    from harnpy.vm.resolve.scopes import FunctionScope, Resolution, Variable

#: Nodes whose evaluation can assign to a local of the function they stand in …
_ASSIGNING = (ast.If, ast.Match, ast.Try, ast.Retry, ast.Deadline)
#: … and those that are functions of their own.
_FUNCTIONS = (ast.Closure, ast.FnExpr, ast.Spawn)
_CALLS = (ast.Call, ast.MethodCall, ast.Pipe, ast.Spawn, ast.Parallel)


class UnitEmitter:
    """Writes one resolved program against a table of builtins."""

    def __init__(
        self,
        program: ast.Program,
        resolution: Resolution,
        table: BuiltinTable,
    ) -> None:
        self.program = program
        self.resolution = resolution
        self.table = table
        self.kinds = Kinds(resolution)
        self.makers: list[Line] = []
        self.shown: dict[str, str] = {}
        self.called: set[str] = set()
        self.valued: set[str] = set()
        self.globals: set[str] = set()
        self.methods: set[tuple[str, int]] = set()
        self.count = 0
        self.leaves: dict[int, bool] = {}
        self.assigning: dict[int, bool] = {}

    # --- what emitters ask for --------------------------------------------------------------------

    def builtin_function(self, name: str) -> str:
        """The Python function behind a builtin: called as ``(vm, *args)``, arguments converted."""
        self.called.add(name)
        return f"b_{name.replace('.', '__')}_"

    def builtin_value(self, name: str) -> str:
        """The builtin as a first-class value."""
        self.valued.add(name)
        return f"v_{name.replace('.', '__')}_"

    def global_value(self, name: str) -> str:
        self.globals.add(name)
        return f"g_{name}_"

    def method_table(self, name: str, count: int) -> str:
        """Methods called ``name`` by receiver type, taking ``count`` arguments."""
        self.methods.add((name, count))
        return f"m_{name if name.isascii() else name.encode().hex()}_{count}_"

    def params_text(self, variable: Variable) -> str:
        fn = variable.fn
        assert fn
        rest = bool(fn.params) and fn.params[-1].rest
        return f"{tuple(param.name for param in fn.params)!r}, {rest}"

    def compound(self, node: ast.Assign) -> ast.Binary:
        """``x op= v`` as ``x op v``."""
        return ast.Binary(node.start, node.end, node.op[:-1], node.target, node.value)

    def calls_out(self, fn: ast.FnDecl) -> bool:
        """Whether running ``fn`` may call user code: if not, calling it in tail position is no risk.

        Nothing is known of what an empty body stands for: it may be a function of another file.
        """
        if id(fn) not in self.leaves:
            body = fn.body.statements
            self.leaves[id(fn)] = not body or any(isinstance(node, _CALLS) for node in walk(fn.body))
        return self.leaves[id(fn)]

    def check_parameter(self, e: Emitter, param: ast.Param, slot: str) -> None:
        assert param.type
        check = parameter_check(param.type, self.resolution)
        if check is None:
            return
        quick = check.quick(slot)
        text = f"check_parameter({param.name!r}, {slot}, {check.spec!r})"
        e.line(f"if {quick}: {text}" if quick else text)

    def assigns_locals(self, node: ast.Node) -> bool:
        """Whether evaluating ``node`` can assign to a slot of the function around it."""
        known = self.assigning.get(id(node))
        if known is None:
            below = () if isinstance(node, _FUNCTIONS) else node.children()
            # A list, not a generator: that would recurse through C.
            inside = [self.assigns_locals(child) for child in below]
            known = isinstance(node, _ASSIGNING) or True in inside
            self.assigning[id(node)] = known
        return known

    def function(
        self, function: FunctionScope, shown: str, body: ast.Block, params: tuple[ast.Param, ...]
    ) -> FunctionText:
        self.count += 1
        number = self.count
        e = Emitter(self, function)
        stream = isinstance(function.node, ast.FnDecl) and function.node.gen
        e.generator = function.yields or stream
        text = write_function(e, number, body, params, stream)
        self.shown[f"f{number}"] = self.shown[f"f{number}_items"] = shown
        self.makers.extend(text.lines)
        return text

    # --- the whole --------------------------------------------------------------------------------

    def program_text(self, entry: ast.Pipeline | None) -> tuple[str, list[int]]:
        """The text of a program that starts at ``entry``, or at its first statement.

        It defines ``main(d)``; the second result is the source offset of each of its lines.
        """
        return self.main_text(self.script if entry is None else lambda e: self.pipeline(e, entry))

    def input_text(self) -> tuple[str, list[int]]:
        """Like a script's, but the value of a last expression is the answer (REPL)."""
        return self.main_text(lambda e: e.statements(script_order(self.program), RETURN))

    def module_text(self) -> tuple[str, list[int]]:
        """The text of a module: its declarations, and what it hands out."""
        return self.main_text(self.module, "module")

    def main_text(self, body: Callable[[Emitter], None], shown: str = "pipeline") -> tuple[str, list[int]]:
        function = self.resolution.functions[id(self.program)]
        e = Emitter(self, function)
        e.indent = 1
        e.open_scope(self.program)
        if function.defers:
            with_defers(e, lambda: body(e))
        else:
            body(e)
        head = [Line(0, "def main(d):", 0)]
        if e.uses_depth:
            head.append(Line(1, "e = d + 1", 0))
        self.shown["main"] = shown
        return render([*self.makers, *head, *e.lines, Line(1, "return None", 0)])

    def script(self, e: Emitter) -> None:
        """Top-level statements in order; only an executed `return` gives a value (02 §10.5)."""
        e.statements(script_order(self.program), DISCARD)

    def module(self, e: Emitter) -> None:
        """Imports, variables, functions; then what its importers may have of them (06 §4)."""
        e.statements(setup_order(self.program), DISCARD)
        functions = {
            node.name: self.resolution.variables[id(node), node.name].python
            for node in self.program.items
            if isinstance(node, ast.FnDecl)
        }
        e.line(f"publish({{{', '.join(f'{name!r}: {python}' for name, python in functions.items())}}})")
        for node in self.program.items:
            if isinstance(node, ast.Import) and node.pub:
                e.offset = node.start
                e.line(f"pass_on({node.path!r}, {node.names!r})")

    def pipeline(self, e: Emitter, entry: ast.Pipeline) -> None:
        e.statements(setup_order(self.program), DISCARD)
        for pipeline in lineage(self.program, entry):
            e.open_scope(pipeline)
            e.statements(pipeline.body.statements, RETURN if pipeline is entry else DISCARD)
