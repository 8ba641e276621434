"""Statements that leave a block, and imports. Spec: 03 §8.1, §10.2; 06 §6."""

from __future__ import annotations

from harnpy.check.narrowing.coverage import check_coverage
from harnpy.check.scopes import Binding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.check.walk.visitor import Walk
    from harnpy.syntax import ast


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
            walk.scope.declare(Binding(name, node))
    if imported is not None and not walk.quiet and (missing := imported.missing(node)):
        module, names = missing
        for name in names:
            text = f"Import error: '{name}' is not defined in {module}"
            other = f'only functions can be listed; `import "{node.path}"` brings its types'
            help_ = other if name in imported.names else None
            walk.findings.error("unknown-import", node, text, help=help_)
