"""A stopped program: its tasks and calls, their variables and values, code evaluated in a call.

Spec: 09 §15.3, §15.4.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import islice
from types import FrameType
from typing import Any

from greenlet import getcurrent, greenlet

from harnpy.cli import console
from harnpy.cli.console import one_line
from harnpy.cli.debugger.breakpoints import path_of
from harnpy.faults import TooLarge
from harnpy.syntax import ast
from harnpy.syntax.diagnostic import SourceFault
from harnpy.vm.errors import FAILURES, Leaving, VmError
from harnpy.vm.resolve import Declared, Resolution, Variable
from harnpy.vm.run.backtrace import finish, running
from harnpy.vm.run.calls import UNSET
from harnpy.vm.run.scheduler import Scheduler
from harnpy.vm.run.tasks import Task
from harnpy.vm.values import EnumValue, Pair, Set, display, type_name
from harnpy.vm.walk.activation import Activation

Value = Any

# The tasks of a stopped program, and the calls that each of them is in. Spec: 09 §15.3.
#
# Tasks are greenlets: the one that stopped has its Python frames on this thread's stack, the others where
# they wait. The body of a generator has a greenlet too, above that of the task that asked for an item.


class Call:
    """One Harn function that runs, and where it is. Lines and columns count from 1."""

    def __init__(self, activation: Activation) -> None:
        self.activation = activation
        self.name = activation.name
        self.unit = activation.unit
        self.path = path_of(self.unit)
        self.line, self.column = self.unit.lines.locate(activation.at)


def tasks(scheduler: Scheduler) -> list[Task]:
    """The root and every task that has not ended, in the order they were started in."""
    family = [*scheduler.root.family(), *scheduler.detached.family()]
    return [task for task in family if task is not scheduler.detached and not task.done]


def calls(scheduler: Scheduler, task: Task) -> list[Call]:
    """The calls that a task is in, innermost first; none before it has started."""
    return [Call(activation) for activation in activations(scheduler, task)]


def activations(scheduler: Scheduler, task: Task) -> list[Activation]:
    """The runs of functions that a task is in, innermost first."""
    found: list[Activation] = []
    for frame in _frames(*_top(scheduler, task)):
        function = running(frame)
        if isinstance(function, Activation) and (not found or function is not found[-1]):
            found.append(function)
    return found


def open_statements(scheduler: Scheduler) -> Iterator[tuple[Activation, ast.Node]]:
    """The statements that the current task has begun and not done, innermost first, while it is observed."""
    for frame in _frames(*_top(scheduler, scheduler.current)):
        if frame.f_code is Activation.observed.__code__:
            yield frame.f_locals["self"], frame.f_locals["statement"]


def _top(scheduler: Scheduler, task: Task) -> tuple[FrameType | None, greenlet | None]:
    """The innermost frame of a task, and the greenlet that it is in."""
    if task is scheduler.current:
        return sys._getframe(), getcurrent()
    stack: greenlet | None = scheduler.hub if task is scheduler.root else task.greenlet
    return (stack.gr_frame if stack is not None else None), stack


def _frames(frame: FrameType | None, stack: greenlet | None) -> Iterator[FrameType]:
    """The frames of a task from the innermost outward, through the greenlets that it is in."""
    while stack is not None:
        while frame is not None:
            if frame.f_code is Scheduler.run_tasks.__code__:
                return
            yield frame
            frame = frame.f_back
        stack = stack.parent
        frame = None if stack is None else stack.gr_frame


# What a call sees: its variables, what it has captured, what its file has. Spec: 09 §15.4.
#
# A run of a function keeps the variables of all its blocks, also of those that it has left. Which of them are
# meant by their names depends on the place, so they are looked for in the tree.


class Binding:
    """A variable of a run of a function."""

    def __init__(self, activation: Activation, variable: Variable) -> None:
        self.activation = activation
        self.variable = variable

    @property
    def value(self) -> Value:
        return self.activation.read(self.variable)

    def assign(self, value: Value) -> None:
        self.activation.assign(self.variable, value)

    @property
    def has_value(self) -> bool:
        a, variable = self.activation, self.variable
        if variable.in_table:
            return variable.name in a.walker.table
        return variable in a.slots and a.read(variable) is not UNSET


Names = dict[str, Binding]


def captured(a: Activation) -> Names:
    """Return the variables that a function has captured when it was made."""
    return _bound(a, a.function.captures.values())


def local(a: Activation) -> Names:
    """The parameters and variables of a function that are visible where it is."""
    return _bound(a, [*a.function.params, *_Place(a.walker.resolution, a.at).below(a.function.node)])


def of_file(top: Activation) -> Names:
    """Return what a file's own statements have bound, for its functions; ``top`` is their run."""
    place = _Place(top.walker.resolution, top.at)
    return _bound(
        top, [variable for node in top.walker.tree.program.items for variable in place.declares(node)]
    )


def _bound(a: Activation, variables: Any) -> Names:
    bindings = {variable.name: Binding(a, variable) for variable in variables}
    return {name: binding for name, binding in bindings.items() if name != "_" and binding.has_value}


