"""Between which bounds ints surely are: what cannot leave 64 bits is not reduced to them. Spec: 02 §2.1.

What is known of a variable comes from literals, the bounds of loops, and the conditions on the way:

    if n < 2 { return n }                          here n is at least 2,
    return fib(n - 1)                              so this is no less than 1

What is known of a variable that can be assigned lasts to its next assignment in the text, and not into a loop
that assigns it.
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.emit import ANY, LEAST, MOST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from harnpy.vm.emit import Bounds
    from harnpy.vm.emit.emitter import Emitter
    from harnpy.vm.resolve import Variable

    Assigned: TypeAlias = Sequence[tuple[ast.Assign, Variable]]

#: More items than this no list has.
_MOST_ITEMS = 1 << 60
#: Stands for the bounds of what nobody looked at, before it is reduced.
_BEYOND = 1 << 200
_OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "=="}


def variable_of(e: Emitter, node: ast.Node) -> Variable | None:
    """The variable that ``node`` is the name of, if it surely holds an int."""
    ref = e.refs.get(id(node)) if isinstance(node, ast.Name) else None
    return ref.variable if ref and ref.kind == "local" and e.kind(node) == "int" else None


def bounds(e: Emitter, node: ast.Node) -> Bounds:
    """The bounds of an int expression."""
    low, high = unreduced(e, node)
    return (low, high) if low >= LEAST and high <= MOST else ANY


def unreduced(e: Emitter, node: ast.Node, deep: int = 12) -> Bounds:
    """The bounds of an int expression, both as it is and before its `+ - *` are reduced to 64 bits.

    Of a long sum only the last terms are looked at.
    """
    if isinstance(node, ast.Int):
        return node.value, node.value
    if variable := variable_of(e, node):
        return e.known.of(variable)
    match node:
        case ast.Call(name="len") if e.refs[id(node)].kind == "builtin":
            return 0, _MOST_ITEMS
        case ast.Binary(op="/" | "%"):
            return _divided(node.op, bounds(e, node.left), bounds(e, node.right)) if deep else ANY
        case ast.Binary(op="+" | "-" | "*") if deep:
            left, right = unreduced(e, node.left, deep - 1), unreduced(e, node.right, deep - 1)
            low, high = _computed(node.op, left, right)
            return (low, high) if low >= LEAST and high <= MOST else (min(low, LEAST), max(high, MOST))
        case ast.Binary(op="+" | "-" | "*"):
            return -_BEYOND, _BEYOND
        case ast.Unary(op="-", operand=ast.Int(value=value)):
            return -value, -value
    return ANY


def _computed(op: str, left: Bounds, right: Bounds) -> Bounds:
    (a, b), (c, d) = left, right
    if op == "+":
        return a + c, b + d
    if op == "-":
        return a - d, b - c
    corners = (a * c, a * d, b * c, b * d)
    return min(corners), max(corners)


def _divided(op: str, left: Bounds, right: Bounds) -> Bounds:
    (a, b), (c, d) = left, right
    if c < 1:
        return ANY
    if op == "/":
        return -(max(-a, 0) // c), max(b, 0) // c
    return (0, min(b, d - 1)) if a >= 0 else (1 - d, d - 1)


def assume(e: Emitter, cond: ast.Node, truth: bool) -> None:
    """Learn what follows from ``cond`` being true, or false."""
    if e.unit.assigns_locals(cond):
        return
    match cond:
        case ast.Unary(op="!"):
            assume(e, cond.operand, not truth)
        case ast.Binary(op="&&" | "||" as op) if truth == (op == "&&"):
            assume(e, cond.left, truth)
            assume(e, cond.right, truth)
        case ast.Binary(op=op) if op in _OPPOSITE and e.kind(cond.left) == e.kind(cond.right) == "int":
            op = op if truth else _OPPOSITE[op]
            if op in _MIRRORED:
                _compare(e, cond.left, op, cond.right)
                _compare(e, cond.right, _MIRRORED[op], cond.left)


def _compare(e: Emitter, node: ast.Node, op: str, other: ast.Node) -> None:
    variable = variable_of(e, node)
    if variable is None:
        return
    low, high = bounds(e, other)
    if op in ("<", "<="):
        low, high = LEAST, high - (op == "<")
    elif op in (">", ">="):
        low, high = low + (op == ">"), MOST
    e.known.learn(variable, (low, high))


def assignments(e: Emitter, nodes: Sequence[ast.Node]) -> Assigned:
    """The assignments among ``nodes``, each with the variable that it assigns, or a part of whose value."""
    found: list[tuple[ast.Assign, Variable]] = []
    for node in nodes:
        if isinstance(node, ast.Assign):
            root: ast.Node = node.target
            while isinstance(root, ast.Member | ast.Index):
                root = root.object
            ref = e.refs.get(id(root)) if isinstance(root, ast.Name) else None
            if ref and ref.kind == "local" and ref.variable:
                found.append((node, ref.variable))
    return found


def forget_assigned(e: Emitter, assigned: Assigned) -> None:
    """Before a loop: what it assigns may be anything at its second turn."""
    for _, variable in assigned:
        e.known.forget(variable)
