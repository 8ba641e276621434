"""Declarations of types, skills and eval packs. Spec: 03 §7.3, 08 §8.7."""

from __future__ import annotations

from harnpy.check.attributes import check_attributes
from harnpy.check.scopes import Binding, Scope
from harnpy.check.walk.functions import variance

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.check.walk.visitor import Walk
    from harnpy.syntax import ast


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
