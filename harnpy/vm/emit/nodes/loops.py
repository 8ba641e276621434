"""`for`, `while`, `break`, `continue`. Spec: 02 §11.2.

Every turn of a loop checks one flag: that is how deadlines and cancellation reach code that never waits
(05 §9, §11).
"""

from __future__ import annotations

from contextlib import nullcontext

from harnpy.syntax import ast
from harnpy.vm.emit.function import DISCARD
from harnpy.vm.emit.nodes.assign import bind
from harnpy.vm.emit.nodes.logic import deciding
from harnpy.vm.emit.operand import reading
from harnpy.vm.emit.protocol import POLL
from harnpy.vm.resolve.tree import walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.emit.function import Emitter
    from harnpy.vm.emit.operand import Operand


def while_(e: Emitter, node: ast.While) -> None:
    with e.leftovers.loop():
        while_loop(e, node)


def while_loop(e: Emitter, node: ast.While) -> None:
    signal = e.temp() if e.loops and _may_leave(node.cond) else None
    with e.apart() as lines, e.loop(signal) if signal else nullcontext():
        cond = deciding(e, node.cond)
    if signal:
        e.line(f"{signal} = 0")
    with e.suite("while True" if lines else f"while {cond}"):
        if lines:
            e.lines.extend(lines)
            e.line(f"if not {cond}: break")
        e.line(POLL)
        with e.loop():
            e.block(node.body, DISCARD)
    if signal:
        relay(e, signal)


def _may_leave(cond: ast.Node) -> bool:
    """Whether a condition may leave the loop around its own: it is not inside that yet."""
    return any(isinstance(each, ast.Break | ast.Continue) for each in walk(cond))


def for_(e: Emitter, node: ast.For) -> None:
    with e.leftovers.loop():
        for_loop(e, node)


def for_loop(e: Emitter, node: ast.For) -> None:
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


def relay(e: Emitter, signal: Operand) -> None:
    """After a loop of ours: pass on a `break` or `continue` that was meant for a Harn loop."""
    if e.loops:
        outer = e.loops[-1]
        if outer is None:
            e.line(f"if {signal} == 1: break")
            e.line(f"if {signal} == 2: continue")
        else:
            e.line(f"if {signal}:")
            e.line(f" {outer} = {signal}")
            e.line(" break")
