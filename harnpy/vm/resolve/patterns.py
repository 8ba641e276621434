"""Names that patterns declare: in `let`, `for`, `match`, `catch` and `select`. Spec: 02 §11–13."""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.syntax.ast.patterns import bound_names
from harnpy.vm.resolve.tree import match_parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.resolve.visitor import Visitor


def let(r: Visitor, node: ast.Let) -> None:
    r.visit(node.value)
    plain = isinstance(node.target, ast.NamePattern)
    pattern(r, node.target, node.mutable, node.value if plain else None, "let")


def pattern(r: Visitor, pattern: ast.Node, mutable: bool, value: ast.Node | None, role: str) -> None:
    """Declare what a pattern binds; defaults see the names before them (02 §13)."""
    if isinstance(pattern, ast.DictPattern | ast.ListPattern):
        for entry in pattern.entries:
            r.optional(entry.default)
            if entry.name != "_":
                r.declare(pattern, entry.name, mutable, role).opaque = True
        names = [pattern.rest] if pattern.rest and pattern.rest != "_" else []
    else:
        names = bound_names(pattern)
    for name in names:
        variable = r.declare(pattern, name, mutable, role)
        if value is None:
            variable.opaque = True
        else:
            variable.values.append(value)


def for_(r: Visitor, node: ast.For) -> None:
    r.visit(node.iterable)
    r.open_scope(node)
    pattern(r, node.pattern, True, None, "for")
    if isinstance(node.pattern, ast.NamePattern) and node.pattern.name != "_":
        variable = r.out.variables[id(node.pattern), node.pattern.name]
        variable.opaque = not counts(r, node.iterable)
    r.statements(node.body.statements)
    r.close_scope()


def counts(r: Visitor, iterable: ast.Node) -> bool:
    """Whether a loop over ``iterable`` surely yields ints."""
    if isinstance(iterable, ast.Call):
        return iterable.name == "range" and r.out.refs[id(iterable)].kind == "builtin"
    return isinstance(iterable, ast.RangeTo)


def match(r: Visitor, node: ast.Match) -> None:
    r.visit(node.value)
    for arm in node.arms:
        r.open_scope(arm)
        for pattern in arm.patterns:
            match_pattern(r, pattern, arm, alone=len(arm.patterns) == 1)
        r.optional(arm.guard)
        r.visit(arm.body)
        r.close_scope()


def match_pattern(r: Visitor, pattern: ast.Node, arm: ast.Arm, alone: bool) -> None:
    """Names stand for variables in patterns; what is left is an expression (02 §12)."""
    if isinstance(pattern, ast.Name):
        if pattern.name == "_":
            return
        if alone:
            r.declare(pattern, pattern.name, False, "match").opaque = True
            return
    if not alone:
        r.visit(pattern)
        return
    for part in match_parts(pattern, r.out.enums):
        if isinstance(part, ast.Name):
            if part.name != "_":
                r.declare(part, part.name, False, "match").opaque = True
        else:
            r.visit(part)


def catch(r: Visitor, node: ast.Catch) -> None:
    r.open_scope(node)
    if node.name and node.name != "_":
        r.declare(node, node.name, False, "catch").opaque = True
    r.visit(node.body)
    r.close_scope()


def select_case(r: Visitor, node: ast.SelectCase) -> None:
    r.optional(node.source)
    r.open_scope(node)
    if node.name and node.name != "_":
        r.declare(node, node.name, False, "select").opaque = True
    r.visit(node.body)
    r.close_scope()
