"""Statements: bindings, blocks and what decides whether they run, `match`, and what leaves a block.

Spec: 03 §5, §6, §8, §10.
"""

from __future__ import annotations

from harnpy.check.exhaustiveness import check_coverage, check_exhaustive
from harnpy.check.findings import declared_here
from harnpy.check.narrowing import after_if, arm_facts, check_arm
from harnpy.check.scopes import assigned
from harnpy.check.types.type_nodes import shown
from harnpy.check.walk.undeclared_names import foreign_type_hint
from harnpy.syntax import ast, names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.check.narrowing import Facts
    from harnpy.check.types.type_nodes import Type
    from harnpy.check.walk import Walk

# `let` and `var`. Spec: 03 §5 (bindings), §8.1, §8.2.


def let(walk: Walk, node: ast.Let) -> None:
    if isinstance(node.value, ast.Closure | ast.FnExpr):
        names.closure(walk, node.value)
    else:
        walk.visit(node.value)
    if isinstance(node.target, ast.NamePattern) and node.type is not None:
        _check_annotation(walk, node.target.name, node.type, node.value)
    names.let_names(walk, node)


def _check_annotation(walk: Walk, name: str, expected: Type, value: ast.Node) -> None:
    actual = walk.type(value)
    if actual is not None and not walk.accepts(expected, value, actual):
        detail = lacking(actual, expected)
        text = f"'{name}' declared as {shown(expected)}, but assigned {shown(actual)}{detail}"
        help = foreign_type_hint(walk, expected)
        walk.findings.error("assignment-type", value, text, help=help, places=[declared_here(expected)])


def lacking(actual: Type, expected: Type) -> str:
    """Return `` (missing field …)``: what a shape lacks of another, as messages end (03 §8.1); or nothing."""
    if not isinstance(actual, ast.TypeShape) or not isinstance(expected, ast.TypeShape):
        return ""
    given = {field.name: shown(field.type) for field in actual.fields}
    faults = []
    for field in expected.fields:
        wanted = shown(field.type)
        if field.optional:
            continue
        if field.name not in given:
            faults.append(f"missing field '{field.name}' ({wanted})")
        elif given[field.name] != wanted:
            faults.append(f"field '{field.name}' has type {given[field.name]}, expected {wanted}")
    return f" ({'; '.join(faults)})" if faults else ""


# Statements that leave a block, and imports. Spec: 03 §8.1, §10.2; 06 §6.


def return_(walk: Walk, node: ast.Return) -> bool:
    walk.optional(node.value)
    return True


def throw(walk: Walk, node: ast.Throw) -> bool:
    walk.visit(node.value)
    never_returns(walk, "throw", node)
    return True


def leave(walk: Walk, node: ast.Node) -> bool:
    return True


def never_returns(walk: Walk, site: str, node: ast.Node) -> None:
    """Judge which `unknown` variables have been tested in part where control never comes back."""
    unknowns = [
        (binding.name, binding.excluded)
        for binding in walk.scope.locals()
        if binding.excluded and _is_unknown(binding.type)
    ]
    if unknowns:
        check_coverage(site, node, unknowns[::-1], walk.findings)


def _is_unknown(type: ast.Node | None) -> bool:
    return getattr(type, "name", None) == "unknown"


def import_(walk: Walk, node: ast.Import) -> None:
    """Report the names that a module has not (06 §6); in a block, bind those that it has."""
    imported = walk.environment.imported
    if imported is not None and not walk.at_file_level:
        for name in imported.bound_by(node):
            walk.bind(node, node, name, "import")
    if imported is not None and not walk.quiet and (missing := imported.missing(node)):
        module, listed = missing
        for name in listed:
            text = f"Import error: '{name}' is not defined in {module}"
            other = f'only functions can be listed; `import "{node.path}"` brings its types'
            help_ = other if name in imported.names else None
            walk.findings.error("unknown-import", node, text, help=help_)


# Blocks and what decides whether they run: conditions, loops, `try`. Spec: 03 §5, §6.


def block(walk: Walk, node: ast.Block) -> bool:
    return walk.block(node)


def if_(walk: Walk, node: ast.If) -> bool:
    walk.visit(node.cond)
    sides = walk.inference.sides(node.cond, walk.scope)
    then_leaves = walk.block(node.then, sides[0])
    else_leaves = _otherwise(walk, node.otherwise, sides[1])
    facts = after_if(sides, then_leaves, else_leaves)
    stayed = node.otherwise if then_leaves else node.then
    if facts and stayed is not None:
        # The branch that goes on may have changed what the condition was about.
        facts = facts.without({name for name, _ in assigned(stayed)})
    walk.learn(facts)
    return then_leaves and else_leaves


def _otherwise(walk: Walk, node: ast.Node | None, facts: Facts) -> bool:
    if node is None:
        return False
    if isinstance(node, ast.Block):
        return walk.block(node, facts)
    outer = walk.scope
    walk.scope = walk.inference.narrowed(facts, outer)
    leaves = bool(walk.visit(node))
    walk.scope = outer
    return leaves


def ternary(walk: Walk, node: ast.Ternary) -> None:
    walk.visit(node.cond)
    outer = walk.scope
    for facts, side in zip(walk.inference.sides(node.cond, outer), (node.then, node.otherwise), strict=True):
        walk.scope = walk.inference.narrowed(facts, outer)
        walk.visit(side)
    walk.scope = outer


def while_(walk: Walk, node: ast.While) -> None:
    walk.open_scope(node)
    walk.visit(node.cond)
    walk.block(node.body, walk.inference.sides(node.cond, walk.scope)[0])
    walk.close_scope()


def guard(walk: Walk, node: ast.Guard) -> None:
    walk.visit(node.cond)
    sides = walk.inference.sides(node.cond, walk.scope)
    walk.block(node.otherwise, sides[1])
    walk.learn(sides[0])


def try_(walk: Walk, node: ast.Try) -> None:
    walk.quietly(lambda: walk.block(node.body))
    walk.optional(node.catch)
    walk.optional(node.finally_)


def retry(walk: Walk, node: ast.Retry) -> None:
    """A body that may fail without harm; it opens no scope (02 §7.2)."""
    walk.visit(node.count)
    walk.scope.repeat(node.body)
    walk.quietly(lambda: walk.statements(node.body.statements))


# `match`: its value, its arms in order, whether they leave nothing out. Spec: 03 §6, §8.1, §10.1; 02 §12.


def match(walk: Walk, node: ast.Match) -> None:
    walk.visit(node.value)
    value_type = walk.type(node.value)
    object_type = walk.type(node.value.object) if isinstance(node.value, ast.Member) else None
    for arm, facts in zip(node.arms, arm_facts(node, walk.scope.type_of, walk.types), strict=True):
        _arm(walk, arm, facts, value_type)
    check_exhaustive(node, value_type, object_type, walk.types, walk.function.type_params, walk.findings)


def _arm(walk: Walk, arm: ast.Arm, facts: Facts, value_type: ast.Node | None) -> None:
    walk.open_scope(arm)
    names.arm_names(walk, arm)
    check_arm(arm, value_type, walk.types, walk.findings)
    inner = walk.scope
    inner.narrow({n: t for n, t in facts.types.items() if n not in inner.names}, facts.ruled_out)
    walk.optional(arm.guard)
    walk.block(arm.body)
    walk.close_scope()
