"""Choices between values: `&&`, `||`, `!`, `??` and `?:`, and conditions. Spec: 02 §4."""

from __future__ import annotations

from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.emit.function import Emitter
    from harnpy.vm.emit.operand import Operand, Text
    from harnpy.vm.emit.writer import Line

    #: A value's text, and the lines that must come before it.
    Choice = tuple[Text, list[Line]]


def condition(e: Emitter, node: ast.Node) -> Text:
    """Text whose Python truth is the Harn truth of ``node``."""
    if isinstance(node, ast.Binary) and node.op in ("&&", "||"):
        return e.short(logic(e, node))
    if isinstance(node, ast.Unary) and node.op == "!":
        return e.short(f"(not {condition(e, node.operand)})")
    return e.expr(node)


def deciding(e: Emitter, node: ast.Node) -> Text:
    """The condition of a statement, which is done with it before its blocks begin."""
    with e.leftovers.within():
        return condition(e, node)


def logic_value(e: Emitter, node: ast.Binary) -> Text:
    """`&&` and `||` give a bool (02 §4.2)."""
    text = logic(e, node)
    return text if decides(e, node) else f"(True if {text} else False)"


def decides(e: Emitter, node: ast.Node) -> bool:
    """Whether `condition` gives a bool for ``node``, and not just something truthy or falsy."""
    if isinstance(node, ast.Binary) and node.op in ("&&", "||"):
        return decides(e, node.left) and decides(e, node.right)
    return e.kind(node) == "bool"


def logic(e: Emitter, node: ast.Binary) -> Text:
    """``a && b`` as a condition: ``(a_1 and b_2)``, or, when the right side needs lines before it:

    t1 = a_1
    if t1:
     <lines>
     t1 = b_2
    """
    word = "and" if node.op == "&&" else "or"
    left = condition(e, node.left)
    with e.apart() as lines:
        right = condition(e, node.right)
    if not lines:
        return f"({left} {word} {right})"
    slot = e.temp()
    e.line(f"{slot} = {left}")
    e.line(f"if {'' if word == 'and' else 'not '}{slot}:")
    e.lines.extend(lines)
    e.line(f" {slot} = {right}")
    return slot


def coalesce(e: Emitter, node: ast.Binary, into: Operand | None) -> Text:
    """``a ?? b``: ``(a_1 if a_1 is not None else b_2)``, or a `branch`."""
    left = e.slot(node.left)
    with e.apart() as lines:
        right = e.expr(node.right)
    if not lines:
        return f"({left} if {left} is not None else {right})"
    return branch(e, f"{left} is None", (right, lines), (left, []))


def ternary(e: Emitter, node: ast.Ternary, into: Operand | None) -> Text:
    cond = condition(e, node.cond)
    with e.apart() as then_lines:
        then = e.expr(node.then)
    with e.apart() as other_lines:
        otherwise = e.expr(node.otherwise)
    if not then_lines and not other_lines:
        return f"({then} if {cond} else {otherwise})"
    return branch(e, cond, (then, then_lines), (otherwise, other_lines))


def branch(e: Emitter, cond: Text, then: Choice, otherwise: Choice) -> Operand:
    """A choice between two values that each need lines of their own. ``c ? a : b``:

    if c_1:
     <lines>
     t1 = a_2
    else:
     <lines>
     t1 = b_3
    """
    slot = e.temp()
    e.line(f"if {cond}:")
    e.lines.extend(then[1])
    e.line(f" {slot} = {then[0]}")
    e.line("else:")
    e.lines.extend(otherwise[1])
    e.line(f" {slot} = {otherwise[0]}")
    return slot
