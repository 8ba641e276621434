"""Rules of structure that the grammar cannot express, checked on the tree before a run. Spec: 01 §10.

What the parser itself can tell (parameter order, assignable targets, `select` cases, …) is refused there,
at the token where the specification reports it.
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.syntax.lexer import INT_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.syntax.diagnostic import CompileFault

#: Bodies that begin a function of their own, which `break` cannot leave and `try*` can return from.
_FUNCTIONS = {ast.FnDecl, ast.FnExpr, ast.Closure, ast.ToolDecl, ast.Pipeline, ast.Override}
#: Bodies that run on their own: a `break` inside does not reach the loop around.
_DETACHED = {ast.Spawn, ast.Parallel, ast.Defer, ast.EvalPack}
_LOOPS = {ast.For, ast.While}
#: Nodes that have rules.
_RULED = {ast.Break, ast.Continue, ast.TryStar, ast.Spread, ast.Binary, ast.Duration, ast.Attribute}
_SPREADABLE = ast.List | ast.Dict | ast.StructLit | ast.Call | ast.MethodCall
_FUNCTION_ATTRIBUTES = ("acp_tool", "acp_skill")
_TRY_STAR = "try* requires an enclosing function (fn, tool, or pipeline) so the rethrow has a target"
_SPREAD = "spread (...) can only be used inside list literals, dict literals, or function call arguments"

#: A node, whether a loop and a function enclose it, and its parent.
_Place = tuple[ast.Node, bool, bool, ast.Node | None]


def check_structure(program: ast.Program, source: str, file: str = "<script>") -> list[CompileFault]:
    """Every violation, in source order; the first is the one to report."""
    violations: list[tuple[ast.Node, str, str]] = []
    # A stack of our own: a sum of twenty thousand terms is a tree that deep.
    places: list[_Place] = [(program, False, False, None)]
    while places:
        node, in_loop, in_function, parent = places.pop()
        kind = type(node)
        violation = _violation(node, in_loop, in_function, parent) if kind in _RULED else None
        if violation is not None:
            violations.append((node, *violation))
        if kind in _FUNCTIONS:
            in_loop, in_function = False, True
        elif kind in _DETACHED:
            in_loop = False
        body = node.body if kind in _LOOPS else None  # type: ignore[attr-defined]
        places += [
            (child, in_loop or child is body, in_function, node) for child in reversed(node.children())
        ]
    return _faults(violations, source, file) if violations else []


def _violation(
    node: ast.Node, in_loop: bool, in_function: bool, parent: ast.Node | None
) -> tuple[str, str] | None:
    """The code and the text of what is wrong with ``node``."""
    if isinstance(node, ast.Break) and not in_loop:
        return "break-outside-loop", "break outside of loop"
    if isinstance(node, ast.Continue) and not in_loop:
        return "break-outside-loop", "continue outside of loop"
    if isinstance(node, ast.TryStar) and not in_function:
        return "try-star-outside-function", _TRY_STAR
    if isinstance(node, ast.Spread) and not isinstance(parent, _SPREADABLE):
        return "misplaced-spread", _SPREAD
    if isinstance(node, ast.Binary) and node.op == "|":
        return "unexpected-token", "or-pattern (|) can only appear as a match arm pattern"
    if isinstance(node, ast.Duration) and node.ms > INT_MAX:
        return "duration-too-large", "duration literal is too large"
    if isinstance(node, ast.Attribute) and node.name in _FUNCTION_ATTRIBUTES:
        return _attribute_violation(node, parent)
    return None


def _attribute_violation(node: ast.Attribute, target: ast.Node | None) -> tuple[str, str] | None:
    if not isinstance(target, ast.FnDecl):
        return "misplaced-attribute", f"@{node.name} can only be applied to function declarations"
    if any(isinstance(arg.value, ast.Name | ast.List) for arg in node.args):
        return "attribute-not-literal", "attribute argument must be a literal value"
    return None


def _faults(violations: list[tuple[ast.Node, str, str]], source: str, file: str) -> list[CompileFault]:
    """The faults for nodes, codes and texts. What reports errors is loaded when there are some."""
    from harnpy.syntax.diagnostic import CompileFault, Diagnostic, Lines

    lines = Lines(source)
    faults = []
    for node, code, text in violations:
        span = lines.span(node.start, node.end)
        headline = f"compile error: Compile error at line {span.line}: {text}"
        found = Diagnostic("error", headline, span, code, code=code)
        faults.append(CompileFault(span.line, text, [found], source, file))
    return faults
