"""Nodes that make functions: `fn`, closures, the bodies of tasks, `impl` and `defer`."""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.emit.function import DISCARD, Emitter
from harnpy.vm.emit.nodes.makers import is_rest, write_maker
from harnpy.vm.emit.operand import joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.vm.emit.operand import Operand, Text


def declaration(e: Emitter, node: ast.FnDecl) -> None:
    variable = e.declared_by(node, node.name)
    if e.refuses(node, node.name):
        return
    if id(node) in e.unit.resolution.contested:
        e.line(f"if {node.name!r} in bound: redeclared({node.name!r})")
    body, trampoline = make(e, node, node.name, node.body, node.params)
    if variable.shell:
        e.line(f"fill({variable.python}, {body}, {trampoline})")
    else:
        e.assign_new(variable, fn_text(node.name, node.params, body, trampoline))


def closure(e: Emitter, node: ast.Closure | ast.FnExpr, into: Operand | None) -> Text:
    """``{ x -> x + k }``: ``Fn(None, ('x',), make1(k_1))``, of a maker at the top of the text."""
    body, trampoline = make(e, node, "<closure>", node.body, node.params)
    return fn_text(None, node.params, body, trampoline)


def fn_text(name: str | None, params: Sequence[ast.Param], body: str, trampoline: bool) -> str:
    names = tuple(param.name for param in params)
    if trampoline:
        return f"bouncing({name!r}, {names!r}, {body}, {is_rest(params)})"
    rest = ", True" if is_rest(params) else ""
    return f"{'Fn' if name is None else 'named'}({name!r}, {names!r}, {body}{rest})"


def make(
    e: Emitter, node: ast.Node, shown: str, body: ast.Block, params: Sequence[ast.Param]
) -> tuple[str, bool]:
    """Text that makes the Python function of ``node``, and whether it may return a tail call."""
    function = e.unit.resolution.functions[id(node)]
    maker = write_maker(Emitter(e.unit, function), shown, body, params)
    captured = [
        outer.python if not own.late or outer.captured_from else outer.box
        for outer, own in function.captures.items()
    ]
    return f"{maker.name}({', '.join(captured)})", maker.may_tail


def spawn(e: Emitter, node: ast.Spawn, into: Operand | None) -> Text:
    body, _ = make(e, node, "<task>", node.body, ())
    return e.mark(node, f"spawn({body})")


def parallel(e: Emitter, node: ast.Parallel, into: Operand | None) -> Text:
    limit = node.max_concurrent
    texts = e.operands([node.source, limit] if limit else [node.source])
    function = e.unit.resolution.functions[id(node)]
    body, _ = make(e, node, "<task>", node.body, ())
    cap = texts[1] if limit else "None"
    kind = "stream" if node.stream else node.kind
    takes = bool(function.params)
    return e.mark(node, f"parallel({kind!r}, {texts[0]}, {body}, {takes}, {cap})")


def impl(e: Emitter, node: ast.ImplDecl) -> None:
    """Methods are found by the struct's name when they are called (02 §15.3)."""
    for fn in node.methods:
        body, trampoline = make(e, fn, f"{node.name}.{fn.name}", fn.body, fn.params)
        text = fn_text(fn.name, fn.params, body, trampoline)
        e.line(f"implement({node.name!r}, {fn.name!r}, {text})")


def defer(e: Emitter, node: ast.Defer) -> None:
    """A nested Python function: it sees the current values of the variables around it (02 §19.6).

    ``defer { n = n + 1 }``, in a function whose body is in a `try` that runs ``defers`` at its end:

        def deferred1():
         nonlocal n_1
         n_1 = n_1 + 1
         return None
        defers.append(deferred1)
    """
    name = f"deferred{e.number_temp()}"
    with e.nested_function() as nested:
        e.block(node.body, DISCARD)
        e.line("return None")
    e.line(f"def {name}():")
    if nested.assigned:
        e.line(f" nonlocal {joined(sorted(nested.assigned, key=str))}")
    e.lines.extend(nested.lines)
    e.line(f"defers.append({name})")
    for slot in nested.assigned:
        e.assigned(slot)
