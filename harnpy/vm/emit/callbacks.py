"""Callbacks written into the loop that calls them: of `map` and `filter` and of chains of iterators.

A closure that only computes with its parameter and what it captured, like ``{ x -> x * 2 }``, is written
where it would be called, for items that are ints. Any other item is given to the closure itself, which has
the errors, frames and looks at the signal that it always has; so is every item while the signal is up. Of
``xs.map(…)``:

    t1 = Fn(None, ('x',), make1())
    if xs_1.__class__ is list and not signal.pending:
     t2 = []
     for x_2 in xs_1:
      if x_2.__class__ is int and not signal.pending:
       t2.append(x_2 * 2)
      else: t2 += m_map_1_[list](vm, [x_2], t1)
    else: t2 = m_map_1_[type(xs_1)](vm, xs_1, t1)
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.emit import ANY, TEMP, Operand
from harnpy.vm.emit.bounds import bounds
from harnpy.vm.emit.expressions import condition
from harnpy.vm.emit.functions import closure
from harnpy.vm.emit.inlined import computes
from harnpy.vm.resolve.kinds import View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harnpy.vm.emit import Bounds, Text
    from harnpy.vm.emit.emitter import Emitter

    #: Writes a call of a method as it is made for any receiver.
    PlainCall = Callable[[Emitter, ast.MethodCall, Operand, list[Text]], Text]

#: The last calls of chains that are written as loops.
_SINKS = frozenset(["sum", "count"])


class Callback:
    """A closure that can be written out: its parameter, of one kind, and the expression that it computes."""

    __slots__ = ("body", "captures", "node", "param", "view", "within")

    def __init__(self, e: Emitter, node: ast.Closure, kind: str) -> None:
        scope = e.unit.resolution.functions[id(node)]
        self.node = node
        self.param = scope.params[0]
        self.captures = scope.captures
        (self.body,) = node.body.statements
        self.view = View(e.unit.kinds, {**e.view.own, self.param: kind})
        self.within = ANY
        """The bounds of what it computes, if that is an int; known when it has been written."""

    def write(self, e: Emitter, within: Bounds = ANY, as_condition: bool = False) -> Text:
        """The text of what it computes of its parameter, which is set; an int is ``within`` bounds."""
        outside, e.view = e.view, self.view
        e.known.enter()
        if e.kind_of(self.param) == "int":
            e.known.learn(self.param, within)
        text = condition(e, self.body) if as_condition else e.expr(self.body)
        if e.kind(self.body) == "int":
            self.within = bounds(e, self.body)
        e.known.leave()
        e.view = outside
        return text

    def copy_captures(self, e: Emitter) -> None:
        for outer, own in self.captures.items():
            e.declare_slot(own.python)
            e.line(f"{own.python} = {outer.python}")


def callback(e: Emitter, node: ast.Node, kind: str = "int") -> Callback | None:
    """``node`` as a closure that can be written out for a parameter of ``kind``."""
    if not isinstance(node, ast.Closure) or len(node.params) != 1 or len(node.body.statements) != 1:
        return None
    (param,) = node.params
    scope = e.unit.resolution.functions[id(node)]
    plain = not (param.type or param.default or param.rest or id(node) in e.unit.walked)
    if not plain or e.own is not None or any(own.late or own.reassigned for own in scope.captures.values()):
        return None
    found = Callback(e, node, kind)
    return found if computes(e, found.view, found.body) else None


# `map` and `filter` of a list.


def list_call(e: Emitter, node: ast.MethodCall, into: Operand | None, plain: PlainCall) -> Operand | None:
    """Write ``xs.map({ x -> … })`` and the same of `filter`, if the closure can be written out."""
    if node.name not in ("map", "filter") or len(node.args) != 1 or node.optional:
        return None
    root: ast.Node = node.object
    while isinstance(root, ast.MethodCall):
        root = root.object
    found = callback(e, node.args[0]) if e.kind(node.object) in ("list", "any") else None
    if found is None or is_iterator(e, root):
        return None
    target = e.slot(node.object)
    fn = e.fresh(closure(e, found.node, None))
    result, item = e.temp(), Operand(found.param.python, TEMP)
    table = e.unit.method_table(node.name, 1)
    e.declare_slot(item.text)
    with e.suite(f"if {target}.__class__ is list and not signal.pending"):
        e.line(f"{result} = []")
        found.copy_captures(e)
        with e.suite(f"for {item} in {target}"):
            of = e.view.items(node.object)
            is_int = "" if of == "int" else f"{item}.__class__ is int and "
            with e.suite(f"if {is_int}not signal.pending"):
                if node.name == "map":
                    e.line(f"{result}.append({found.write(e)})")
                else:
                    e.line(f"if {found.write(e, as_condition=True)}: {result}.append({item})")
            e.line(f"else: {result} += " + e.mark(node, f"{table}[list](vm, [{item}], {fn})"))
    with e.suite("else"):
        e.line(f"{result} = {plain(e, node, target, [fn])}")
    if into is None:
        return result
    e.assign(into, result)
    # Let go of it, so that the variable is its only holder.
    e.line(f"{result} = None")
    return into


# Chains of iterators: ``iter(xs).map({ … }).filter({ … }).take(3).sum()``.
#
# The stages share one item at a time, as their handles do; so the loop over the items has one stage after the
# other in it, twice: for items that are ints, and with calls of the closures for all others.


class Stage:
    """One call in a chain: its callback, written out if it could be, and the function made of it."""

    __slots__ = ("callback", "fn", "left", "node")

    def __init__(self, node: ast.MethodCall, found: Callback | None) -> None:
        self.node = node
        self.callback = found
        self.fn: Operand | None = None
        self.left: Operand | None = None
        """Of `take`, the number of items that are still to come."""


def chain_call(e: Emitter, node: ast.MethodCall, plain: PlainCall) -> Operand | None:
    """Write a chain that ends in ``node``, if all of its closures can be written out."""
    if node.name not in _SINKS or node.args or node.optional:
        return None
    stages: list[Stage] = []
    source: ast.Node = node.object
    while isinstance(source, ast.MethodCall) and source.name in ("map", "filter", "take"):
        if len(source.args) != 1 or source.optional:
            return None
        stages.insert(0, Stage(source, None))
        source = source.object
    if not any(stage.node.name != "take" for stage in stages) or not is_iterator(e, source):
        return None
    kind = "int"
    for stage in stages:
        (arg,) = stage.node.args
        if stage.node.name == "take":
            if not isinstance(arg, ast.Int) or arg.value < 1:
                return None
            continue
        stage.callback = callback(e, arg, kind)
        if stage.callback is None:
            return None
        if stage.node.name == "map":
            kind = stage.callback.view.kind(stage.callback.body)
    if kind != "int" and node.name == "sum":
        return None
    return Chain(e, node, source, stages).write(plain)


def is_iterator(e: Emitter, source: ast.Node) -> bool:
    """Return True if methods of ``source`` are those of iterators: of ranges, too."""
    if isinstance(source, ast.RangeTo):
        return True
    if isinstance(source, ast.Call):
        builtin = source.name == "iter" and e.refs[id(source)].kind == "builtin"
        return builtin and len(source.args) == 1 and not isinstance(source.args[0], ast.Spread)
    return False


class Chain:
    """A chain being written."""

    def __init__(self, e: Emitter, node: ast.MethodCall, source: ast.Node, stages: Sequence[Stage]) -> None:
        self.e = e
        self.node = node
        self.source = source
        self.stages = stages
        self.result = e.temp()
        origin = source.args[0] if isinstance(source, ast.Call) else source
        self.origin: ast.Node = origin
        self.range = ANY
        if isinstance(origin, ast.RangeTo) and e.kind(origin.first) == e.kind(origin.last) == "int":
            self.range = bounds(e, origin.first)[0], bounds(e, origin.last)[1] - origin.exclusive

    def write(self, plain: PlainCall) -> Operand:
        e = self.e
        value = e.slot(self.origin)
        for stage in self.stages:
            if stage.callback:
                stage.fn = e.fresh(closure(e, stage.callback.node, None))
            else:
                stage.left = e.temp()
        items, item = e.temp(), e.temp()
        e.line(f"{items} = whole_items({value})")
        with e.suite(f"if {items} is not None and not signal.pending"):
            e.line(f"{self.result} = 0")
            for stage in self.stages:
                if stage.callback:
                    stage.callback.copy_captures(e)
                else:
                    e.line(f"{stage.left} = {e.expr(stage.node.args[0])}")
            with e.suite(f"for {item} in {items}"):
                e.known.enter()
                with e.suite(f"if {item}.__class__ is int and not signal.pending"):
                    self.write_fast(item)
                with e.suite("else"):
                    self.write_slow(item)
                e.known.leave()
                self.stop()
            if self.node.name == "sum":
                e.line(f"{self.result} = wrap({self.result})")
        with e.suite("else"):
            self.write_plain(value, plain)
        return self.result

    def stop(self) -> None:
        """End the loop when a `take` has had its last item, before another is asked for."""
        for stage in self.stages:
            if stage.left:
                self.e.line(f"if not {stage.left}: break")

    def drop(self, taken: bool) -> None:
        """Go on with the next item."""
        if taken:
            self.stop()
        self.e.line("continue")

    def write_fast(self, item: Operand) -> None:
        e, taken = self.e, False
        at: Operand = item
        within = self.range
        for stage in self.stages:
            if stage.left:
                e.line(f"{stage.left} -= 1")
                taken = True
                continue
            found = stage.callback
            assert found
            e.declare_slot(found.param.python)
            e.line(f"{found.param.python} = {at}")
            if stage.node.name == "map":
                at = e.settle(found.write(e, within))
                within = found.within
            else:
                with e.suite(f"if not {found.write(e, within, as_condition=True)}"):
                    self.drop(taken)
        e.line(f"{self.result} = {self.result} + {at if self.node.name == 'sum' else 1}")

    def write_slow(self, item: Operand) -> None:
        e, taken = self.e, False
        for stage in self.stages:
            called = e.mark(self.node, f"called_back({stage.fn}, {item})")
            if stage.left:
                e.line(f"{stage.left} -= 1")
                taken = True
            elif stage.node.name == "map":
                e.line(f"{item} = {called}")
            else:
                with e.suite(f"if not {called}"):
                    self.drop(taken)
        if self.node.name == "sum":
            e.line(f"{self.result} = " + e.mark(self.node, f"plus(wrap({self.result}), {item})"))
        else:
            e.line(f"{self.result} = {self.result} + 1")

    def write_plain(self, value: Operand, plain: PlainCall) -> None:
        """The calls as they are made of any value."""
        e, at = self.e, value
        if isinstance(self.source, ast.Call):
            at = e.fresh(e.mark(self.source, f"{e.unit.builtin_function('iter')}(vm, {value})"))
        for stage in self.stages:
            args: list[Text] = [stage.fn or e.expr(stage.node.args[0])]
            at = e.fresh(plain(e, stage.node, at, args))
        e.line(f"{self.result} = {plain(e, self.node, at, [])}")
