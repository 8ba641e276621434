"""The resolver: every name bound to a local, captured, builtin or host value, or undefined. Spec: 02 §7.

The walk follows the order of execution, so a name is visible after its declaration and not before.
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.syntax.ast import pack, unpack, walk
from harnpy.syntax.names import (
    VISITS,
    Binder,
    declared_later,
    function,
    lineage,
    script_order,
    setup_order,
)
from harnpy.vm.resolve import (
    PLACEHOLDER_PARENTS,
    BlockScope,
    FunctionScope,
    Reference,
    Resolution,
    Variable,
    is_probe,
    placeholders,
)
from harnpy.vm.resolve.types import value_schema, without

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harnpy.syntax.names import Visits
    from harnpy.vm.imports import Imports
    from harnpy.vm.resolve import Declared

# What is declared where, and what a name means at the place where it is used. Spec: 02 §7.
#
# Two looks at each name: first at what is declared by now, here and outwards; then, from inside a nested
# function, at what an enclosing block will declare later (functions, and closures bound by `let`), because
# calls are looked up when they happen. Builtins come last.


class Visitor(Binder):
    """The scopes around the current place.

    ``repl_names``: what the inputs of a REPL have declared, None elsewhere. ``imports`` are what the imports
    of the program bring. ``in_module``: it is an imported file.
    """

    def __init__(
        self,
        is_builtin: Callable[[str], bool],
        is_global: Callable[[str], bool],
        repl_names: dict[str, Variable] | None = None,
        imports: Imports | None = None,
        in_module: bool = False,
    ) -> None:
        super().__init__(_VISITS)
        self.is_builtin = is_builtin
        self.is_global = is_global
        self.repl_names = repl_names
        self.imports = imports
        self.in_module = in_module
        self.out = Resolution()
        self.function: FunctionScope = None  # type: ignore[assignment]
        self._count = 0

    # --- scopes -----------------------------------------------------------------------------------

    def new_variable(self, name: str, mutable: bool, role: str) -> Variable:
        self._count += 1
        return Variable(name, self._count, mutable, role)

    def enter_function(self, node: ast.Node, name: str | None) -> FunctionScope:
        self.function = FunctionScope(node, name, self.function)
        self.function.own_variable = self.out.variables.get((id(node), name or ""))
        self.out.functions[id(node)] = self.function
        self.open_scope(node)
        return self.function

    def leave_function(self) -> None:
        self.close_scope()
        self.function = self.function.parent  # type: ignore[assignment]

    def open_scope(self, node: ast.Node) -> BlockScope:
        scope = BlockScope()
        self.out.scopes[id(node)] = scope
        self.function.scopes.append(scope)
        return scope

    def close_scope(self) -> None:
        self.function.scopes.pop()

    def predeclare(self, statements: Sequence[ast.Node]) -> None:
        """Note what this block will declare, for nested functions that are called later."""
        at_top = self.at_top_of_module()
        scope = self.function.scopes[-1]
        pending = scope.pending
        for name, node in declared_later(statements):
            if name in pending:
                continue
            if isinstance(node, ast.FnDecl):
                pending[name] = self.new_variable(name, False, "fn")
                pending[name].fn = node
                if self.repl_names is scope.names:
                    pending[name].keep_in_table()
            elif name != "_" and not (at_top and node.mutable):
                pending[name] = self.new_variable(name, node.mutable, "let")

    def declare(self, node: ast.Node, name: str, mutable: bool, role: str) -> Variable:
        """Bind ``name`` in the current scope from here on; `node` and name find it again.

        A pattern that has a name twice assigns to one variable twice.
        """
        scope = self.function.scopes[-1]
        old = scope.names.get(name)
        if old and old.mutable and old is self.out.variables.get((id(node), name)):
            return old
        # At the top of a REPL the newest binding counts.
        if old and not (old.mutable or mutable or self.repl_names is scope.names):
            self.out.redeclared.add((id(node), name))
        pending = scope.pending.pop(name, None)
        matches = pending is not None and (pending.role == "fn") == (role == "fn")
        variable = pending if pending and matches and not old else self.new_variable(name, mutable, role)
        variable.mutable = mutable
        variable.shared = mutable and role == "let" and self.at_top_of_module()
        if variable.shared or self.repl_names is scope.names:
            variable.keep_in_table()
        scope.names[name] = variable
        self.out.variables[id(node), name] = variable
        return variable

    def at_top_of_module(self) -> bool:
        return self.in_module and self.function.parent is None and len(self.function.scopes) == 1

    def lookup(self, name: str, called: bool = False) -> Reference:
        """Return what ``name`` means; when it is ``called`` also what else it may mean (02 §7.4)."""
        found = self.visible_variables(name, called)
        callable_ = any(variable.fn or variable.struct for variable in found)
        if not found or (called and not callable_):
            late = self.find_pending(self.function, name, own=False)
            found += [late] if late else []
        ref = None
        if self.is_builtin(name):
            ref = Reference("builtin", name)
        elif self.is_global(name):
            ref = Reference("global", name)
        elif not found and (late := self.find_pending(self.function, name, own=True)):
            found = [late]
        elif not found and self.repl_names is not None and self.function.parent:
            ref = Reference("dynamic", name)
        for variable in reversed(found):
            ref = Reference("local", name, variable, ref)
        return ref or Reference("undefined", name, visible=self.visible_names())

    def visible_variables(self, name: str, all_: bool) -> list[Variable]:
        """The declared variables of ``name``, innermost first: all, or the first; captured, if need be."""
        depth, function, found = 0, self.function, []
        while function:
            for scope in reversed(function.scopes):
                if name in scope.names:
                    found.append((depth, scope.names[name]))
            depth, function = depth + 1, function.parent  # type: ignore[assignment]
        wanted = found if all_ else found[:1]
        return [self.capture(self.function, depth, variable) for depth, variable in wanted]

    def capture(
        self, function: FunctionScope, depth: int, variable: Variable, late: bool = False
    ) -> Variable:
        """``variable`` of the function ``depth`` levels out, as ``function`` itself has it.

        ``late``: it has no value yet, so its box is captured instead. What all functions find in the table
        isn't captured: shared variables, and functions of a REPL, of which the newest counts.
        """
        if depth == 0 or variable.shared or (variable.in_table and variable.role == "fn"):
            return variable
        assert function.parent
        outer = self.capture(function.parent, depth - 1, variable, late)
        inner = function.captures.get(outer)
        if inner is None:
            inner = self.new_variable(outer.name, outer.mutable, outer.role)
            inner.captured_from = outer
            inner.fn, inner.struct = outer.fn, outer.struct
            inner.late = late or (depth > 1 and outer.late)
            function.captures[outer] = inner
        return inner

    def find_pending(self, function: FunctionScope, name: str, own: bool) -> Variable | None:
        """Return what an enclosing block will declare as ``name``; ``own`` looks in this function too."""
        depth, current = 0, function
        while current:
            for scope in reversed(current.scopes):
                variable = scope.pending.get(name)
                if variable and variable.in_table and name in scope.names:
                    # What a REPL has under the name is what the table has.
                    continue
                if variable and (depth or (own and variable.role == "fn")):
                    _refer_ahead(variable, scope)
                    return self.capture(function, depth, variable, variable.late)
            depth, current = depth + 1, current.parent  # type: ignore[assignment]
        return None

    def visible_names(self) -> tuple[str, ...]:
        names: dict[str, None] = {}
        function: FunctionScope | None = self.function
        while function:
            for scope in function.scopes:
                names.update(dict.fromkeys(scope.names))
            function = function.parent
        return tuple(names)

    def bind(
        self,
        node: ast.Node,
        place: ast.Node,
        name: str,
        role: str,
        mutable: bool = False,
        value: ast.Node | None = None,
    ) -> None:
        if isinstance(place, ast.PatternEntry):
            place = node.target if isinstance(node, ast.Let) else node.pattern  # type: ignore[attr-defined]
        variable = self.declare(place, name, mutable, role)
        if value is not None:
            variable.values.append(value)
        elif isinstance(node, ast.For) and isinstance(node.pattern, ast.NamePattern):
            variable.iterable = node.iterable
        else:
            variable.opaque = True
        if role == "param":
            self.function.params.append(variable)
            if isinstance(place, ast.Param) and name == "_":
                # A parameter that nothing can read.
                del self.function.scopes[-1].names["_"]


def _refer_ahead(variable: Variable, scope: BlockScope) -> None:
    """Note that a function refers to what a scope has yet to declare."""
    if variable.role == "fn":
        if not variable.shell:
            variable.shell = True
            scope.shells.append(variable)
    elif not variable.late:
        variable.late = True
        scope.late.append(variable)


# Names that are used: read, called, assigned, piped into. Spec: 02 §4.3, §7, §8.


#: Called like functions, and recognised before anything a user defines (05 §2).
TASK_CALLS = frozenset({"await", "cancel", "cancel_graceful", "is_cancelled"})

#: Builtins and which of their arguments may be a type's name.
SCHEMA_ARGUMENTS = {
    "schema_of": 0,
    "schema_is": 1,
    "is_type": 1,
    "schema_check": 1,
    "schema_parse": 1,
    "schema_expect": 1,
    "json_validate": 1,
}


def name(r: Visitor, node: ast.Name) -> None:
    r.out.refs[id(node)] = r.lookup(node.name)


def call(r: Visitor, node: ast.Call) -> None:
    call_target(r, node)
    for arg in node.args:
        r.visit(arg)
    schema_at = SCHEMA_ARGUMENTS.get(node.name, len(node.args))
    if schema_at < len(node.args) and r.out.refs[id(node)].kind == "builtin":
        type_as_value(r, node.args[schema_at])


def call_target(r: Visitor, node: ast.Call) -> None:
    """Note what a call calls. A function declared anywhere in the file may be in reach at run time."""
    if node.name in TASK_CALLS:
        return
    r.out.refs[id(node)] = r.lookup(node.name, called=True)


def dict_entry(r: Visitor, node: ast.DictEntry) -> None:
    r.children(node)
    if isinstance(node.key, ast.Str) and node.key.value == "output_schema":
        type_as_value(r, node.value)


def type_as_value(r: Visitor, node: ast.Node) -> None:
    """Make a type's name stand for the type's schema, unless it is a variable's too (03 §12)."""
    if not isinstance(node, ast.Name) or node.name not in r.out.aliases:
        return
    ref = r.out.refs[id(node)]
    schema = value_schema(r.out.aliases[node.name], without(r.out.aliases, node.name))
    if ref.kind in ("undefined", "dynamic") and schema is not None:
        ref.kind, ref.schema = "schema", schema


