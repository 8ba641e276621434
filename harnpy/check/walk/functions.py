"""Functions, tools, methods and pipelines: parameters, bodies, results. Spec: 03 §5, §7.3, §8.1."""

from __future__ import annotations

from harnpy.check.attributes import check_attributes
from harnpy.check.scopes import Binding, Scope
from harnpy.check.types.names import shown
from harnpy.check.walk.closures import parameters
from harnpy.check.walk.returns import check_returns
from harnpy.check.walk.visitor import Function
from harnpy.syntax import ast
from harnpy.syntax.ast.patterns import bound_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.check.types.names import Type
    from harnpy.check.walk.visitor import Walk


def fn_decl(walk: Walk, node: ast.FnDecl) -> None:
    check_attributes(node, walk.findings)
    if not walk.at_file_level:
        walk.scope.declare(Binding(node.name, node, fn=node))
        variance(walk, node)
    _function(walk, node, frozenset())


def variance(walk: Walk, node: ast.Node) -> None:
    for place, text in walk.types.variance_faults(node):
        walk.findings.error("variance", place, text)


def _function(walk: Walk, node: ast.FnDecl, outside: frozenset[str]) -> None:
    """Judge a function; ``outside`` are the type parameters of the struct that it is a method of."""
    item = _stream_item(node.returns) if node.gen else None
    params = walk.function.type_params | outside | {param.name for param in node.type_params}
    function = Function(gen=node.gen, item=item, type_params=params, bounds=dict(node.where))
    inner = Scope(walk.scope, function=True, opaque=True)

    def visit() -> None:
        parameters(walk, node.params)
        walk.block(node.body, scope=Scope(inner))
        if node.gen and node.returns is not None and item is None:
            text = f"`gen fn` must return Stream<T>, got {shown(node.returns)}"
            walk.findings.error("generator-result", node.returns, text)
        if node.returns is not None and not node.gen and not walk.environment.yields(node):
            check_returns(walk, node.body, node.returns, inner)

    walk.in_function(function, inner, visit)


def _stream_item(returns: Type | None) -> Type | None:
    """``E`` of `Stream<E>`."""
    is_stream = isinstance(returns, ast.TypeName) and returns.name in ("Stream", "stream")
    return returns.args[0] if is_stream and len(returns.args) == 1 else None  # type: ignore[union-attr]


def tool_decl(walk: Walk, node: ast.ToolDecl) -> None:
    check_attributes(node, walk.findings)
    inner = Scope(walk.scope, function=True, opaque=True)

    def visit() -> None:
        parameters(walk, node.params)
        walk.block(node.body, scope=inner)

    walk.in_function(Function(type_params=walk.function.type_params), inner, visit)
    if not walk.at_file_level:
        walk.scope.declare(Binding(node.name, node))


def impl_decl(walk: Walk, node: ast.ImplDecl) -> None:
    check_attributes(node, walk.findings)
    declared = walk.types.declared.generic(node.name)
    outside = frozenset(param.name for param in declared.type_params) if declared else frozenset()
    for method in node.methods:
        check_attributes(method, walk.findings)
        _function(walk, method, outside)


def pipeline(walk: Walk, node: ast.Pipeline) -> None:
    check_attributes(node, walk.findings)
    scope = Scope(walk.scope, function=True)
    for parent in walk.environment.lineage(node):
        _inherit(parent, scope)
    _body(walk, node, scope, node.returns)


def override(walk: Walk, node: ast.Override) -> None:
    """What no run reaches (02 §10.4) is judged by the specification's own rules."""
    walk.quietly(lambda: _body(walk, node, Scope(walk.scope, function=True), None))


def _inherit(parent: ast.Pipeline, scope: Scope) -> None:
    """The top-level bindings of a parent's body, without types (03 §5)."""
    for name in parent.params:
        scope.declare(Binding(name, parent))
    for statement in parent.body.statements:
        if isinstance(statement, ast.Let):
            for name in bound_names(statement.target):
                scope.declare(Binding(name, statement, mutable=statement.mutable))
        elif isinstance(statement, ast.FnDecl):
            scope.declare(Binding(statement.name, statement, fn=statement))
        elif isinstance(statement, ast.ToolDecl | ast.SkillDecl | ast.EvalPack):
            scope.declare(Binding(statement.name, statement))


def _body(walk: Walk, node: ast.Pipeline | ast.Override, scope: Scope, returns: Type | None) -> None:
    def visit() -> None:
        for name in node.params:
            scope.declare(Binding(name, node))
        walk.block(node.body, scope=Scope(scope))
        if returns is not None:
            check_returns(walk, node.body, returns, scope)

    walk.in_function(Function(), scope, visit)
