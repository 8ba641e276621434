"""Functions and calls: what making one captures, what calling one does, tail calls, generators, pipes.

Spec: 02 §4.3, §7.3, §7.4, §9, §14.4, §18.
"""

from __future__ import annotations

from contextlib import suppress
from contextvars import copy_context

from harnpy.syntax import ast
from harnpy.vm.resolve import signature
from harnpy.vm.resolve.names import TASK_CALLS, calls_out, tail_target
from harnpy.vm.run.calls import MISSING, alive, construct, overflow, redeclared, run_defers
from harnpy.vm.run.methods import call_method
from harnpy.vm.run.parameter_types import check_parameter
from harnpy.vm.run.tasks import (
    await_task,
    cancel_gracefully,
    cancel_task,
    is_cancelled,
    pause_deadlines,
    resume_deadlines,
)
from harnpy.vm.values import EnumValue, Fn, Generator, Stream
from harnpy.vm.walk.activation import Activation, Return
from harnpy.vm.walk.expressions import enum_named, sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from harnpy.vm.resolve import FunctionScope, Reference, Variable
    from harnpy.vm.run.scheduler import Scheduler
    from harnpy.vm.values import Value
    from harnpy.vm.walk.activation import Walker

    Enter = Callable[[Callable[[], None]], object]
    Body = Callable[..., Value]

# Calls of functions, builtins and methods, and pipes. Spec: 02 §4.3, §7.4, §9, §14.4.


#: What the names of 05 §2 do, and how many arguments each takes at most.
_TASK_CALLS: dict[str, tuple[Callable[..., Value], int]] = {
    "await": (await_task, 1),
    "cancel": (cancel_task, 1),
    "cancel_graceful": (cancel_gracefully, 2),
    "is_cancelled": (is_cancelled, 0),
}


def call(a: Activation, node: ast.Call) -> Value:
    """``f(x, y)``: the arguments from left to right, then what ``f`` means (02 §7.4)."""
    args = sequence(a, node.args)
    a.at = node.start
    if node.name in TASK_CALLS:
        function, most = _TASK_CALLS[node.name]
        return function(a.walker.vm.tasks, *args[:most])
    return call_named(a, a.walker.resolution.refs[id(node)], args)


def call_named(a: Activation, ref: Reference, args: Sequence[Value]) -> Value:
    """Call what a name stands for."""
    vm, depth = a.walker.vm, a.depth + 1
    variable = ref.variable
    if ref.kind == "builtin":
        return vm.calls.call_builtin(vm.builtins.bound(ref.name), args)
    if ref.kind == "global":
        return vm.calls.call(vm.global_value(ref.name), depth, args)
    if ref.kind == "dynamic":
        return vm.calls.call_dynamic(a.walker.table, ref.name, depth, args)
    if ref.kind != "local" or variable is None:
        return vm.calls.call_from_frames(ref.name, depth, args)
    if variable.struct is not None:
        names = tuple(field.name for field in variable.struct.fields)
        return construct(variable.struct.name, names, args[0] if args else None)
    return vm.calls.call_named(a.read(variable), ref.name, depth, args, fallback(a, ref))


def fallback(a: Activation, ref: Reference) -> list[Value]:
    """Return what else a name means, from the inside out, if the nearest holds no callable (02 §7.4)."""
    others: list[Value] = []
    outer = ref.outer
    while outer is not None:
        if outer.kind == "builtin":
            others.append(a.walker.vm.builtins.bound(outer.name))
        elif outer.variable:
            others.append(a.read(outer.variable))
        outer = outer.outer
    return others


def method_call(a: Activation, node: ast.MethodCall) -> Value:
    """``o.m(x)``, ``o?.m(x)``, ``Enum.Variant(x)`` and ``namespace.builtin(x)``."""
    if variant := enum_named(a, node):
        return EnumValue(*variant, tuple(sequence(a, node.args)))
    if qualified := _namespaced(a, node):
        args = sequence(a, node.args)
        a.at = node.start
        builtins = a.walker.vm.builtins
        return a.walker.vm.calls.call_builtin(builtins.bound(qualified), args)
    target = a.value(node.object)
    args = sequence(a, node.args)
    if node.optional and target is None:
        return None
    a.at = node.start
    return call_method(a.walker.vm, a.walker.impls, a.depth + 1, target, node.name, args)