def pipe(r: Visitor, node: ast.Pipe) -> None:
    r.visit(node.left)
    holes = list(placeholders(node.right))
    if holes:
        variable = r.new_variable("_", False, "pipe")
        variable.values.append(node.left)
        r.out.variables[id(node), "_"] = variable
        for hole in holes:
            r.out.refs[id(hole)] = Reference("local", "_", variable)
        around(r, node.right, {id(hole) for hole in holes})
    else:
        r.visit(node.right)


def around(r: Visitor, node: ast.Node, holes: set[int]) -> None:
    """Visit a pipe's right side, whose placeholders are bound already."""
    if id(node) in holes:
        return
    if isinstance(node, ast.Call):
        call_target(r, node)
    if isinstance(node, PLACEHOLDER_PARENTS):
        for child in node.children():
            around(r, child, holes)
    else:
        r.visit(node)


def assign(r: Visitor, node: ast.Assign) -> None:
    r.visit(node.value)
    r.visit(node.target)
    root = node.target
    while isinstance(root, ast.Member | ast.Index):
        root = root.object
    ref = r.out.refs.get(id(root))
    if ref and ref.variable:
        ref.variable.reassigned = True
        if root is node.target and node.op == "=":
            ref.variable.values.append(node.value)
        elif root is node.target:
            compound = ast.Binary(node.start, node.end, node.op[:-1], root, node.value)
            r.out.keep.append(compound)
            ref.variable.values.append(compound)
        else:
            ref.variable.changed = True


