"""`+ - *` on ints: a tree of them in one Python expression. Spec: 02 §2.

Modulo 2^64 they are a ring, so a tree of them is computed in Python ints and wrapped once. A test on 2^30
comes first because CPython compares small ints faster. When a guard fails, the tree is done again operator
by operator, which raises the right error at the right place.
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.resolve.kinds import RING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.vm.emit.function import Emitter
    from harnpy.vm.emit.operand import Operand, Text

#: The functions that do an operator for any values, or raise its error.
SLOW = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "%": "mod", "**": "power",
    "==": "eq", "!=": "ne", "<": "lt", ">": "gt", "<=": "le", ">=": "ge", "in": "in_",
}  # fmt: skip
_NUMBERS = ("int", "num")

#: A tree of more leaves than this is computed in parts: Python nests parentheses 200 deep at most.
_MOST_LEAVES = 12


def ring(e: Emitter, node: ast.Binary, into: Operand | None) -> Text:
    """A tree of `+ - *`. ``a + b * 2`` of values that may be anything:

    if type(a_1) is int and type(b_2) is int:
     t1 = a_1 + (b_2 * 2)
     if t1 > 1073741823 or t1 < -1073741823: t1 = wrap(t1)
    else: t1 = add(a_1, mul(b_2, 2))
    """
    leaves: list[ast.Node] = []
    ops: set[str] = set()
    collect(e, node, leaves, ops)
    kinds = [e.kind(leaf) for leaf in leaves]
    # Beside a float, an int product is wrapped before it becomes one.
    whole = "num" not in kinds
    if not whole:
        leaves, ops = [node.left, node.right], {node.op}
        kinds = [e.kind(leaf) for leaf in leaves]
    atoms = e.operands(leaves)
    if not all(kind in _NUMBERS for kind in kinds):
        atoms = [e.settle(text) for text in atoms]
    wanted, test = ring_of(ops, kinds)
    unknown = [a for a, k in zip(atoms, kinds, strict=True) if k not in wanted]
    hopeless = any(k not in (*wanted, "any") for k in kinds)
    slow = slow_tree(e, node, iter(atoms), whole)
    if hopeless:
        return slow
    slot = into or e.temp()
    fast = fast_tree(e, node, iter(atoms), whole)
    wrap = test == "int"
    if not unknown:
        e.line(f"{slot} = {fast}")
        if wrap:
            wrap_line(e, node, slot, "")
    else:
        guards = " and ".join(f"type({a}) is {test}" for a in dict.fromkeys(unknown))
        e.line(f"if {guards}:")
        e.line(f" {slot} = {fast}")
        if wrap:
            wrap_line(e, node, slot, " ")
        e.line(f"else: {slot} = {slow}")
    e.assigned(slot)
    return slot


def ring_of(ops: set[str], kinds: list[str]) -> tuple[tuple[str, ...], str]:
    """The kinds that the fast way is for, and the Python type that unknown leaves are tested for.

    ``s + x``, of which `s` is a string, is fast when `x` is one too: ``("str",), "str"``.
    """
    for kind in ("str", "list"):
        if kind in kinds and ops == {"+"}:
            return (kind,), kind
    return _NUMBERS, "int"


def wrap_line(e: Emitter, node: ast.Binary, slot: Operand, pad: str) -> None:
    """Reduce to 64 bits; adding or taking away a constant can only leave on one side."""
    constant = isinstance(node.right, ast.Int) and not isinstance(node.left, ast.Binary)
    if constant and node.op == "+":
        test = f"{slot} > 1073741823"
    elif constant and node.op == "-":
        test = f"{slot} < -1073741823"
    else:
        test = f"{slot} > 1073741823 or {slot} < -1073741823"
    e.line(f"{pad}if {test}: {slot} = wrap({slot})")


def collect(e: Emitter, node: ast.Node, leaves: list[ast.Node], ops: set[str]) -> None:
    """The leaves of a ring tree, in order, and its operators.

    A subtree whose errors must come first stays one leaf.
    """
    assert isinstance(node, ast.Binary)
    ops.add(node.op)
    for side in (node.left, node.right):
        if is_ring(side) and fuses(e, node, side):
            collect(e, side, leaves, ops)
        else:
            leaves.append(side)


def is_ring(node: ast.Node) -> bool:
    return isinstance(node, ast.Binary) and node.op in RING


def fuses(e: Emitter, parent: ast.Binary, side: ast.Node) -> bool:
    """Whether ``side`` may be computed together with its parent.

    Not when the tree grows too large, and a left side not when evaluating the right one could have
    effects that an error of the left must prevent.
    """
    if leaf_count(side) >= _MOST_LEAVES:
        return False
    return side is parent.right or all_simple(e, parent.right)


def leaf_count(node: ast.Node) -> int:
    count, stack = 0, [node]
    while stack and count < _MOST_LEAVES:
        top = stack.pop()
        if isinstance(top, ast.Binary) and top.op in RING:
            stack.extend((top.left, top.right))
        else:
            count += 1
    return count


def all_simple(e: Emitter, node: ast.Node) -> bool:
    """Whether ``node`` only reads constants, and variables that are surely there."""
    if isinstance(node, ast.Binary) and node.op in RING:
        return all_simple(e, node.left) and all_simple(e, node.right)
    if isinstance(node, ast.Name):
        ref = e.refs[id(node)]
        return ref.kind == "local" and ref.variable is not None and not ref.variable.in_box
    return isinstance(node, ast.Int | ast.Float | ast.Str)


def fast_tree(e: Emitter, node: ast.Binary, atoms: Iterator[Text], whole: bool) -> str:
    """The tree in Python operators; unless ``whole``, its top alone."""

    def side(child: ast.Node) -> Text:
        if whole and isinstance(child, ast.Binary) and child.op in RING and fuses(e, node, child):
            return f"({fast_tree(e, child, atoms, whole)})"
        return next(atoms)

    left = side(node.left)
    return f"{left} {node.op} {side(node.right)}"


def slow_tree(e: Emitter, node: ast.Binary, atoms: Iterator[Text], whole: bool) -> str:
    """The tree operator by operator, each with its place in the source; unless ``whole``, its top alone."""

    def side(child: ast.Node) -> Text:
        if whole and isinstance(child, ast.Binary) and child.op in RING and fuses(e, node, child):
            return slow_tree(e, child, atoms, whole)
        return next(atoms)

    left = side(node.left)
    return e.mark(node, f"{SLOW[node.op]}({left}, {side(node.right)})")
