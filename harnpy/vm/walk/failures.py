"""`throw`, `try` in its forms, `?`, `retry`, `deadline`, `defer`. Spec: 02 §19, 05 §9, §10."""

from __future__ import annotations

from contextlib import suppress

from harnpy.syntax import ast
from harnpy.vm.errors import FAILURES, Interrupted, Thrown
from harnpy.vm.run.backtrace import caught
from harnpy.vm.run.calls import again, alive, as_result, bad_propagation, err, payload, retry_count
from harnpy.vm.run.tasks.deadline import deadline_begin, deadline_end
from harnpy.vm.values.objects import EnumValue
from harnpy.vm.walk.jumps import Return

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Never

    from harnpy.vm.walk.activation import Activation

    Value = Any


def throw(a: Activation, node: ast.Throw) -> Never:
    value = a.value(node.value)
    a.at = node.start
    raise Thrown(value)


def try_(a: Activation, node: ast.Try) -> Value:
    """`try { } catch { } finally { }`; without both it gives a `Result` (02 §19.4)."""
    if node.catch is None and node.finally_ is None:
        return result(a, node.body)
    if node.finally_ is None:
        return guarded(a, node)
    try:
        return guarded(a, node) if node.catch else protected(a, node.body)
    finally:
        finish(a, node.finally_)


def protected(a: Activation, body: ast.Block) -> Value:
    """A block whose calls are no tail calls: something is to be done after them."""
    a.protected += 1
    try:
        return a.block(body)
    finally:
        a.protected -= 1


def catching(a: Activation, body: ast.Block, takes: Callable[[Value], bool]) -> Value:
    """A block whose failures are caught when ``takes`` is true of the value."""
    a.catches.append(takes)
    try:
        return protected(a, body)
    finally:
        a.catches.pop()


def guarded(a: Activation, node: ast.Try) -> Value:
    """``try { } catch (e: T) { }``; a bare type name selects enum values of that name (02 §19.4)."""
    catch = node.catch
    assert catch
    try:
        return catching(a, node.body, lambda value: _selects(catch, value))
    except FAILURES as error:
        value = caught(error)
        if not _selects(catch, value):
            raise
        a.open_scope(catch)
        if catch.name and catch.name != "_":
            a.declare(a.declared_by(catch, catch.name), value)
        return protected(a, catch.body) if node.finally_ else a.block(catch.body)


def _selects(catch: ast.Catch, value: Value) -> bool:
    if not isinstance(catch.type, ast.TypeName) or catch.type.args:
        return True
    return type(value) is EnumValue and value.enum == catch.type.name


def _anything(value: Value) -> bool:
    return True


def _nothing(value: Value) -> bool:
    return False


def finish(a: Activation, block: ast.Block) -> None:
    """Run a `finally` block, unless the task was aborted. A failure on its way out keeps its place."""
    if alive():
        at = a.at
        a.block(block)
        a.at = at


def result(a: Activation, body: ast.Block) -> EnumValue:
    """``try { }``: `Ok` of the block's value, or `Err` of what it failed with."""
    try:
        return as_result(catching(a, body, _anything))
    except FAILURES as error:
        return err(caught(error))


def try_star(a: Activation, node: ast.TryStar) -> Value:
    """An error passes on unchanged, which is what errors do anyway (02 §19.4)."""
    return a.value(node.value)


def propagate(a: Activation, node: ast.Propagate) -> Value:
    """``value?``: the payload of an `Ok`; an `Err` leaves the function at once (02 §19.5)."""
    value = a.value(node.value)
    a.at = node.start
    if type(value) is not EnumValue or value.enum != "Result":
        bad_propagation(value)
    if value.variant != "Ok":
        a.leave(value)
    return payload(value)


def retry(a: Activation, node: ast.Retry) -> None:
    """Up to n attempts; the last error is thrown again (05 §10)."""
    last = retry_count(a.value(node.count))
    for attempt in range(1, last + 1):
        a.poll()
        a.protected += 1
        a.catches.append(_anything if attempt < last else _nothing)
        try:
            a.statements(node.body.statements)
            return
        except FAILURES as error:
            if attempt == last:
                failure = again(error)
                a.at = a.at if failure is error else node.start
                raise failure from None
        finally:
            a.catches.pop()
            a.protected -= 1


def deadline(a: Activation, node: ast.Deadline) -> Value:
    """The block under a clock; its own deadline is a throw like any other outside it (05 §9)."""
    tasks = a.walker.vm.tasks
    token = deadline_begin(tasks, a.value(node.duration))
    a.deadlines.append(token)
    try:
        return protected(a, node.body)
    except Interrupted as error:
        raise error.outside(token) from None
    finally:
        a.deadlines.pop()
        deadline_end(tasks, token)


def defer(a: Activation, node: ast.Defer) -> None:
    """The block runs when the function ends, and sees the variables as they are then (02 §19.6)."""
    inner = a.within("<closure>")
    a.defers.append(lambda: _deferred(inner, node.body))


def _deferred(a: Activation, body: ast.Block) -> None:
    with suppress(Return):
        a.block(body)
