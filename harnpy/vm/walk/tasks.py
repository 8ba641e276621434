"""`spawn`, `parallel`, `select` and `mutex`. Spec: 05 §2, §3, §5, §7.1."""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.run.tasks import parallel as batches
from harnpy.vm.run.tasks import select as selecting
from harnpy.vm.run.tasks import spawn as spawning
from harnpy.vm.run.tasks.permits import mutex_begin, mutex_end
from harnpy.vm.walk.failures import protected
from harnpy.vm.walk.functions import body_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.vm.values.objects import TaskHandle
    from harnpy.vm.walk.activation import Activation

    Value = Any


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
