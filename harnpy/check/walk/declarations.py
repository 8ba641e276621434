"""Declarations: functions, closures, tools, pipelines and types, with their attributes and results.

Spec: 03 §5, §7.3, §8.1, §8.4.
"""

from __future__ import annotations

from harnpy.check.inference import annotated, known, nameless
from harnpy.check.narrowing import after_if, exits
from harnpy.check.scopes import Binding, Scope
from harnpy.check.types import type_nodes
from harnpy.check.types.type_nodes import INT, is_named, shown
from harnpy.check.walk import Function
from harnpy.check.walk.undeclared_names import foreign_type_hint
from harnpy.formats.suggestions import nearest
from harnpy.syntax import ast
from harnpy.syntax.ast import bound_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harnpy.check.findings import Findings
    from harnpy.check.types.type_nodes import Type
    from harnpy.check.walk import Walk

# Attributes: names that are none, and attributes where they mean nothing; warnings all. Spec: 03 §8.4.


_FUNCTIONS = ("function declarations", ast.FnDecl)
#: What an attribute applies to, where that isn't any declaration.
_TARGETS: dict[str, tuple[str, type[ast.Node] | tuple[type[ast.Node], ...]]] = {
    "test": ("pipeline declarations", ast.Pipeline),
    "acp_tool": _FUNCTIONS,
    "acp_skill": _FUNCTIONS,
    "deterministic": _FUNCTIONS,
    "semantic": _FUNCTIONS,
    "archivist": _FUNCTIONS,
    "retroactive": _FUNCTIONS,
    "invariant": (
        "function, tool, or pipeline declarations",
        (ast.FnDecl, ast.ToolDecl, ast.Pipeline),
    ),
}
_KNOWN = (*_TARGETS, "deprecated", "complexity")
_PROVENANCE = ("evidence", "confidence", "source_date", "coverage_examples")


def check_attributes(declaration: ast.Node, findings: Findings) -> None:
    """Warn of the attributes of a declaration, in the order in which they are written."""
    attrs: tuple[ast.Attribute, ...] = getattr(declaration, "attrs", ())
    if not attrs:
        return
    for attr in attrs:
        if attr.name not in _KNOWN:
            near = nearest(attr.name, _KNOWN, limit=3)
            findings.warn(
                "unknown-attribute",
                attr,
                f"unknown attribute `@{attr.name}`",
                help=f"did you mean `@{near}`?" if near else None,
            )
        elif attr.name in _TARGETS and not isinstance(declaration, _TARGETS[attr.name][1]):
            target = _TARGETS[attr.name][0]
            findings.warn("attribute-target", attr, f"`@{attr.name}` only applies to {target}")
    for attr, fault in _flow_faults({attr.name: attr for attr in reversed(attrs)}):
        findings.warn("flow-predicate", attr, fault)


def _flow_faults(attrs: dict[str, ast.Attribute]) -> Iterator[tuple[ast.Attribute, str]]:
    """What is wrong with a Flow predicate, which a bare `@invariant` marks."""
    if "deterministic" in attrs and "semantic" in attrs:
        yield (
            attrs["semantic"],
            "`@deterministic` and `@semantic` are mutually exclusive;"
            " a Flow predicate is one mode or the other",
        )
    invariant = attrs.get("invariant")
    if invariant is not None and not invariant.args:
        if "deterministic" not in attrs and "semantic" not in attrs:
            yield (
                invariant,
                "Flow `@invariant` requires exactly one of `@deterministic` (default) or `@semantic`",
            )
        if "archivist" not in attrs:
            yield (
                invariant,
                "Flow `@invariant` is missing `@archivist(...)` provenance"
                " (evidence, confidence, source_date, coverage_examples)",
            )
    else:
        for name, shown in (("archivist", "@archivist(...)"), ("retroactive", "@retroactive")):
            if name in attrs:
                yield (
                    attrs[name],
                    f"`{shown}` only applies to Flow predicates marked with `@invariant`",
                )
    if "archivist" in attrs:
        yield from _provenance_faults(attrs["archivist"])


