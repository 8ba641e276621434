"""What is declared where, and what a name means at the place where it is used. Spec: 02 §7.

Two looks at each name: first at what is declared by now, here and outwards; then, from inside a nested
function, at what an enclosing block will declare later (functions, and closures bound by `let`), because
calls are looked up when they happen. Builtins come last.
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.resolve.scopes import BlockScope, FunctionScope, Reference, Resolution, Variable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Lookup:
    """The scopes around the current place.

    ``repl_names``: what the inputs of a REPL have declared, None elsewhere. ``in_module``: the program is
    an imported file.
    """

    def __init__(
        self,
        is_builtin: Callable[[str], bool],
        is_global: Callable[[str], bool],
        repl_names: dict[str, Variable] | None = None,
        in_module: bool = False,
    ) -> None:
        self.is_builtin = is_builtin
        self.is_global = is_global
        self.repl_names = repl_names
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
        """Bind ``name`` in the current scope from here on; `node` and name find it again.

        A pattern that has a name twice assigns to one variable twice.
        """
        scope = self.function.scopes[-1]
        old = scope.names.get(name)
        if old and old.mutable and old is self.out.variables.get((id(node), name)):
            return old
        if old and not (old.mutable or mutable):
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
        """What ``name`` means; when it is ``called`` also what else it may mean (02 §7.4)."""
        found = self.visible_variables(name, called)
        callable_ = any(variable.known_fn or variable.struct for variable in found)
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


def _refer_ahead(variable: Variable, scope: BlockScope) -> None:
    """Note that a function refers to what a scope has yet to declare."""
    if variable.role == "fn":
        if not variable.shell:
            variable.shell = True
            scope.shells.append(variable)
    elif not variable.late:
        variable.late = True
        scope.late.append(variable)
