"""Which calls may be tail calls: made when the function that returns their value has ended. Spec: 02 §9.4."""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.resolve.expressions import TASK_CALLS
from harnpy.vm.resolve.preparation import is_probe
from harnpy.vm.resolve.tree import walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.resolve.scopes import Reference, Resolution

CALLS = (ast.Call, ast.MethodCall, ast.Pipe, ast.Spawn, ast.Parallel)


def tail_target(resolution: Resolution, node: ast.Node) -> Reference | None:
    """What ``f(…)`` or ``x |> f`` calls, if that is a variable; None for all that is no tail call."""
    if isinstance(node, ast.Pipe) and isinstance(node.right, ast.Name):
        if (id(node), "_") in resolution.variables:
            return None
        ref = resolution.refs[id(node.right)]
    elif isinstance(node, ast.Call) and node.name not in TASK_CALLS:
        if any(isinstance(arg, ast.Spread) for arg in node.args):
            return None
        ref = resolution.refs[id(node)]
    else:
        return None
    variable = ref.variable
    callable_ = ref.kind == "local" and variable and not variable.struct and not variable.in_box
    return ref if callable_ else None


def calls_out(fn: ast.FnDecl) -> bool:
    """Whether running ``fn`` may call user code: if not, calling it in tail position is no risk.

    An empty body may stand for a function of another file, of which nothing is known.
    """
    body = fn.body.statements
    return not body or any(isinstance(node, CALLS) and not is_probe(node) for node in walk(fn.body))
