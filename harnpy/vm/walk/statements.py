"""Statements: branches, loops, `try`, tasks and declarations.

Spec: 02 §10-§12, §15, §19; 05 §2-§10; 06 §2.
"""

from __future__ import annotations

from contextlib import suppress
from copy import deepcopy

from harnpy.syntax import ast
from harnpy.syntax.names import pack_names
from harnpy.vm.errors import FAILURES, Interrupted, Thrown
from harnpy.vm.resolve import signature
from harnpy.vm.resolve.types import json_schema, takes_whole_dict
from harnpy.vm.run import channels as selecting
from harnpy.vm.run import tasks as batches
from harnpy.vm.run import tasks as spawning
from harnpy.vm.run.backtrace import caught
from harnpy.vm.run.calls import (
    again,
    alive,
    as_result,
    bad_propagation,
    constructor,
    err,
    payload,
    retry_count,
    tool_handler,
)
from harnpy.vm.run.locks import mutex_begin, mutex_end
from harnpy.vm.run.tasks import deadline_begin, deadline_end
from harnpy.vm.values import EnumValue
from harnpy.vm.values.operators import iterate_for
from harnpy.vm.walk.activation import BreakLoop, ContinueLoop, Return
from harnpy.vm.walk.functions import body_of, function_of
from harnpy.vm.walk.patterns import bind, fits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Never

    from harnpy.vm.values import TaskHandle, Value
    from harnpy.vm.walk.activation import Activation

# `if`, `match`, `guard`, `require` and blocks. Spec: 02 §11, §12.


def block(a: Activation, node: ast.Block) -> Value:
    return a.block(node)


def if_(a: Activation, node: ast.If) -> Value:
    """The value of the branch taken, nil when there is none."""
    if a.value(node.cond):
        return a.block(node.then)
    return a.value(node.otherwise) if node.otherwise else None


def match(a: Activation, node: ast.Match) -> Value:
    """The value of the first arm whose pattern fits and whose guard holds (02 §12)."""
    value = a.value(node.value)
    for arm in node.arms:
        a.at = arm.start
        a.open_scope(arm)
        if fits(a, arm.patterns, value) and (arm.guard is None or a.value(arm.guard)):
            return a.block(arm.body)
    a.at = node.start
    raise Thrown("No match arm matched the value")


def guard(a: Activation, node: ast.Guard) -> None:
    if not a.value(node.cond):
        a.block(node.otherwise)


def require(a: Activation, node: ast.Require) -> None:
    if not a.value(node.cond):
        message = a.value(node.message) if node.message else "require condition failed"
        a.at = node.start
        raise Thrown(message)


# `for`, `while`, `break`, `continue`. Spec: 02 §11.2.


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


# `throw`, `try` in its forms, `?`, `retry`, `deadline`, `defer`. Spec: 02 §19, 05 §9, §10.


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
        a.at = node.start  # and no longer where the attempt before has failed
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
                raise failure from failure.__cause__  # and not from the error of this attempt
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


# `spawn`, `parallel`, `select` and `mutex`. Spec: 05 §2, §3, §5, §7.1.


def spawn(a: Activation, node: ast.Spawn) -> TaskHandle:
    body = body_of(a, node, "<task>", ())
    a.at = node.start
    return spawning.spawn(a.walker.vm.tasks, body)


def parallel(a: Activation, node: ast.Parallel) -> Value:
    """Every form evaluates its source, then the limit, then runs the body once an item (05 §3)."""
    source = a.value(node.source)
    limit = a.value(node.max_concurrent) if node.max_concurrent else None
    body = body_of(a, node, "<task>", ())
    takes_item = bool(a.walker.resolution.functions[id(node)].params)
    kind = "stream" if node.stream else node.kind
    a.at = node.start
    return batches.parallel(a.walker.vm.tasks, kind, source, body, takes_item, limit)


def select(a: Activation, node: ast.Select) -> Value:
    """The arm of the first channel that has an item; else the `timeout` or `default` arm (05 §5)."""
    tasks = a.walker.vm.tasks
    at = a.at
    arms = [case for case in node.cases if case.kind == "receive"]
    otherwise = next((case for case in node.cases if case.kind != "receive"), None)
    sources = a.values([arm.source for arm in arms if arm.source])
    seconds = None if otherwise is None else 0.0
    if otherwise and otherwise.source:
        seconds = selecting.select_limit(tasks, a.value(otherwise.source))
    a.at = at
    which, item = selecting.select(tasks, sources, seconds)
    if which >= 0:
        return _receive(a, arms[which], item)
    return a.block(otherwise.body) if otherwise else None