# Functions: the names that they declare, outside and inside. Spec: 02 §9.


def fn_decl(r: Visitor, node: ast.FnDecl) -> None:
    """The body captures what its name has meant before; itself it finds when it is called (02 §7.4)."""
    scope = r.function.scopes[-1]
    before = scope.names.get(node.name)
    pending = scope.pending.get(node.name)
    variable = r.declare(node, node.name, False, "fn")
    variable.fn = node
    if before is not None:
        scope.names[node.name] = before
    elif variable is pending:
        del scope.names[node.name]
    if before is not None or variable is pending:
        scope.pending[node.name] = variable
    function(r, node, node.name, node.params, node.body)
    scope.pending.pop(node.name, None)
    scope.names[node.name] = variable


def tool_decl(r: Visitor, node: ast.ToolDecl) -> None:
    """A registry is data: the body can't see the one that it becomes part of (02 §7.4)."""
    r.out.tool_defaults[id(node)] = [default_here(r, param, node) for param in node.params]
    function(r, node, node.name, node.params, node.body)
    r.bind(node, node, node.name, "tool")


def default_here(r: Visitor, param: ast.Param, tool: ast.ToolDecl) -> ast.Node | None:
    """A copy of a default, to be evaluated where its tool is declared; None if it needs parameters."""
    names = {other.name for other in tool.params}
    needed = {part.name for part in walk(param) if isinstance(part, ast.Name | ast.Call)}
    if param.default is None or names & needed:
        return None
    copy: ast.Node = unpack(pack(param.default))
    r.visit(copy)
    return copy