class _Place:
    """A place in a text, and the variables that are declared before it and visible at it."""

    def __init__(self, resolution: Resolution, at: int) -> None:
        self._resolution = resolution
        self._at = at
        self._declared: dict[int, list[Variable]] = {}
        for (node, _), variable in resolution.variables.items():
            self._declared.setdefault(node, []).append(variable)

    def below(self, node: ast.Node) -> Iterator[Variable]:
        """The variables of what is inside a node, those of inner blocks after those of outer ones."""
        for child in node.children():
            yield from self._at_top(child) if isinstance(node, ast.Program) else self._inside(child)

    def _at_top(self, node: ast.Node) -> Iterator[Variable]:
        """The order of a file's items is not that of the text: what has a value has been declared."""
        if self._surrounds(node):
            yield from self._inside(node)
        elif isinstance(node, ast.Pipeline):
            # One that another extends: its variables are visible in the other.
            for statement in node.body.statements:
                yield from self.declares(statement)
        else:
            yield from self.declares(node)

    def _inside(self, node: ast.Node) -> Iterator[Variable]:
        resolution = self._resolution
        if id(node) in resolution.functions:
            yield from self._declared.get(id(node), ()) if not isinstance(node, ast.Parallel) else ()
        elif isinstance(node, ast.Let) and self._at < node.end:
            yield from self._inside(node.value)
        elif id(node) not in resolution.scopes or self._surrounds(node):
            if node.start <= self._at or isinstance(node, ast.FnDecl):
                yield from self._declared.get(id(node), ())
            yield from self.below(node)

    def declares(self, node: ast.Node) -> Iterator[Variable]:
        """Return the names that a statement declares, unless something in it is going on."""
        yield from self._declared.get(id(node), ())
        if isinstance(node, ast.Let) and not self._surrounds(node):
            yield from self._declared.get(id(node.target), ())

    def _surrounds(self, node: ast.Node) -> bool:
        return node.start <= self._at < node.end


# Values as a debugger shows them: a short text, and the parts that can be opened. Spec: 09 §15.4.


_WIDTH = 160
#: How many parts of a value are shown.
MOST_PARTS = 1000


def short(value: Value, width: int = _WIDTH) -> str:
    """A value on one line; a string in quotes."""
    try:
        text = json.dumps(value, ensure_ascii=False) if type(value) is str else display(value)
    except TooLarge:
        return f"<{type_name(value)}, too large to show>"
    text = one_line(text)
    return text if len(text) <= width else text[: width - 1] + "…"


def kind(value: Value) -> str:
    return type_name(value)


def parts(value: Value) -> list[tuple[str, Value]]:
    """Return the parts of a value, by name or number; empty for one without parts."""
    if isinstance(value, dict):
        found: Any = sorted(value.items())
    elif isinstance(value, list):
        found = ((f"[{i}]", item) for i, item in enumerate(value))
    elif isinstance(value, EnumValue):
        found = ((f"[{i}]", item) for i, item in enumerate(value.fields))
    elif isinstance(value, Pair):
        found = (("first", value.first), ("second", value.second))
    elif isinstance(value, Set):
        found = ((f"[{i}]", item) for i, item in enumerate(value.items))
    else:
        found = ()
    return list(islice(found, MOST_PARTS))


# Harn code in a call of a stopped program: it sees what the call sees. Spec: 09 §15.4.


_FILE = "<expression>"


class EvaluationError(Exception):
    """The code could not be evaluated; the message says why."""


def evaluate(a: Activation, names: Names, source: str) -> Value:
    """The value of ``source`` where ``a`` is; what it assigns to variables, they keep.

    Raises EvaluationError.
    """
    try:
        return _evaluated(a, names, source)
    except FAILURES as error:
        found = error if isinstance(error, VmError) else finish(error)
        raise EvaluationError(console.error_text(found)) from None
    except SourceFault as fault:
        raise EvaluationError(console.error_text(fault)) from None
    except Leaving:
        raise EvaluationError("the expression would end the program") from None


def _evaluated(a: Activation, names: Names, source: str) -> Value:
    vm, walker = a.walker.vm, a.walker
    imports = vm.imports_of(source, a.unit.directory)
    unit = vm.units.input_unit(source, _FILE, _declared(a, names), vm.builtins, imports)
    unit.module, unit.directory = a.unit.module, a.unit.directory
    before = {name: binding.value for name, binding in names.items()}
    table = dict(before)
    observer, vm.observer = vm.observer, None
    try:
        main = unit.main(vm, walker.impls, vm.linker(unit, set()), table)
    finally:
        vm.observer = observer
    try:
        return main(a.depth + 1)
    finally:
        for name, binding in names.items():
            if table[name] is not before[name]:
                binding.assign(table[name])


def _declared(a: Activation, names: Names) -> Declared:
    """The names and types that the code sees, as if inputs of a REPL had declared them."""
    resolution, declared = a.walker.resolution, Declared()
    declared.structs, declared.enums = dict(resolution.structs), dict(resolution.enums)
    declared.interfaces, declared.aliases = set(resolution.interfaces), dict(resolution.aliases)
    for name, binding in names.items():
        variable = declared.names[name] = Variable(name, 0, binding.variable.mutable, "let")
        variable.keep_in_table()
        variable.opaque = True
        variable.struct = binding.variable.struct
    return declared
