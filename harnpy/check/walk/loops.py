"""What is known of variables inside a loop, which may have assigned them before. Spec: 03 §5, §6."""

from __future__ import annotations

from harnpy.check.scopes import Scope
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.check.scopes import Binding
    from harnpy.check.walk.visitor import Walk

#: Values of the kind that a variable of theirs has had before.
_KEEPING = (ast.Int, ast.Float, ast.Str, ast.Interp, ast.Bool)
_ARITHMETIC = frozenset("+-*/%") | {"**"}


def loop_scope(walk: Walk, body: ast.Block) -> Scope:
    """A scope for a loop: what holds of a variable that the body assigns may hold only the first time."""
    inner = Scope(walk.scope)
    for name, keeps in assigned(body):
        found = walk.scope.find(name)
        if found is not None and _is_open(found, keeps):
            inner.views[name] = found.view(None)
    return inner


def _is_open(found: Binding, keeps: bool) -> bool:
    """Whether a variable may hold something else the next time; ``keeps``: not what is assigned here."""
    if found.widens or found.type is not found.declared:
        return True
    is_plain = isinstance(found.type, ast.TypeName) and not found.type.args
    return found.inferred and not (is_plain and keeps)


def assigned(block: ast.Node) -> Iterator[tuple[str, bool]]:
    """The variables that ``block`` assigns, each time with whether the value is surely of their kind."""
    stack: list[ast.Node] = [block]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Assign):
            root = node.target
            while isinstance(root, ast.Member | ast.Index):
                root = root.object
            if isinstance(root, ast.Name):
                yield root.name, root is node.target and _keeps(node)
        stack.extend(node.children())


def _keeps(node: ast.Assign) -> bool:
    value = node.value
    is_arithmetic = isinstance(value, ast.Binary) and value.op in _ARITHMETIC
    return node.op != "=" or is_arithmetic or isinstance(value, _KEEPING)
