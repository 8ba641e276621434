"""`for`, `while`, `break`, `continue`. Spec: 02 §11.2."""

from __future__ import annotations

from harnpy.vm.values.operators import iterate_for
from harnpy.vm.walk.jumps import BreakLoop, ContinueLoop
from harnpy.vm.walk.patterns import bind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from harnpy.syntax import ast
    from harnpy.vm.walk.activation import Activation

    Value = Any


def while_(a: Activation, node: ast.While) -> None:
    while a.value(node.cond):
        a.at = node.start
        a.poll()
        try:
            a.block(node.body)
        except ContinueLoop:
            continue
        except BreakLoop:
            break


def for_(a: Activation, node: ast.For) -> None:
    """Each item is bound to the pattern anew; closures of one turn keep the item of that turn (02 §7.3)."""
    for item in _items(a, node):
        a.poll()
        a.open_scope(node)
        bind(a, node.pattern, item)
        try:
            a.statements(node.body.statements)
        except ContinueLoop:
            pass
        except BreakLoop:
            break
        a.at = node.start


def _items(a: Activation, node: ast.For) -> Iterable[Value]:
    source = a.value(node.iterable)
    a.at = node.iterable.start
    items = iterate_for(source)
    a.at = node.start
    return items


def break_(a: Activation, node: ast.Break) -> None:
    raise BreakLoop


def continue_(a: Activation, node: ast.Continue) -> None:
    raise ContinueLoop
