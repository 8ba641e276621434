"""Blocks with scopes of their own, and declarations other than functions."""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.resolve.scopes import BlockScope
from harnpy.vm.resolve.tree import pack_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.resolve.visitor import Visitor


def block(r: Visitor, node: ast.Block) -> None:
    r.open_scope(node)
    r.statements(node.statements)
    r.close_scope()


def retry(r: Visitor, node: ast.Retry) -> None:
    r.visit(node.count)
    r.statements(node.body.statements)


def skill_decl(r: Visitor, node: ast.SkillDecl) -> None:
    r.children(node)
    r.declare(node, node.name, False, "skill").opaque = True


def eval_pack(r: Visitor, node: ast.EvalPack) -> None:
    """The fields see what is around the pack, the statements see the fields too (08 §8.7)."""
    for field in node.fields:
        r.visit(field)
    r.declare(node, node.name, False, "eval_pack").opaque = True
    r.function.scopes.append(BlockScope())
    for owner, name in pack_names(node):
        r.declare(owner, name, False, "field").opaque = True
    r.open_scope(node)
    r.statements(node.body)
    r.optional(node.summarize)
    r.close_scope()
    r.close_scope()


def struct_decl(r: Visitor, node: ast.StructDecl) -> None:
    r.declare(node, node.name, False, "struct").struct = node


def import_(r: Visitor, node: ast.Import) -> None:
    """Imported functions are variables like the file's own; the first of a name wins (06 §5)."""
    scope = r.function.scopes[-1]
    bound = r.out.imported[id(node)] = []
    if r.imports is None:
        return
    from harnpy.vm.modules.offers import stub

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
