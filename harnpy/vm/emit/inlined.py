"""Small functions and methods written in place of their calls.

``fn add(a, b) { return a + b }`` only computes with its parameters: of ints it cannot fail, so nobody sees
in whose frame it runs. Of ``s = add(s, i)`` in a loop:

    t1 = add_3.inlinable and e < 513
    while True:
     if not i_2 < 9: break
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
from harnpy.vm.resolve.kinds import WRAPPING, Record
from harnpy.vm.resolve.names import tail_target
from harnpy.vm.resolve.types import annotation_spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harnpy.vm.emit import Operand, Text
    from harnpy.vm.emit.emitter import Emitter
    from harnpy.vm.resolve.kinds import Version, View

    Arguments = Sequence[tuple[ast.Node, Text]]

_COMPARISONS = frozenset(["==", "!=", "<", ">", "<=", ">="])
#: What is computed with kinds other than these may fail.
_PLAIN = ("int", "str", "bool")
#: An expression of more parts than this is not written out.
_MOST_PARTS = 40


def computes(e: Emitter, view: View, node: ast.Node) -> bool:
    """Return True if ``node`` only computes with plain values of known kinds, so that it can't fail."""
    waiting, parts = [node], 0
    while waiting:
        part, parts = waiting.pop(), parts + 1
        if parts > _MOST_PARTS:
            return False
        match part:
            case ast.Int() | ast.Str() | ast.Bool():
                pass
            case ast.Name():
                ref = e.refs.get(id(part))
                variable = ref.variable if ref and ref.kind == "local" else None
                if variable is None or variable.in_table or variable.in_box:
                    return False
                if view.kind(part) not in _PLAIN:
                    return False
            case ast.Member() if view.kind(part) in _PLAIN and is_kept(e, view, part):
                pass
            case ast.Unary(op="!"):
                waiting.append(part.operand)
            case ast.Unary(op="-", operand=ast.Int()):
                pass
            case ast.Binary(op="&&" | "||"):
                waiting += [part.left, part.right]
            case ast.Binary(op="/" | "%", right=ast.Int(value=value)) if value > 0:
                if view.kind(part.left) != "int":
                    return False
                waiting.append(part.left)
            case ast.Binary(op=op):
                kinds = {view.kind(part.left), view.kind(part.right)}
                of_ints = kinds == {"int"} and op in WRAPPING | _COMPARISONS
                if not of_ints and not (kinds == {"str"} and op in _COMPARISONS):
                    return False
                waiting += [part.left, part.right]
            case _:
                return False
    return True


def is_kept(e: Emitter, view: View, node: ast.Member) -> bool:
    """Return True if ``node`` reads a field that is surely there, of a variable's value."""
    of: ast.Node = node
    while isinstance(of, ast.Member):
        shape = view.shape(of.object)
        if of.optional or not isinstance(shape, Record) or of.name not in shape.fields:
            return False
        of = of.object
    ref = e.refs.get(id(of)) if isinstance(of, ast.Name) else None
    variable = ref.variable if ref and ref.kind == "local" else None
    return variable is not None and not (variable.in_table or variable.in_box)


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


def may_write_out(e: Emitter, fn: ast.FnDecl, version: Version) -> bool:
    """Return True if a tail call of ``fn`` can be written out: its arguments need no checks either."""
    return needs_no_checks(e, fn, version) and only_decides(e, version.view, fn.body, fn)


def only_decides(e: Emitter, view: View, block: ast.Block, fn: ast.FnDecl) -> bool:
    """Return True if ``block`` of ``fn`` only computes with parameters, then returns or calls the function
    being written again: nothing in it can fail, so nobody sees in whose frame it runs."""
    if not reads_only_parameters(e, fn):
        return False
    for node in block.statements:
        if isinstance(node, ast.If):
            blocks = [node.then, *([node.otherwise] if node.otherwise else [])]
            inside = [b for b in blocks if isinstance(b, ast.Block) and only_decides(e, view, b, fn)]
            if len(inside) < len(blocks) or not computes(e, view, node.cond):
                return False
        elif not isinstance(node, ast.Return) or not returns_plainly(e, view, node.value):
            return False
    return True


def returns_plainly(e: Emitter, view: View, value: ast.Node | None) -> bool:
    """Return True for a value that is computed, and a call of the function being written with such values."""
    if value is None or isinstance(value, ast.Nil) or computes(e, view, value):
        return True
    if not isinstance(value, ast.Call) or not all(computes(e, view, arg) for arg in value.args):
        return False
    own, ref = e.function.node, tail_target(e.unit.resolution, value)
    if ref is None or not e.is_self(ref) or not isinstance(own, ast.FnDecl):
        return False
    return e.version is view.version(own, value.args)


def result_of(e: Emitter, fn: ast.FnDecl, version: Version) -> ast.Node | None:
    """The expression that ``fn`` returns, if it does nothing but compute that."""
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
