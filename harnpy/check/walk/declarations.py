"""Declarations: functions, closures, tools, pipelines and types; their results. Spec: 03 §5, §7.3, §8.1."""

from __future__ import annotations

from harnpy.check.inference import known, nameless
from harnpy.check.narrowing import after_if, exits
from harnpy.check.types.fitting import variance_faults
from harnpy.check.types.type_nodes import is_named, shown
from harnpy.check.walk import stream_item
from harnpy.check.walk.undeclared_names import foreign_type_hint
from harnpy.syntax import ast, names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.check.scopes import Scope
    from harnpy.check.types.type_nodes import Type
    from harnpy.check.walk import Walk

# What functions return against what they declare. Spec: 03 §8.1 ("Return checking").
#
# Values are looked at without the local variables: of a returned local nothing is known.


def check_returns(walk: Walk, body: ast.Block, expected: Type, scope: Scope) -> None:
    """Compare the `return`s of a body, and of the `if`s in it, with the declared result."""
    _statements(walk, body.statements, expected, nameless(scope, ()))


def _statements(walk: Walk, statements: Sequence[ast.Node], expected: Type, scope: Scope) -> None:
    for statement in statements:
        if isinstance(statement, ast.Return):
            _compare(walk, statement, expected, scope)
            return
        if isinstance(statement, ast.Throw | ast.Break | ast.Continue):
            return
        if isinstance(statement, ast.If):
            _branches(walk, statement, expected, scope)
        elif declared := names.declared_names(statement):
            # What has had the name before is hidden.
            scope = nameless(scope, declared)


def _compare(walk: Walk, node: ast.Return, expected: Type, scope: Scope) -> None:
    actual = walk.inference.of(node.value, scope) if node.value is not None else None
    if actual is None or node.value is None:
        return
    if not walk.accepts(expected, node.value, actual):
        text = f"return type doesn't match: expected {shown(expected)}, got {shown(actual)}"
        walk.findings.error("return-type", node.value, text, help=foreign_type_hint(walk, expected))


def _branches(walk: Walk, node: ast.If, expected: Type, scope: Scope) -> bool:
    """Judge both branches; whether both leave."""
    sides = walk.inference.sides(node.cond, scope)
    _statements(walk, node.then.statements, expected, walk.inference.narrowed(sides[0], scope))
    then_leaves, else_leaves = exits(node.then), False
    inner = walk.inference.narrowed(sides[1], scope)
    if isinstance(node.otherwise, ast.If):
        else_leaves = _branches(walk, node.otherwise, expected, inner)
    elif isinstance(node.otherwise, ast.Block):
        _statements(walk, node.otherwise.statements, expected, inner)
        else_leaves = exits(node.otherwise)
    facts = after_if(sides, then_leaves, else_leaves)
    scope.narrow(facts.types, facts.ruled_out)
    return then_leaves and else_leaves


def closure(walk: Walk, node: ast.Closure | ast.FnExpr) -> None:
    """A closure that goes who knows where: whoever calls it may handle its errors."""
    walk.quietly(lambda: names.closure(walk, node))


def fn_decl(walk: Walk, node: ast.FnDecl) -> None:
    walk.attributes(node)
    if not walk.at_file_level:
        walk.bind(node, node, node.name, "fn")
        variance(walk, node)
    _function(walk, node)


def variance(walk: Walk, node: ast.Node) -> None:
    for place, text in variance_faults(walk.types, node):
        walk.findings.error("variance", place, text)


def _function(walk: Walk, node: ast.FnDecl) -> None:
    names.function(walk, node, node.name, node.params, node.body)
    if node.returns is None:
        return
    if node.gen and stream_item(node) is None:
        text = f"`gen fn` must return Stream<T>, got {shown(node.returns)}"
        walk.findings.error("generator-result", node.returns, text)
    elif not node.gen and not walk.environment.yields(node):
        walk.enter_function(node, None)
        for param in node.params:
            walk.bind(node, param, param.name, "param")
        check_returns(walk, node.body, node.returns, walk.scope)
        walk.leave_function()


def tool_decl(walk: Walk, node: ast.ToolDecl) -> None:
    walk.attributes(node)
    names.function(walk, node, node.name, node.params, node.body)
    walk.bind(node, node, node.name, "tool")


def impl_decl(walk: Walk, node: ast.ImplDecl) -> None:
    walk.attributes(node)
    declared = walk.types.declared.generic(node.name)
    outer = walk.function
    walk.function = outer.inner(declared.type_params if declared else ())
    for method in node.methods:
        walk.attributes(method)
        _function(walk, method)
    walk.function = outer


def pipeline(walk: Walk, node: ast.Pipeline) -> None:
    walk.attributes(node)
    walk.enter_function(node, node.name)
    for parent in walk.environment.lineage(node):
        _inherit(walk, parent)
    _body(walk, node)
    if node.returns is not None:
        check_returns(walk, node.body, node.returns, walk.scope)
    walk.leave_function()


def override(walk: Walk, node: ast.Override) -> None:
    """What no run reaches (02 §10.4) is judged by the specification's own rules."""
    walk.enter_function(node, node.name)
    walk.quietly(lambda: _body(walk, node))
    walk.leave_function()


def _inherit(walk: Walk, parent: ast.Pipeline) -> None:
    """The top-level bindings of a parent's body, without types (03 §5)."""
    for name in parent.params:
        walk.bind(parent, parent, name, "param")
    for statement in parent.body.statements:
        role = "fn" if isinstance(statement, ast.FnDecl) else "inherited"
        mutable = isinstance(statement, ast.Let) and statement.mutable
        for name in names.declared_names(statement):
            walk.bind(statement, statement, name, role, mutable)


def _body(walk: Walk, node: ast.Pipeline | ast.Override) -> None:
    for name in node.params:
        walk.bind(node, node, name, "param")
    walk.block(node.body)


def type_declaration(walk: Walk, node: ast.Node) -> None:
    walk.attributes(node)
    variance(walk, node)


# Generators, streams, and bodies that run beside the program. Spec: 03 §8.1.


def yield_(walk: Walk, node: ast.Yield) -> None:
    if walk.function.gen:
        text = "`yield` is not a stream emit; use `emit` inside `gen fn`"
        walk.reported.error("misplaced-yield", node, text)
    walk.optional(node.value)


def emit(walk: Walk, node: ast.Emit) -> None:
    if not walk.function.gen:
        walk.reported.error("misplaced-emit", node, "`emit` can only be used inside a `gen fn`")
    walk.visit(node.value)
    expected = walk.function.item
    if expected is None:
        return
    actual = walk.type(node.value)
    if actual is not None and not walk.accepts(expected, node.value, actual):
        text = f"emit type doesn't match: expected {shown(expected)}, got {shown(actual)}"
        walk.findings.error("emit-type", node.value, text)


def parallel(walk: Walk, node: ast.Parallel) -> None:
    walk.visit(node.source)
    if node.max_concurrent is not None:
        walk.visit(node.max_concurrent)
        found = known(walk.type(node.max_concurrent))
        if found is not None and not is_named(found, "int") and not is_named(found, "never"):
            text = f"`max_concurrent` on `parallel` must be int, got {shown(found)}"
            walk.findings.error("max-concurrent-type", node.max_concurrent, text)
    if node.kind == "settle":
        # Who waits for it gets its error as a value; likewise that of a task.
        walk.quietly(lambda: names.parallel_body(walk, node))
    else:
        names.parallel_body(walk, node)


def spawn(walk: Walk, node: ast.Spawn) -> None:
    walk.quietly(lambda: names.spawn(walk, node))