def defer(r: Visitor, node: ast.Defer) -> None:
    r.function.defers = True
    r.visit(node.body)


def yield_(r: Visitor, node: ast.Yield) -> None:
    r.function.yields |= not isinstance(r.function.node, ast.Spawn | ast.Parallel | ast.Program)
    r.children(node)


# Declarations other than functions.


def struct_decl(r: Visitor, node: ast.StructDecl) -> None:
    r.declare(node, node.name, False, "struct").struct = node


def import_(r: Visitor, node: ast.Import) -> None:
    """Imported functions are variables like the file's own; the first of a name wins (06 §5)."""
    scope = r.function.scopes[-1]
    bound = r.out.imported[id(node)] = []
    if r.imports is None:
        return
    from harnpy.vm.imports import stub

    functions = r.imports.of(node).functions
    for name, params in functions.items():
        own = scope.pending.get(name)
        if own and own.fn:
            r.out.contested.add(id(own.fn))
        elif name not in scope.names or r.repl_names is scope.names:
            variable = r.declare(node, name, False, "fn")
            variable.fn, variable.opaque = stub(name, params), True
            bound.append(variable)


def nothing(r: Visitor, node: ast.Node) -> None:
    """Types, which `names` has collected, and pipelines, which run when it is their turn."""


# Which calls may be tail calls: made when the function that returns their value has ended. Spec: 02 §9.4.


CALLS = (ast.Call, ast.MethodCall, ast.Pipe, ast.Spawn, ast.Parallel)


def tail_target(resolution: Resolution, node: ast.Node) -> Reference | None:
    """Return what ``f(…)`` or ``x |> f`` calls, if that is a variable; None for all that is no tail call."""
    if isinstance(node, ast.Pipe) and isinstance(node.right, ast.Name):
        if (id(node), "_") in resolution.variables:
            return None
        ref = resolution.refs[id(node.right)]
    elif isinstance(node, ast.Call) and node.name not in TASK_CALLS:
        if any(isinstance(arg, ast.Spread) for arg in node.args):
            return None
        ref = resolution.refs[id(node)]
    else:
        return None
    variable = ref.variable
    callable_ = ref.kind == "local" and variable and not variable.struct and not variable.in_box
    return ref if callable_ else None


def calls_out(fn: ast.FnDecl) -> bool:
    """Return True if running ``fn`` may call user code: if not, calling it in tail position is no risk.

    An empty body may stand for a function of another file, of which nothing is known.
    """
    body = fn.body.statements
    return not body or any(isinstance(node, CALLS) and not is_probe(node) for node in walk(fn.body))


