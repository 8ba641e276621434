"""Every name bound once: local, captured, builtin, host value or undefined. Spec: 02 §7.

The walk follows the order of execution, so a name is visible after its declaration and not before.
Two looks at each name: first at what is declared by now, here and outwards; then, from inside a
nested function, at what an enclosing block will declare later (functions, and closures bound by `let`),
because calls are looked up when they happen. Builtins come last.
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.syntax.pack import pack, unpack
from harnpy.vm.resolve.scopes import BlockScope, Declared, FunctionScope, Reference, Resolution, Variable
from harnpy.vm.resolve.tree import (
    PLACEHOLDER_PARENTS,
    lineage,
    match_parts,
    pack_names,
    pattern_names,
    placeholders,
    script_order,
    setup_order,
    walk,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from harnpy.vm.modules.offers import Imports

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


class Resolver:
    """One walk over one program: a file that is run, an imported module, or an input of a REPL.

    ``imports`` says what its imports bring, ``known`` what earlier inputs declared.
    """

    def __init__(
        self,
        is_builtin: Callable[[str], bool],
        is_global: Callable[[str], bool],
        known: Declared | None = None,
        imports: Imports | None = None,
    ) -> None:
        self.is_builtin = is_builtin
        self.is_global = is_global
        self.known = known
        self.imports = imports
        self.foreign = imports.names if imports else frozenset()
        self.in_module = False
        self.session = known.names if known else None
        self.out = Resolution()
        self.function: FunctionScope = None  # type: ignore[assignment]
        self.counter = 0

    # --- entry points -----------------------------------------------------------------------------

    def program(self, program: ast.Program, entry: ast.Pipeline | None) -> Resolution:
        if self.known:
            self.out.structs, self.out.interfaces = self.known.structs, self.known.interfaces
            self.out.aliases = self.known.aliases
            self.known.enums.update(self.out.enums)
            self.out.enums = self.known.enums
        self.begin(program)
        if self.session is not None:
            self.function.scopes[-1].names = self.session
        if entry is None:
            self.statements(program, script_order(program))
        else:
            self.setup(program)
            chain = lineage(program, entry)
            for pipeline in chain:
                self.open_scope(pipeline)
                self.statements(pipeline, pipeline.body.statements)
            for _ in chain:
                self.close_scope()
        self.leave_function()
        return self.out

    def module(self, program: ast.Program) -> Resolution:
        """An imported file: only its declarations run."""
        self.in_module = True
        self.begin(program)
        self.setup(program)
        self.leave_function()
        return self.out

    def setup(self, program: ast.Program) -> None:
        """What a file does before its entry, or before others may use it."""
        declarations = setup_order(program)
        self.statements(program, declarations)
        self.out.bound_only.update(map(id, declarations))

    def begin(self, program: ast.Program) -> None:
        if self.imports:
            self.imports.enter_types(self.out)
            self.out.complete = self.imports.complete
        self.collect_types(program)
        self.enter_function(program, None)

    def collect_types(self, program: ast.Program) -> None:
        """Structs, enums, interfaces and aliases mean the same everywhere in the file (02 §15)."""
        for node in walk(program):
            if isinstance(node, ast.StructDecl):
                self.out.structs[node.name] = node
            elif isinstance(node, ast.EnumDecl):
                self.out.enums[node.name] = node
            elif isinstance(node, ast.InterfaceDecl):
                self.out.interfaces.add(node.name)
            elif isinstance(node, ast.TypeDecl) and not node.type_params:
                self.out.aliases[node.name] = node.type
            elif isinstance(node, ast.FnDecl | ast.ToolDecl | ast.Pipeline):
                self.out.functions_anywhere.add(node.name)

    # --- functions and scopes ---------------------------------------------------------------------

    def enter_function(self, node: ast.Node, name: str | None) -> FunctionScope:
        self.function = FunctionScope(node, name, self.function)
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

    def new_variable(self, name: str, mutable: bool, role: str) -> Variable:
        self.counter += 1
        return Variable(name, self.counter, mutable, role)

    def predeclare(self, statements: Iterable[ast.Node]) -> None:
        """Note what this block will declare, for nested functions that are called later."""
        at_top = self.at_top_of_module()
        pending = self.function.scopes[-1].pending
        for node in statements:
            if isinstance(node, ast.FnDecl) and node.name not in pending:
                variable = self.new_variable(node.name, False, "fn")
                variable.fn = node
                pending[node.name] = variable
            elif isinstance(node, ast.Let) and isinstance(node.target, ast.NamePattern):
                name = node.target.name
                if at_top and node.mutable:
                    continue
                if name != "_" and name not in pending:
                    pending[name] = self.new_variable(name, node.mutable, "let")

    def declare(self, node: ast.Node, name: str, mutable: bool, role: str) -> Variable:
        """Bind ``name`` in the current scope from here on; `node` and name find it again."""
        scope = self.function.scopes[-1]
        old = scope.names.get(name)
        if old and not (old.mutable or mutable):
            self.out.redeclared.add((id(node), name))
        pending = scope.pending.pop(name, None)
        matches = pending is not None and (pending.role == "fn") == (role == "fn")
        variable = pending if pending and matches and not old else self.new_variable(name, mutable, role)
        variable.mutable = mutable
        variable.shared = mutable and role == "let" and self.at_top_of_module()
        if variable.shared or self.session is scope.names:
            variable.keep_in_table()
        scope.names[name] = variable
        self.out.variables[id(node), name] = variable
        return variable

    def at_top_of_module(self) -> bool:
        return self.in_module and self.function.parent is None and len(self.function.scopes) == 1

    # --- what a name means ------------------------------------------------------------------------

    def lookup(self, name: str, called: bool = False) -> Reference:
        """What ``name`` means; when it is ``called`` also what else it may mean (02 §7.4)."""
        found = self.visible_variables(name, called)
        if not found and (late := self.find_pending(self.function, name, own=False)):
            found = [late]
        ref = None
        if self.is_builtin(name):
            ref = Reference("builtin", name)
        elif self.is_global(name):
            ref = Reference("global", name)
        elif not found and (late := self.find_pending(self.function, name, own=True)):
            found = [late]
        elif not found and self.session is not None and self.function.parent:
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

        ``late``: it has no value yet, so its box is captured instead.
        """
        if depth == 0 or variable.shared:
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
        """What an enclosing block will declare as ``name``; ``own`` looks in this function too."""
        depth, current = 0, function
        while current:
            for scope in reversed(current.scopes):
                variable = scope.pending.get(name)
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

    # --- the walk ---------------------------------------------------------------------------------

    def visit(self, node: ast.Node) -> None:
        handler = getattr(self, "visit_" + type(node).__name__, None)
        if handler:
            handler(node)
        else:
            self.children(node)

    def children(self, node: ast.Node) -> None:
        for child in node.children():
            self.visit(child)

    def optional(self, node: ast.Node | None) -> None:
        if node is not None:
            self.visit(node)

    def statements(self, owner: ast.Node, statements: Sequence[ast.Node]) -> None:
        self.predeclare(statements)
        for statement in statements:
            self.visit(statement)

    def visit_Block(self, node: ast.Block) -> None:
        self.open_scope(node)
        self.statements(node, node.statements)
        self.close_scope()

    def visit_Name(self, node: ast.Name) -> None:
        self.out.refs[id(node)] = self.lookup(node.name)

    def visit_Call(self, node: ast.Call) -> None:
        self.call_target(node)
        for arg in node.args:
            self.visit(arg)
        schema_at = SCHEMA_ARGUMENTS.get(node.name, len(node.args))
        if schema_at < len(node.args) and self.out.refs[id(node)].kind == "builtin":
            self.type_as_value(node.args[schema_at])

    def visit_DictEntry(self, node: ast.DictEntry) -> None:
        self.children(node)
        if isinstance(node.key, ast.Str) and node.key.value == "output_schema":
            self.type_as_value(node.value)

    def type_as_value(self, node: ast.Node) -> None:
        """Let a type's name stand for the type's schema, unless it is a variable's too (03 §12)."""
        from harnpy.vm.resolve.schemas import value_schema, without

        if not isinstance(node, ast.Name) or node.name not in self.out.aliases:
            return
        ref = self.out.refs[id(node)]
        schema = value_schema(self.out.aliases[node.name], without(self.out.aliases, node.name))
        if ref.kind in ("undefined", "dynamic") and schema is not None:
            ref.kind, ref.schema = "schema", schema

    def call_target(self, node: ast.Call) -> None:
        """What a call calls. A function declared anywhere in the file may be in reach at run time."""
        if node.name in TASK_CALLS:
            return
        ref = self.out.refs[id(node)] = self.lookup(node.name, called=True)
        known = node.name in self.out.enums or node.name in self.out.functions_anywhere
        known = known or node.name in self.foreign
        if ref.kind == "undefined" and not known:
            self.out.undefined_calls.append((node, ref.visible))

    def visit_Let(self, node: ast.Let) -> None:
        self.visit(node.value)
        plain = isinstance(node.target, ast.NamePattern)
        self.pattern(node.target, node.mutable, node.value if plain else None, "let")

    def pattern(self, pattern: ast.Node, mutable: bool, value: ast.Node | None, role: str) -> None:
        """Declare what a pattern binds; defaults see the names before them (02 §13)."""
        if isinstance(pattern, ast.DictPattern | ast.ListPattern):
            for entry in pattern.entries:
                self.optional(entry.default)
                if entry.name != "_":
                    self.declare(pattern, entry.name, mutable, role).opaque = True
            names = [pattern.rest] if pattern.rest and pattern.rest != "_" else []
        else:
            names = pattern_names(pattern)
        for name in names:
            variable = self.declare(pattern, name, mutable, role)
            if value is None:
                variable.opaque = True
            else:
                variable.values.append(value)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        self.visit(node.target)
        root = node.target
        while isinstance(root, ast.Member | ast.Index):
            root = root.object
        ref = self.out.refs.get(id(root))
        if ref and ref.variable:
            ref.variable.reassigned = True
            if root is node.target and node.op == "=":
                ref.variable.values.append(node.value)
            elif root is node.target:
                compound = ast.Binary(node.start, node.end, node.op[:-1], root, node.value)
                self.out.keep.append(compound)
                ref.variable.values.append(compound)
            else:
                ref.variable.opaque = True

    def visit_For(self, node: ast.For) -> None:
        self.visit(node.iterable)
        self.open_scope(node)
        self.pattern(node.pattern, True, None, "for")
        if isinstance(node.pattern, ast.NamePattern) and node.pattern.name != "_":
            variable = self.out.variables[id(node.pattern), node.pattern.name]
            variable.opaque = not self.counts(node.iterable)
        self.statements(node, node.body.statements)
        self.close_scope()

    def counts(self, iterable: ast.Node) -> bool:
        """Whether a loop over ``iterable`` surely yields ints."""
        if isinstance(iterable, ast.Call):
            return iterable.name == "range" and self.out.refs[id(iterable)].kind == "builtin"
        return isinstance(iterable, ast.RangeTo)

    def visit_Retry(self, node: ast.Retry) -> None:
        self.visit(node.count)
        self.statements(node, node.body.statements)

    def visit_Match(self, node: ast.Match) -> None:
        self.visit(node.value)
        for arm in node.arms:
            self.open_scope(arm)
            for pattern in arm.patterns:
                self.match_pattern(pattern, arm, alone=len(arm.patterns) == 1)
            self.optional(arm.guard)
            self.visit(arm.body)
            self.close_scope()

    def match_pattern(self, pattern: ast.Node, arm: ast.Arm, alone: bool) -> None:
        """Names stand for variables in patterns; what is left is an expression (02 §12)."""
        if isinstance(pattern, ast.Name):
            if pattern.name == "_":
                return
            if alone:
                self.declare(pattern, pattern.name, False, "match").opaque = True
                return
        if not alone:
            self.visit(pattern)
            return
        for part in match_parts(pattern, self.out.enums):
            if isinstance(part, ast.Name):
                if part.name != "_":
                    self.declare(part, part.name, False, "match").opaque = True
            else:
                self.visit(part)

    def visit_Catch(self, node: ast.Catch) -> None:
        self.open_scope(node)
        if node.name and node.name != "_":
            self.declare(node, node.name, False, "catch").opaque = True
        self.visit(node.body)
        self.close_scope()

    def visit_SelectCase(self, node: ast.SelectCase) -> None:
        self.optional(node.source)
        self.open_scope(node)
        if node.name and node.name != "_":
            self.declare(node, node.name, False, "select").opaque = True
        self.visit(node.body)
        self.close_scope()

    def visit_Defer(self, node: ast.Defer) -> None:
        self.function.defers = True
        self.visit(node.body)

    def visit_Yield(self, node: ast.Yield) -> None:
        if self.in_stream():
            self.out.misplaced.append((node, "`yield` is not a stream emit; use `emit` inside `gen fn`"))
        self.function.yields |= not isinstance(self.function.node, ast.Spawn | ast.Parallel | ast.Program)
        self.children(node)

    def visit_Emit(self, node: ast.Emit) -> None:
        if not self.in_stream():
            self.out.misplaced.append((node, "`emit` can only be used inside a `gen fn`"))
        self.children(node)

    def in_stream(self) -> bool:
        return isinstance(self.function.node, ast.FnDecl) and self.function.node.gen

    def visit_Pipe(self, node: ast.Pipe) -> None:
        self.visit(node.left)
        holes = list(placeholders(node.right))
        if holes:
            variable = self.new_variable("_", False, "pipe")
            variable.values.append(node.left)
            self.out.variables[id(node), "_"] = variable
            for hole in holes:
                self.out.refs[id(hole)] = Reference("local", "_", variable)
            self.visit_around(node.right, {id(hole) for hole in holes})
        else:
            self.visit(node.right)

    def visit_around(self, node: ast.Node, holes: set[int]) -> None:
        """Visit a pipe's right side, whose placeholders are bound already."""
        if id(node) in holes:
            return
        if isinstance(node, ast.Call):
            self.call_target(node)
        if isinstance(node, PLACEHOLDER_PARENTS):
            for child in node.children():
                self.visit_around(child, holes)
        else:
            self.visit(node)

    # --- nested functions -------------------------------------------------------------------------

    def visit_FnDecl(self, node: ast.FnDecl) -> None:
        scope = self.function.scopes[-1]
        before = scope.names.get(node.name)
        pending = scope.pending.get(node.name)
        variable = self.declare(node, node.name, False, "fn")
        variable.fn = node
        if before is None and variable is pending:
            del scope.names[node.name]
            scope.pending[node.name] = variable
        self.nested(node, node.name, node.params, node.body, variable)
        scope.pending.pop(node.name, None)
        scope.names[node.name] = variable

    def visit_ImplDecl(self, node: ast.ImplDecl) -> None:
        for fn in node.methods:
            self.nested(fn, f"{node.name}.{fn.name}", fn.params, fn.body, None)

    def visit_ToolDecl(self, node: ast.ToolDecl) -> None:
        """A registry is data: the body can't see the one that it becomes part of (02 §7.4)."""
        self.out.tool_defaults[id(node)] = [self.default_here(param, node) for param in node.params]
        self.nested(node, node.name, node.params, node.body, None)
        self.declare(node, node.name, False, "tool").opaque = True

    def default_here(self, param: ast.Param, tool: ast.ToolDecl) -> ast.Node | None:
        """A copy of a default, to be evaluated where its tool is declared; None if it needs parameters."""
        names = {other.name for other in tool.params}
        needed = {part.name for part in walk(param) if isinstance(part, ast.Name | ast.Call)}
        if param.default is None or names & needed:
            return None
        copy: ast.Node = unpack(pack(param.default))
        reported = len(self.out.undefined_calls)
        self.visit(copy)
        del self.out.undefined_calls[reported:]  # the original's will be
        return copy

    def visit_SkillDecl(self, node: ast.SkillDecl) -> None:
        self.children(node)
        self.declare(node, node.name, False, "skill").opaque = True

    def visit_EvalPack(self, node: ast.EvalPack) -> None:
        """The fields see what is around the pack, the statements see the fields too (08 §8.7)."""
        for field in node.fields:
            self.visit(field)
        self.declare(node, node.name, False, "eval_pack").opaque = True
        self.function.scopes.append(BlockScope())
        for owner, name in pack_names(node):
            self.declare(owner, name, False, "field").opaque = True
        self.open_scope(node)
        self.statements(node, node.body)
        self.optional(node.summarize)
        self.close_scope()
        self.close_scope()

    def visit_Closure(self, node: ast.Closure) -> None:
        self.nested(node, None, node.params, node.body, None)

    def visit_FnExpr(self, node: ast.FnExpr) -> None:
        self.nested(node, None, node.params, node.body, None)

    def visit_Spawn(self, node: ast.Spawn) -> None:
        self.nested(node, None, (), node.body, None)

    def visit_Parallel(self, node: ast.Parallel) -> None:
        self.visit(node.source)
        self.optional(node.max_concurrent)
        self.enter_function(node, None)
        if node.param:
            variable = self.declare(node, node.param, False, "param")
            variable.opaque = True
            self.function.params.append(variable)
        self.statements(node, node.body.statements)
        self.leave_function()

    def nested(
        self,
        node: ast.Node,
        name: str | None,
        params: tuple[ast.Param, ...],
        body: ast.Block,
        variable: Variable | None,
    ) -> None:
        function = self.enter_function(node, name)
        function.own_variable = variable
        for param in params:
            self.optional(param.default)
            # `_` is a parameter that nothing can read.
            declared = self.declare(param, param.name, False, "param")
            if param.name == "_":
                del function.scopes[-1].names["_"]
            declared.opaque = True
            function.params.append(declared)
        self.statements(node, body.statements)
        self.leave_function()

    def visit_StructDecl(self, node: ast.StructDecl) -> None:
        self.declare(node, node.name, False, "struct").struct = node

    def visit_EnumDecl(self, node: ast.EnumDecl) -> None:
        pass

    def visit_InterfaceDecl(self, node: ast.InterfaceDecl) -> None:
        pass

    def visit_TypeDecl(self, node: ast.TypeDecl) -> None:
        pass

    def visit_Pipeline(self, node: ast.Pipeline) -> None:
        pass

    def visit_Override(self, node: ast.Override) -> None:
        pass

    def visit_Import(self, node: ast.Import) -> None:
        """Imported functions are variables like the file's own; the first of a name is the one (06 §5)."""
        scope = self.function.scopes[-1]
        bound = self.out.imported[id(node)] = []
        if self.imports is None:
            return
        from harnpy.vm.modules.offers import stub

        functions = self.imports.of(node).functions
        for name, params in functions.items():
            own = scope.pending.get(name)
            if own and own.fn:
                self.out.contested.add(id(own.fn))
            elif name not in scope.names or self.session is scope.names:
                variable = self.declare(node, name, False, "fn")
                variable.fn, variable.opaque = stub(name, params), True
                bound.append(variable)


def _refer_ahead(variable: Variable, scope: BlockScope) -> None:
    """Let a scope know that a function refers to what it has yet to declare."""
    if variable.role == "fn":
        if not variable.shell:
            variable.shell = True
            scope.shells.append(variable)
    elif not variable.late:
        variable.late = True
        scope.late.append(variable)