def _receive(a: Activation, arm: ast.SelectCase, item: Value) -> Value:
    a.open_scope(arm)
    if arm.name and arm.name != "_":
        a.declare(a.declared_by(arm, arm.name), item)
    return a.block(arm.body)


def mutex(a: Activation, node: ast.Mutex) -> None:
    """The block while no other task is in one; it is left free however the block ends (05 §7.1)."""
    tasks = a.walker.vm.tasks
    a.at = node.start
    token = mutex_begin(tasks)
    try:
        protected(a, node.body)
    finally:
        mutex_end(tasks, token)


# Declarations other than `fn`: structs, impls, tools, skills, eval packs, imports. Spec: 02 §15, 06 §2.


def nothing(a: Activation, node: ast.Node) -> None:
    """Declarations that only the checker, or the whole file, looks at."""


def _call_builtin(a: Activation, name: str, *args: Value) -> Value:
    return a.walker.vm.calls.call_builtin(a.walker.vm.builtins.bound(name), args)


def struct(a: Activation, node: ast.StructDecl) -> None:
    """The name is a constructor function too (02 §15.1)."""
    a.refuse_redeclared(node, node.name)
    names = tuple(field.name for field in node.fields)
    a.declare(a.declared_by(node, node.name), constructor(node.name, names))


def impl(a: Activation, node: ast.ImplDecl) -> None:
    """Methods are found by the struct's name when they are called (02 §15.3)."""
    methods = a.walker.impls.setdefault(node.name, {})
    for fn in node.methods:
        methods[fn.name] = function_of(a, fn, f"{node.name}.{fn.name}", fn.name)


def tool(a: Activation, node: ast.ToolDecl) -> None:
    """The name is a registry of one tool, made by `tool_define` (07 §4.3)."""
    a.refuse_redeclared(node, node.name)
    config: dict[str, Any] = {"parameters": _tool_parameters(a, node)}
    if node.returns is not None:
        config["returns"] = json_schema(node.returns, a.walker.resolution.aliases)
    handler = function_of(a, node, node.name, node.name)
    config["handler"] = tool_handler(handler, not takes_whole_dict(node))
    a.at = node.start
    registry = _call_builtin(a, "tool_registry")
    tools = _call_builtin(a, "tool_define", registry, node.name, node.description or "", config)
    a.declare(a.declared_by(node, node.name), tools)


def _tool_parameters(a: Activation, node: ast.ToolDecl) -> dict[str, Any]:
    """Each parameter with its schema, and its default as it is by now."""
    resolution = a.walker.resolution
    schemas = {}
    for param, default in zip(node.params, resolution.tool_defaults[id(node)], strict=True):
        schema = deepcopy(json_schema(param.type, resolution.aliases))
        if param.rest:
            schema = {"type": "array", "items": schema} if schema else {"type": "array"}
        if param.default is not None or param.rest:
            schema["required"] = False
        if default is not None:
            schema["default"] = a.value(default)
        schemas[param.name] = schema
    return schemas


def skill(a: Activation, node: ast.SkillDecl) -> None:
    """The name is a registry of one skill, made by `skill_define` (07 §13.1)."""
    a.refuse_redeclared(node, node.name)
    fields = {field.name: a.value(field.value) for field in node.fields}
    a.at = node.start
    skills = _call_builtin(a, "skill_define", _call_builtin(a, "skill_registry"), node.name, fields)
    a.declare(a.declared_by(node, node.name), skills)


def eval_pack(a: Activation, node: ast.EvalPack) -> None:
    """The name is the manifest of the fields; then the statements run, unless it is only bound (08 §8.7)."""
    a.refuse_redeclared(node, node.name)
    given = {"id": node.id or node.name}
    given |= {field.name: a.value(field.value) for field in node.fields}
    a.at = node.start
    manifest = _call_builtin(a, "eval_pack_manifest", given)
    a.declare(a.declared_by(node, node.name), manifest)
    if id(node) in a.walker.resolution.bound_only:
        return
    for owner, name in pack_names(node):
        value = manifest[name] if owner is node else given[name]
        a.declare(a.declared_by(owner, name), value)
    a.open_scope(node)
    a.statements(node.body)
    if node.summarize is not None:
        a.block(node.summarize)


def import_(a: Activation, node: ast.Import) -> None:
    """What an import binds are variables like any others; it is run before them all (06 §1)."""
    linker = a.walker.linker
    assert linker
    variables = a.walker.resolution.imported[id(node)]
    wanted = {}
    for variable in variables:
        assert variable.fn
        wanted[variable.name] = signature(variable.fn.params)
    bring = linker.bring if node in a.walker.tree.program.items else linker.bring_again
    brought = bring(node.path, node.names, wanted)
    for variable, value in zip(variables, brought, strict=True):
        a.declare(variable, value)
