"""Small functions and methods written in place of their calls.

``fn add(a, b) { return a + b }`` only computes with its parameters: of ints it cannot fail, so nobody sees
in whose frame it runs. Of ``s = add(s, i)`` in a loop:

    t1 = add_3.plain and e < 513
    while i_2 < 9:
     if t1 and not signal.pending: t2 = s_1 + i_2
     else: t2 = add_3.fast(e, s_1, i_2)
     s_1 = t2

The call itself is made where something could tell: while the signal is up, since a call looks at it (05 §9);
at the greatest depth (02 §9.4); before the declaration has been executed; and if calls are recorded (04 §25).
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.syntax.ast import walk
from harnpy.vm.emit.bounds import bounds
from harnpy.vm.resolve.types import annotation_spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harnpy.vm.emit import Operand, Text
    from harnpy.vm.emit.emitter import Emitter
    from harnpy.vm.resolve.kinds import Version

    Arguments = Sequence[tuple[ast.Node, Text]]


def needs_no_checks(e: Emitter, fn: ast.FnDecl, version: Version) -> bool:
    """Return True if no annotation is checked when ``version`` is called."""
    return all(
        param.type is None or version.passes(param, i) or not annotation_spec(param.type, e.unit.resolution)
        for i, param in enumerate(fn.params)
    )


def reads_only_parameters(e: Emitter, fn: ast.FnDecl) -> bool:
    params = e.unit.resolution.functions[id(fn)].params
    refs = (e.refs.get(id(node)) for node in walk(fn.body) if isinstance(node, ast.Name))
    return all(ref is None or ref.variable in params for ref in refs)


def result_of(e: Emitter, fn: ast.FnDecl, version: Version) -> ast.Node | None:
    """The expression that ``fn`` returns, if it does nothing but compute that."""
    from harnpy.vm.emit.callbacks import computes

    match fn.body.statements:
        case (ast.Return(value=value),) if value and computes(e, version.view, value):
            fits = reads_only_parameters(e, fn) and needs_no_checks(e, fn, version)
            return value if fits else None
    return None


def inlined(
    e: Emitter, value: ast.Node, version: Version, args: Arguments, plain: Text, call: Callable[[], str]
) -> Operand:
    """Write ``value``, what `result_of` gave, where ``plain`` is true and the signal down, else ``call``."""
    slot, outside = e.temp(), e.view
    params = version.scope.params
    within = [bounds(e, node) if e.kind(node) == "int" else None for node, _ in args]
    own = [variable.python for variable in params]
    e.line(f"if {plain} and not signal.pending:")
    with e.indented():
        e.known.enter()
        for variable, (_, text), known in zip(params, args, within, strict=True):
            variable.python = str(text)
            if known:
                e.known.learn(variable, known)
        e.view = version.view
        e.assign(slot, e.expr(value, slot))
        e.view = outside
        for variable, name in zip(params, own, strict=True):
            variable.python = name
        e.known.leave()
    with e.suite("else"):
        e.line(f"{slot} = {call()}")
    return slot