def _namespaced(a: Activation, node: ast.MethodCall) -> str | None:
    """``stream.map`` and its like, when no variable shadows the namespace."""
    if not isinstance(node.object, ast.Name):
        return None
    qualified = f"{node.object.name}.{node.name}"
    ref = a.walker.resolution.refs[id(node.object)]
    known = ref.kind == "global" and a.walker.vm.builtins.is_builtin(qualified)
    return qualified if known else None


def pipe(a: Activation, node: ast.Pipe) -> Value:
    """``x |> f``: a call of ``f``; with a ``_`` on the right, that expression with ``x`` in its place."""
    hole = a.walker.resolution.variables.get((id(node), "_"))
    value = a.value(node.left)
    if hole is not None:
        a.declare(hole, value)
        return a.value(node.right)
    target = a.value(node.right)
    a.at = node.start
    return a.walker.vm.calls.pipe(value, target, a.depth + 1)


# The body of a generator: it stops at each `yield` until the next item is asked for. Spec: 02 §18.
#
# The evaluator is deep in a recursion when it meets a `yield`. So the body has a greenlet, a stack of its
# own, which takes part in whichever task asks for an item.


class Coroutine:
    """An iterator over what ``body`` yields; ``body`` begins when the first item is asked for.

    Nothing in its greenlet refers to it: the garbage collector doesn't see into greenlets that wait.
    """

    def __init__(self, tasks: Scheduler, enter: Enter, body: Callable[[], Value]) -> None:
        from greenlet import greenlet

        self._tasks = tasks
        self._stack = greenlet(lambda: enter(lambda: _until_dropped(body)))
        self._stack.gr_context = copy_context()
        self._busy = False

    def __iter__(self) -> Coroutine:
        return self

    def __next__(self) -> Value:
        if self._busy:
            raise ValueError("generator already executing")
        if self._stack.dead:
            raise StopIteration
        self._busy = True
        try:
            item = self._tasks.take_part(self._stack)
        finally:
            self._busy = False
        if self._stack.dead:
            raise StopIteration
        return item


def _until_dropped(body: Callable[[], Value]) -> None:
    with suppress(GeneratorExit):
        body()


def hand_over(a: Activation, item: Value) -> None:
    """Give ``item`` to whoever asked for it, and wait to be asked again.

    The consumer is not under the deadlines of the body (05 §9).
    """
    from greenlet import GreenletExit, getcurrent

    tasks = a.walker.vm.tasks
    paused = pause_deadlines(tasks, a.deadlines[0]) if a.deadlines else None
    try:
        consumer = getcurrent().parent
        assert consumer
        consumer.switch(item)
    except GreenletExit:
        # Nobody holds the generator any more. Nothing of the program runs on the way out.
        raise GeneratorExit from None
    if paused is not None:
        resume_deadlines(tasks, paused)


#: Calls inside calls, the entry among them (02 §9.4).
_MOST_CALLS = 512


# --- making one -----------------------------------------------------------------------------------------


def declaration(a: Activation, node: ast.FnDecl) -> None:
    a.refuse_redeclared(node, node.name)
    linker = a.walker.linker
    if linker is not None and id(node) in a.walker.resolution.contested and node.name in linker.bound:
        redeclared(node.name)
    variable = a.declared_by(node, node.name)
    if variable.shell:
        a.walker.vm.calls.fill(a.read(variable), body_of(a, node, node.name, node.params), True)
    else:
        a.declare(variable, function_of(a, node, node.name, node.name))


def closure(a: Activation, node: ast.Closure | ast.FnExpr) -> Fn:
    return function_of(a, node, "<closure>", None)


def function_of(
    a: Activation, node: ast.FnDecl | ast.Closure | ast.FnExpr | ast.ToolDecl, shown: str, name: str | None
) -> Fn:
    """The function value of ``node``, called ``shown`` in backtraces."""
    names, rest = signature(node.params)
    return a.walker.vm.calls.bouncing(name, names, body_of(a, node, shown, node.params), rest)


def body_of(a: Activation, node: ast.Node, shown: str, params: Sequence[ast.Param]) -> Body:
    """A Python function ``(depth, *args)`` that runs ``node``, on values captured now (02 §7.3)."""
    function = a.walker.resolution.functions[id(node)]
    captured = {own: a.capture(outer, own) for outer, own in function.captures.items()}
    return body_with(a.walker, function, shown, params, captured)


def body_with(
    walker: Walker,
    function: FunctionScope,
    shown: str,
    params: Sequence[ast.Param],
    captured: dict[Variable, Value],
) -> Body:
    """A function that is walked when it is called, with what it captured."""

    def body(depth: int, *args: Value) -> Value:
        activation = Activation(walker, function, shown, depth)
        activation.slots.update(captured)
        return called(activation, params, args)

    return body


