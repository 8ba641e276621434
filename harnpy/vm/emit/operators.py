"""Arithmetic, comparison, logic. Spec: 02 §2–4.

`+ - *` modulo 2^64 is a ring, so a tree of them is computed in Python ints and wrapped once; a test on
2^30 comes first because CPython compares small ints faster. When a guard fails, the tree
is done again operator by operator, which raises the right error at the right place.
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.resolve.kinds import RING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.vm.emit.function import Emitter
    from harnpy.vm.emit.writer import Line

    #: A value's text, and the lines that must come before it.
    Choice = tuple[str, list[Line]]

_NUMBERS = ("int", "num")
SLOW = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "%": "mod", "**": "power",
    "==": "eq", "!=": "ne", "<": "lt", ">": "gt", "<=": "le", ">=": "ge", "in": "in_",
}  # fmt: skip

#: A tree of more leaves than this is computed in parts: Python nests parentheses 200 deep at most.
_MOST_LEAVES = 12


def binary(e: Emitter, node: ast.Binary, into: str | None) -> str:
    op = node.op
    if op in RING:
        return ring(e, node, into)
    if op in ("&&", "||"):
        return logic_value(e, node)
    if op == "??":
        return coalesce(e, node, into)
    if op == "not in":
        left, right = e.operands([node.left, node.right])
        return f"(not in_({left}, {right}))"
    if op in ("==", "!="):
        return equality(e, node)
    if op in ("<", ">", "<=", ">="):
        return comparison(e, node)
    if op in ("/", "%"):
        return division(e, node)
    left, right = e.operands([node.left, node.right])
    return e.mark(node, f"{SLOW[op]}({left}, {right})")


# --- the ring ---------------------------------------------------------------------------------------


def ring(e: Emitter, node: ast.Binary, into: str | None) -> str:
    leaves: list[ast.Node] = []
    ops: set[str] = set()
    collect(node, leaves, ops)
    kinds = [e.kind(leaf) for leaf in leaves]
    texts = e.operands(leaves)
    atoms = texts if all(k in _NUMBERS for k in kinds) else [e.settle(text) for text in texts]
    wanted, test = ring_of(ops, kinds)
    unknown = [a for a, k in zip(atoms, kinds, strict=True) if k not in wanted and not a.isdigit()]
    hopeless = any(k not in (*wanted, "any") for k in kinds)
    slow = slow_tree(e, node, iter(atoms))
    if hopeless:
        return slow
    slot = into or e.temp()
    fast = fast_tree(node, iter(atoms))
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
    """The kinds that the fast way is for, and the Python type that unknown leaves are tested for."""
    for kind in ("str", "list"):
        if kind in kinds and ops == {"+"}:
            return (kind,), kind
    return _NUMBERS, "int"


def wrap_line(e: Emitter, node: ast.Binary, slot: str, pad: str) -> None:
    """Reduce to 64 bits; adding or taking away a constant can only leave on one side."""
    constant = isinstance(node.right, ast.Int) and not isinstance(node.left, ast.Binary)
    if constant and node.op == "+":
        test = f"{slot} > 1073741823"
    elif constant and node.op == "-":
        test = f"{slot} < -1073741823"
    else:
        test = f"{slot} > 1073741823 or {slot} < -1073741823"
    e.line(f"{pad}if {test}: {slot} = wrap({slot})")


def collect(node: ast.Node, leaves: list[ast.Node], ops: set[str]) -> None:
    """The leaves of a ring tree, in order, and its operators.

    A subtree whose errors must come first stays one leaf.
    """
    assert isinstance(node, ast.Binary)
    ops.add(node.op)
    for side in (node.left, node.right):
        if is_ring(side) and fuses(node, side):
            collect(side, leaves, ops)
        else:
            leaves.append(side)


def is_ring(node: ast.Node) -> bool:
    return isinstance(node, ast.Binary) and node.op in RING


def fuses(parent: ast.Binary, side: ast.Node) -> bool:
    """Whether ``side`` may be computed together with its parent.

    Not when the tree grows too large, and a left side not when evaluating the right one could have
    effects that an error of the left must prevent.
    """
    if leaf_count(side) >= _MOST_LEAVES:
        return False
    return side is parent.right or all_simple(parent.right)


def leaf_count(node: ast.Node) -> int:
    count, stack = 0, [node]
    while stack and count < _MOST_LEAVES:
        top = stack.pop()
        if isinstance(top, ast.Binary) and top.op in RING:
            stack.extend((top.left, top.right))
        else:
            count += 1
    return count


def all_simple(node: ast.Node) -> bool:
    """Whether ``node`` only reads variables and constants."""
    if isinstance(node, ast.Binary) and node.op in RING:
        return all_simple(node.left) and all_simple(node.right)
    return isinstance(node, ast.Name | ast.Int | ast.Float | ast.Str)


def fast_tree(node: ast.Binary, atoms: Iterator[str]) -> str:
    """The tree in Python operators."""

    def side(child: ast.Node) -> str:
        if isinstance(child, ast.Binary) and child.op in RING and fuses(node, child):
            return f"({fast_tree(child, atoms)})"
        return next(atoms)

    left = side(node.left)
    return f"{left} {node.op} {side(node.right)}"


def slow_tree(e: Emitter, node: ast.Binary, atoms: Iterator[str]) -> str:
    """The tree operator by operator, each with its place in the source."""

    def side(child: ast.Node) -> str:
        if isinstance(child, ast.Binary) and child.op in RING and fuses(node, child):
            return slow_tree(e, child, atoms)
        return next(atoms)

    left = side(node.left)
    return e.mark(node, f"{SLOW[node.op]}({left}, {side(node.right)})")


# --- the other operators ----------------------------------------------------------------------------


def division(e: Emitter, node: ast.Binary) -> str:
    left, right = e.atoms([node.left, node.right])
    slow = e.mark(node, f"{SLOW[node.op]}({left}, {right})")
    if isinstance(node.right, ast.Int) and node.right.value > 0 and e.kind(node.left) in ("int", "any"):
        guard = f"type({left}) is int and " if e.kind(node.left) == "any" else ""
        fast = f"{left} // {right}" if node.op == "/" else f"{left} % {right}"
        return f"({fast} if {guard}{left} >= 0 else {slow})"
    return slow


def comparison(e: Emitter, node: ast.Binary) -> str:
    kinds = [e.kind(node.left), e.kind(node.right)]
    if kinds == ["int", "int"] or kinds == ["str", "str"]:
        left, right = e.operands([node.left, node.right])
        return f"({left} {node.op} {right})"
    left, right = e.atoms([node.left, node.right])
    guards = [f"type({a}) is int" for a, k in zip((left, right), kinds, strict=True) if k != "int"]
    slow = f"{SLOW[node.op]}({left}, {right})"
    return f"({left} {node.op} {right} if {' and '.join(guards)} else {slow})"


def equality(e: Emitter, node: ast.Binary) -> str:
    op = node.op
    for constant, other in ((node.right, node.left), (node.left, node.right)):
        if isinstance(constant, ast.Nil):
            return f"({e.slot(other)} {'is' if op == '==' else 'is not'} None)"
        if isinstance(constant, ast.Str):
            left, right = e.operands([node.left, node.right])
            return f"({left} {op} {right})"
    kinds = [e.kind(node.left), e.kind(node.right)]
    if kinds == ["int", "int"] or kinds == ["str", "str"]:
        left, right = e.operands([node.left, node.right])
        return f"({left} {op} {right})"
    left, right = e.atoms([node.left, node.right])
    slow = f"{SLOW[op]}({left}, {right})"
    if "int" in kinds:
        unsure = left if kinds[1] == "int" else right
        return f"({left} {op} {right} if type({unsure}) is int else {slow})"
    return f"({left} {op} {right} if type({left}) is int and type({right}) is int else {slow})"


def unary(e: Emitter, node: ast.Unary, into: str | None) -> str:
    if node.op == "!":
        return f"(not {e.cond(node.operand)})"
    if isinstance(node.operand, ast.Int):
        return f"-{node.operand.value}" if node.operand.value else "0"
    return e.mark(node, f"neg({e.expr(node.operand)})")


def range_to(e: Emitter, node: ast.RangeTo, into: str | None) -> str:
    first, last = e.operands([node.first, node.last])
    return f"range_to({first}, {last}, {node.exclusive})"


# --- logic ------------------------------------------------------------------------------------------


def condition(e: Emitter, node: ast.Node) -> str:
    """Text whose Python truth is the Harn truth of ``node``."""
    if isinstance(node, ast.Binary) and node.op in ("&&", "||"):
        return e.short(logic(e, node))
    if isinstance(node, ast.Unary) and node.op == "!":
        return e.short(f"(not {condition(e, node.operand)})")
    return e.expr(node)


def logic_value(e: Emitter, node: ast.Binary) -> str:
    """`&&` and `||` give a bool (02 §4.2)."""
    text = logic(e, node)
    return text if decides(e, node) else f"(True if {text} else False)"


def decides(e: Emitter, node: ast.Node) -> bool:
    """Whether `condition` answers a bool for ``node``, and not just something truthy or falsy."""
    if isinstance(node, ast.Binary) and node.op in ("&&", "||"):
        return decides(e, node.left) and decides(e, node.right)
    return e.kind(node) == "bool"


def logic(e: Emitter, node: ast.Binary) -> str:
    word = "and" if node.op == "&&" else "or"
    left = condition(e, node.left)
    right, lines = e.apart(lambda: condition(e, node.right))
    if not lines:
        return f"({left} {word} {right})"
    slot = e.temp()
    e.line(f"{slot} = {left}")
    e.line(f"if {'' if word == 'and' else 'not '}{slot}:")
    e.lines.extend(lines)
    e.line(f" {slot} = {right}")
    return slot


def coalesce(e: Emitter, node: ast.Binary, into: str | None) -> str:
    left = e.slot(node.left)
    right, lines = e.apart(lambda: e.expr(node.right))
    if not lines:
        return f"({left} if {left} is not None else {right})"
    return branch(e, f"{left} is None", (right, lines), (left, []))


def ternary(e: Emitter, node: ast.Ternary, into: str | None) -> str:
    cond = e.cond(node.cond)
    then, then_lines = e.apart(lambda: e.expr(node.then))
    otherwise, other_lines = e.apart(lambda: e.expr(node.otherwise))
    if not then_lines and not other_lines:
        return f"({then} if {cond} else {otherwise})"
    return branch(e, cond, (then, then_lines), (otherwise, other_lines))


def branch(e: Emitter, cond: str, then: Choice, otherwise: Choice) -> str:
    """A choice between two values that each need lines of their own."""
    slot = e.temp()
    e.line(f"if {cond}:")
    e.lines.extend(then[1])
    e.line(f" {slot} = {then[0]}")
    e.line("else:")
    e.lines.extend(otherwise[1])
    e.line(f" {slot} = {otherwise[0]}")
    return slot
