"""Calls in tail position: the function leaves before what it calls begins. Spec: 02 §9.4.

A function that calls itself goes back to its top. Any other call is left to the caller: the function returns
`TAIL`, and the nearest trampoline makes the call.
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.emit.nodes.calls import at_most, fallback, missing
from harnpy.vm.emit.operand import joined, tuple_text
from harnpy.vm.resolve.tail_calls import tail_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.emit.function import Emitter
    from harnpy.vm.emit.operand import Text
    from harnpy.vm.resolve.scopes import Reference


def tail_call(e: Emitter, node: ast.Node) -> bool:
    """Write ``return f(…)`` as a tail call, if it is one. Spec: 02 §9.4.

    ``return f(n - 1)``, by what `f` is: the function itself; another `fn`, which calls functions in turn; a
    variable with any value.

        n_2 = t1            TAIL.args = (t1,)           return tail_named(f_3, 'f', e, (t1,), ())
        continue            TAIL.body = f_3.body
                            return TAIL
    """
    if e.protections or e.generator or e.function.defers or e.own is not None or not called_by_calls(e):
        return False
    ref = tail_target(e.unit.resolution, node)
    if ref is None or ref.variable is None:
        return False
    variable = ref.variable
    args = [node.left] if isinstance(node, ast.Pipe) else list(node.args)  # type: ignore[attr-defined]
    if is_self(e, ref) and not e.loops:
        again(e, args)
        return True
    fn = variable.known_fn
    if fn and not e.unit.calls_out(fn):
        return False
    e.may_tail = True
    texts = e.operands(args)
    if fn:
        known_tail(e, fn, variable.python, texts)
    else:
        target, given = variable.python, f"{e.depth()}, {tuple_text(texts)}"
        if isinstance(node, ast.Call):
            text = f"tail_named({target}, {ref.name!r}, {given}, {fallback(e, ref)})"
        else:
            text = f"tail_pipe({target}, {given})"
        e.line("return " + e.mark(node, text))
    return True


def called_by_calls(e: Emitter) -> bool:
    """Whether the callers of the function being written make the tail call that it returns."""
    return e.function.parent is not None and not isinstance(e.function.node, ast.Spawn | ast.Parallel)


def known_tail(e: Emitter, fn: ast.FnDecl, target: str, args: list[Text]) -> None:
    """Leave the call to make with the caller: what to run, with what."""
    if len(args) == len(fn.params) and not (fn.params and fn.params[-1].rest):
        e.line(f"TAIL.args = {tuple_text(args)}")
        e.line(f"TAIL.body = {target}.body")
        e.line("return TAIL")
    else:
        e.line(f"return tail({target}, {tuple_text(args)})")


def is_self(e: Emitter, ref: Reference) -> bool:
    """Whether a name means the function being written."""
    own = e.function.own_variable
    return own is not None and ref.variable is not None and ref.variable.captured_from is own


def again(e: Emitter, args: list[ast.Node]) -> None:
    """Call the function itself in tail position: new parameters, and back to its top."""
    e.self_tail = True
    fn = e.function.node
    params = fn.params  # type: ignore[attr-defined]
    texts = e.operands(args)
    if params and params[-1].rest:
        plain = len(params) - 1
        rest = [f"[{joined(texts[plain:])}]"]
        texts = texts[:plain]
    else:
        plain, rest = len(params), []
        texts = at_most(e, plain, texts)
    given = [*texts, *missing(params[len(texts) : plain]), *rest]
    if given:
        names = ", ".join(variable.python for variable in e.function.params)
        e.line(f"{names} = {joined(given)}")
    e.line("continue")