# --- calling one ----------------------------------------------------------------------------------------


def called(a: Activation, params: Sequence[ast.Param], args: Sequence[Value]) -> Value:
    """Bind the arguments, then run the body; of a generator, make the handle that will run it (02 §18)."""
    if a.depth > _MOST_CALLS:
        overflow()
    a.poll()
    try:
        give_arguments(a, params, args)
    except Return as jump:  # by `?` in a default
        return jump.value
    node: Any = a.function.node
    streams = isinstance(node, ast.FnDecl) and node.gen
    if not streams and not a.function.yields:
        return run(a, node.body)
    a.generates = True
    vm = a.walker.vm
    items = Coroutine(vm.tasks, vm.enter_worker, lambda: run(a, node.body))
    return vm.calls.generator(Stream if streams else Generator, items)


def give_arguments(a: Activation, params: Sequence[ast.Param], args: Sequence[Value]) -> None:
    """Bind what was passed; the rest is nil or a default, which sees those before it (02 §9.2).

    Each parameter's annotation is checked in its turn (02 §20).
    """
    for i, variable in enumerate(a.function.params):
        param = params[i] if params else None
        given = args[i] if i < len(args) else MISSING
        a.declare(variable, given)
        if given is MISSING:
            a.declare(variable, _missing(a, param))
        if param is not None:
            check_argument(a, param, variable)


def _missing(a: Activation, param: ast.Param | None) -> Value:
    if param is None:
        return None
    if param.default is not None:
        a.at = param.start
        return a.value(param.default)
    return [] if param.rest else None


def check_argument(a: Activation, param: ast.Param, variable: Variable) -> None:
    spec = a.walker.spec_of(param)
    if spec is not None:
        a.at = param.start
        check_parameter(param.name, a.read(variable), spec)


def run(a: Activation, body: ast.Block) -> Value:
    """The value of a body. A `fn` has none of its own: only `return` gives one (02 §9.1)."""
    try:
        value = with_defers(a, body.statements) if a.function.defers else inside(a, body.statements)
    except Return as jump:
        return jump.value
    return None if isinstance(a.function.node, ast.FnDecl) else value


def inside(a: Activation, statements: Sequence[ast.Node]) -> Value:
    a.open_scope(a.function.node)
    return a.statements(statements)


def with_defers(a: Activation, statements: Sequence[ast.Node]) -> Value:
    try:
        return inside(a, statements)
    finally:
        finish_defers(a)


def finish_defers(a: Activation) -> None:
    """Deferred blocks run at the end, the last one first, unless the task was aborted (02 §19.6).

    A failure on its way out keeps its place; one of theirs comes from the function as a whole.
    """
    if a.function.defers and alive():
        at, a.at = a.at, a.function.node.start
        run_defers(a.defers)
        a.at = at


# --- leaving one ----------------------------------------------------------------------------------------


def return_(a: Activation, node: ast.Return) -> None:
    if node.value is None:
        a.leave(None)
    else:
        a.leave(tail_call(a, node.value) if is_tail(a, node.value) else a.value(node.value))


def is_tail(a: Activation, node: ast.Node) -> bool:
    """Return True if ``return node`` calls after the function has ended, which takes no stack (02 §9.4)."""
    function = a.function
    if a.protected or a.generates or function.defers or function.parent is None:
        return False
    if isinstance(function.node, ast.Spawn | ast.Parallel):
        return False
    target = tail_target(a.walker.resolution, node)
    fn = target.variable.known_fn if target and target.variable else None
    return target is not None and not (fn and not calls_out(fn))


def tail_call(a: Activation, node: ast.Node) -> Value:
    """Evaluate the arguments; the call is left to the caller, who has the function's place on the stack."""
    target = tail_target(a.walker.resolution, node)
    assert target
    assert target.variable
    calls = a.walker.vm.calls
    if isinstance(node, ast.Pipe):
        value = a.value(node.left)
        a.at = node.start
        return calls.tail_pipe(a.read(target.variable), a.depth + 1, (value,))
    assert isinstance(node, ast.Call)
    args = a.values(node.args)
    a.at = node.start
    function = a.read(target.variable)
    return calls.tail_named(function, target.name, a.depth + 1, args, fallback(a, target))


def yield_(a: Activation, node: ast.Yield | ast.Emit) -> None:
    """Hand an item to the consumer; outside a generator it does nothing (02 §18)."""
    value = a.value(node.value) if node.value else None
    if a.generates:
        hand_over(a, value)
