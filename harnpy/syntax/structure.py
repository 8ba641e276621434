"""Rules of structure that the grammar cannot express, checked on the tree before a run. Spec: 01 §10.

What the parser itself can tell (parameter order, assignable targets, `select` cases, …) is refused there,
at the token where the specification reports it.
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.syntax.lexer import INT_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.syntax.errors import CompileFault

#: Bodies that begin a function of their own, which `break` cannot leave and `try*` can return from.
_FUNCTIONS = ast.FnDecl | ast.FnExpr | ast.Closure | ast.ToolDecl | ast.Pipeline | ast.Override
#: Bodies that run on their own: a `break` inside does not reach the loop around.
_DETACHED = ast.Spawn | ast.Parallel | ast.Defer | ast.EvalPack
_SPREADABLE = ast.List | ast.Dict | ast.StructLit | ast.Call | ast.MethodCall
_FUNCTION_ATTRIBUTES = ("acp_tool", "acp_skill")

#: A node, whether a loop and a function enclose it, and its parent.
_Place = tuple[ast.Node, bool, bool, ast.Node | None]


def check_structure(program: ast.Program, source: str, file: str = "<script>") -> list[CompileFault]:
    """Every violation, in source order; the first is the one to report."""
    violations: list[tuple[int, str]] = []
    # A stack of our own: a sum of twenty thousand terms is a tree that deep.
    places: list[_Place] = [(program, False, False, None)]
    while places:
        node, in_loop, in_function, parent = places.pop()
        text = _violation(node, in_loop, in_function, parent)
        if text is not None:
            violations.append((node.start, text))
        if isinstance(node, _FUNCTIONS):
            in_loop, in_function = False, True
        elif isinstance(node, _DETACHED):
            in_loop = False
        body = node.body if isinstance(node, ast.For | ast.While) else None
        children = [(child, in_loop or child is body, in_function, node) for child in node.children()]
        places += reversed(children)
    return _faults(violations, source, file) if violations else []


def _violation(node: ast.Node, in_loop: bool, in_function: bool, parent: ast.Node | None) -> str | None:
    if isinstance(node, ast.Break) and not in_loop:
        return "break outside of loop"
    if isinstance(node, ast.Continue) and not in_loop:
        return "continue outside of loop"
    if isinstance(node, ast.TryStar) and not in_function:
        return "try* requires an enclosing function (fn, tool, or pipeline) so the rethrow has a target"
    if isinstance(node, ast.Spread) and not isinstance(parent, _SPREADABLE):
        return "spread (...) can only be used inside list literals, dict literals, or function call arguments"
    if isinstance(node, ast.Binary) and node.op == "|":
        return "or-pattern (|) can only appear as a match arm pattern"
    if isinstance(node, ast.Duration) and node.ms > INT_MAX:
        return "duration literal is too large"
    if isinstance(node, ast.Attribute) and node.name in _FUNCTION_ATTRIBUTES:
        return _attribute_violation(node, parent)
    return None


def _attribute_violation(node: ast.Attribute, target: ast.Node | None) -> str | None:
    if not isinstance(target, ast.FnDecl):
        return f"@{node.name} can only be applied to function declarations"
    if any(isinstance(arg.value, ast.Name | ast.List) for arg in node.args):
        return "attribute argument must be a literal value"
    return None


def _faults(violations: list[tuple[int, str]], source: str, file: str) -> list[CompileFault]:
    """The faults for offsets and texts. What reports errors is loaded when there are some."""
    from harnpy.syntax.diagnostic import Diagnostic
    from harnpy.syntax.errors import CompileFault
    from harnpy.syntax.span import Lines

    lines = Lines(source)
    faults = []
    for offset, text in violations:
        line = lines.line(offset)
        headline = f"compile error: Compile error at line {line}: {text}"
        faults.append(CompileFault(line, text, [Diagnostic("error", headline)], source, file))
    return faults