_VISITS: Visits = {
    **VISITS,
    ast.StructDecl: struct_decl,
    ast.Import: import_,
    ast.FnDecl: fn_decl,
    ast.ToolDecl: tool_decl,
    ast.Defer: defer,
    ast.Yield: yield_,
    ast.Name: name,
    ast.Call: call,
    ast.DictEntry: dict_entry,
    ast.Pipe: pipe,
    ast.Assign: assign,
    ast.EnumDecl: nothing,
    ast.InterfaceDecl: nothing,
    ast.TypeDecl: nothing,
    ast.Pipeline: nothing,
    ast.Override: nothing,
}


class Resolver:
    """Resolves the names of programs against the builtins and the values of the host."""

    def __init__(self, is_builtin: Callable[[str], bool], is_global: Callable[[str], bool]) -> None:
        self._is_builtin = is_builtin
        self._is_global = is_global

    def program(
        self, program: ast.Program, entry: ast.Pipeline | None = None, imports: Imports | None = None
    ) -> Resolution:
        """A file that is run, from ``entry`` or as a script; ``imports`` are what its imports bring."""
        r = self._visitor(imports)
        _begin(r, program)
        if entry is None:
            r.statements(script_order(program))
        else:
            _setup(r, program)
            _pipelines(r, lineage(program, entry))
        r.leave_function()
        return r.out

    def module(self, program: ast.Program, imports: Imports) -> Resolution:
        """An imported file: only its declarations run."""
        r = self._visitor(imports, in_module=True)
        _begin(r, program)
        _setup(r, program)
        r.leave_function()
        return r.out

    def input(self, program: ast.Program, declared: Declared, imports: Imports | None = None) -> Resolution:
        """An input of a REPL: it sees, and adds to, what earlier ones have ``declared``."""
        r = self._visitor(imports, declared)
        r.out.continue_from(declared)
        for variable in declared.names.values():
            # Who looked for it before it was declared has found it by now.
            variable.late = False
        _begin(r, program)
        r.function.scopes[-1].names = declared.names
        r.statements(script_order(program))
        r.leave_function()
        return r.out

    def _visitor(
        self, imports: Imports | None, declared: Declared | None = None, in_module: bool = False
    ) -> Visitor:
        names = declared.names if declared else None
        return Visitor(self._is_builtin, self._is_global, names, imports, in_module)


def _begin(r: Visitor, program: ast.Program) -> None:
    if r.imports:
        _imported_types(r.out, r.imports)
    _collect_types(r.out, program)
    r.enums = r.out.enums
    r.enter_function(program, None)


def _setup(r: Visitor, program: ast.Program) -> None:
    """Visit what a file does before its entry, or before others may use it."""
    declarations = setup_order(program)
    r.statements(declarations)
    r.out.bound_only.update(map(id, declarations))


def _pipelines(r: Visitor, chain: list[ast.Pipeline]) -> None:
    """Pipelines one after the other; each sees what those before it declared (02 §10.4)."""
    for pipeline in chain:
        r.open_scope(pipeline)
        r.statements(pipeline.body.statements)
    for _ in chain:
        r.close_scope()


def _imported_types(out: Resolution, imports: Imports) -> None:
    """The file's own types, which come after, win on equal names (03 §3.3).

    Imported enums are types to the static checks alone: their variants aren't available (06 §2).
    """
    for name, node in imports.types.items():
        if isinstance(node, ast.StructDecl):
            out.structs[name] = node
        elif isinstance(node, ast.TypeDecl) and not node.type_params:
            out.aliases[name] = node.type
        elif isinstance(node, ast.InterfaceDecl):
            out.interfaces.add(name)


def _collect_types(out: Resolution, program: ast.Program) -> None:
    """Structs, enums, interfaces and aliases mean the same everywhere in the file (02 §15)."""
    for node in walk(program):
        if isinstance(node, ast.StructDecl):
            out.structs[node.name] = node
        elif isinstance(node, ast.EnumDecl):
            out.enums[node.name] = node
        elif isinstance(node, ast.InterfaceDecl):
            out.interfaces.add(node.name)
        elif isinstance(node, ast.TypeDecl) and not node.type_params:
            out.aliases[node.name] = node.type
