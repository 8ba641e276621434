"""`for`, `while`, `break`, `continue`. Spec: 02 §11.2.

Every turn of a loop checks one flag: that is how deadlines and cancellation reach code that never waits
(05 §9, §11).
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.emit.function import DISCARD
from harnpy.vm.emit.nodes.assign import bind
from harnpy.vm.emit.nodes.logic import condition
from harnpy.vm.emit.operand import reading
from harnpy.vm.emit.protocol import POLL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.emit.function import Emitter


def while_(e: Emitter, node: ast.While) -> None:
    with e.apart() as lines:
        cond = condition(e, node.cond)
    with e.suite("while True" if lines else f"while {cond}"):
        if lines:
            e.lines.extend(lines)
            e.line(f"if not {cond}: break")
        e.line(POLL)
        with e.loop():
            e.block(node.body, DISCARD)


def for_(e: Emitter, node: ast.For) -> None:
    items = iterable(e, node.iterable)
    pattern = node.pattern
    simple = None
    if isinstance(pattern, ast.NamePattern) and pattern.name != "_":
        simple = e.declared_by(pattern, pattern.name)
    slot = reading(simple) if simple else e.temp()
    if simple:
        e.declare_slot(slot.text)
        e.assigned(slot)
    target = e.temp() if simple and simple.in_table else slot
    with e.suite(f"for {target} in {items}"):
        if target is not slot:
            e.line(f"{slot} = {target}")
        e.line(POLL)
        e.open_scope(node)
        if simple:
            e.show_in_box(simple)
        else:
            bind(e, pattern, slot)
        with e.loop():
            e.statements(node.body.statements, DISCARD)


def iterable(e: Emitter, node: ast.Node) -> str:
    """Text for a Python iterable over what ``node`` gives; ranges of ints are Python's own."""
    if isinstance(node, ast.RangeTo):
        first, last = e.operands([node.first, node.last])
        if e.kind(node.first) == "int" and e.kind(node.last) == "int":
            return f"range({first}, {last}{'' if node.exclusive else ' + 1'})"
        return f"iterate_for(range_to({first}, {last}, {node.exclusive}))"
    return e.mark(node, f"iterate_for({e.expr(node)})")


def break_(e: Emitter, node: ast.Break) -> None:
    leave(e, 1, "break")


def continue_(e: Emitter, node: ast.Continue) -> None:
    leave(e, 2, "continue")


def leave(e: Emitter, code: int, word: str) -> None:
    """Inside a loop of ours (`retry`): note what was meant and leave that loop first."""
    signal = e.loops[-1]
    if signal is None:
        e.line(word)
    else:
        e.line(f"{signal} = {code}")
        e.line("break")