def _provenance_faults(archivist: ast.Attribute) -> Iterator[tuple[ast.Attribute, str]]:
    for arg in archivist.args:
        if arg.name is None:
            yield (
                archivist,
                "`@archivist(...)` arguments must be named (e.g. `evidence: [...], confidence: 0.9`)",
            )
        elif arg.name not in _PROVENANCE:
            expected = ", ".join(f'"{name}"' for name in _PROVENANCE)
            yield archivist, f"unknown `@archivist` argument `{arg.name}`; expected one of [{expected}]"
        elif arg.name == "confidence" and not _is_share(arg.value):
            yield archivist, "`@archivist(confidence: ...)` must be a float in [0.0, 1.0]"
    if not any(arg.name == "evidence" for arg in archivist.args):
        yield (
            archivist,
            "`@archivist(...)` should declare `evidence: [...]` so predicates can be audited",
        )


def _is_share(value: ast.Node) -> bool:
    return isinstance(value, ast.Float | ast.Int) and 0 <= value.value <= 1


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
        else:
            scope = _hidden(statement, scope)


def _hidden(statement: ast.Node, scope: Scope) -> Scope:
    """The scope after a statement: what it declares hides what had the name before."""
    if isinstance(statement, ast.Let):
        return nameless(scope, bound_names(statement.target))
    if isinstance(statement, ast.FnDecl | ast.ToolDecl):
        return nameless(scope, [statement.name])
    return scope


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
    walk.quietly(lambda: function(walk, node))


def function(walk: Walk, node: ast.Closure | ast.FnExpr) -> None:
    inner = Scope(walk.scope, function=True)

    def visit() -> None:
        parameters(walk, node.params)
        walk.block(node.body, scope=inner)

    walk.in_function(walk.function.inner(), inner, visit)


def parameters(walk: Walk, params: Sequence[ast.Param]) -> None:
    """Declare parameters; a default sees those before it."""
    for param in params:
        walk.optional(param.default)
        sure = None if param.type is None or param.rest else annotated(walk.inference, param.type)
        walk.scope.declare(Binding(param.name, param, param.type, certain=sure))


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


def type_declaration(walk: Walk, node: ast.Node) -> None:
    check_attributes(node, walk.findings)
    variance(walk, node)


def skill(walk: Walk, node: ast.SkillDecl) -> None:
    check_attributes(node, walk.findings)
    for field in node.fields:
        walk.visit(field.value)
    if not walk.at_file_level:
        walk.scope.declare(Binding(node.name, node))


def eval_pack(walk: Walk, node: ast.EvalPack) -> None:
    """The fields see what is around the pack, the statements see the fields too."""
    check_attributes(node, walk.findings)
    for field in node.fields:
        walk.visit(field.value)
    walk.scope.declare(Binding(node.name, node))
    inner = Scope(walk.scope)
    for name in ("id", "version", *(field.name for field in node.fields)):
        if name != node.name:
            inner.declare(Binding(name, node))
    outer, walk.scope = walk.scope, inner
    walk.statements(node.body)
    walk.optional(node.summarize)
    walk.scope = outer


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
    inner = Scope(walk.scope, function=True)
    if node.param:
        item = INT if node.kind == "count" else type_nodes.element(walk.type(node.source))
        inner.declare(Binding(node.param, node, item))
    _apart(walk, node.body, inner, handled=node.kind == "settle")


def spawn(walk: Walk, node: ast.Spawn) -> None:
    _apart(walk, node.body, Scope(walk.scope, function=True), handled=True)


def _apart(walk: Walk, body: ast.Block, scope: Scope, handled: bool) -> None:
    """Visit a body that runs as a task; ``handled``: whoever waits for it gets its error as a value."""

    def visit() -> None:
        walk.block(body, scope=scope)

    inside = walk.function.inner()
    walk.in_function(inside, scope, (lambda: walk.quietly(visit)) if handled else visit)
