"""Functions: the names that they declare, outside and inside. Spec: 02 §9."""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.syntax.pack import pack, unpack
from harnpy.vm.resolve.tree import walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.resolve.scopes import Variable
    from harnpy.vm.resolve.visitor import Visitor


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
    nested(r, node, node.name, node.params, node.body, variable)
    scope.pending.pop(node.name, None)
    scope.names[node.name] = variable


def impl_decl(r: Visitor, node: ast.ImplDecl) -> None:
    for fn in node.methods:
        nested(r, fn, f"{node.name}.{fn.name}", fn.params, fn.body, None)


def tool_decl(r: Visitor, node: ast.ToolDecl) -> None:
    """A registry is data: the body can't see the one that it becomes part of (02 §7.4)."""
    r.out.tool_defaults[id(node)] = [default_here(r, param, node) for param in node.params]
    nested(r, node, node.name, node.params, node.body, None)
    r.declare(node, node.name, False, "tool").opaque = True


def default_here(r: Visitor, param: ast.Param, tool: ast.ToolDecl) -> ast.Node | None:
    """A copy of a default, to be evaluated where its tool is declared; None if it needs parameters."""
    names = {other.name for other in tool.params}
    needed = {part.name for part in walk(param) if isinstance(part, ast.Name | ast.Call)}
    if param.default is None or names & needed:
        return None
    copy: ast.Node = unpack(pack(param.default))
    r.visit(copy)
    return copy


def closure(r: Visitor, node: ast.Closure) -> None:
    nested(r, node, None, node.params, node.body, None)


def fn_expr(r: Visitor, node: ast.FnExpr) -> None:
    nested(r, node, None, node.params, node.body, None)


def spawn(r: Visitor, node: ast.Spawn) -> None:
    nested(r, node, None, (), node.body, None)


def parallel(r: Visitor, node: ast.Parallel) -> None:
    r.visit(node.source)
    r.optional(node.max_concurrent)
    r.enter_function(node, None)
    if node.param:
        variable = r.declare(node, node.param, False, "param")
        variable.opaque = True
        r.function.params.append(variable)
    r.statements(node.body.statements)
    r.leave_function()


def nested(
    r: Visitor,
    node: ast.Node,
    name: str | None,
    params: tuple[ast.Param, ...],
    body: ast.Block,
    variable: Variable | None,
) -> None:
    function = r.enter_function(node, name)
    function.own_variable = variable
    for param in params:
        r.optional(param.default)
        # `_` is a parameter that nothing can read.
        declared = r.declare(param, param.name, False, "param")
        if param.name == "_":
            del function.scopes[-1].names["_"]
        declared.opaque = True
        function.params.append(declared)
    r.statements(body.statements)
    r.leave_function()


def defer(r: Visitor, node: ast.Defer) -> None:
    r.function.defers = True
    r.visit(node.body)


def yield_(r: Visitor, node: ast.Yield) -> None:
    r.function.yields |= not isinstance(r.function.node, ast.Spawn | ast.Parallel | ast.Program)
    r.children(node)
