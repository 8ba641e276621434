"""One run of a Harn function, what the runs of a unit share, and how nodes are evaluated. Spec: 02 §7, §8.

`Activation` holds the variables of one run; `Walker` is one unit being walked. What leaves a block early is
an exception, which passes through Harn's `catch`: that catches failures only (02 §11).
"""

from __future__ import annotations

from harnpy.vm.errors import FAILURES
from harnpy.vm.resolve import signature
from harnpy.vm.resolve.types import annotation_spec
from harnpy.vm.run.backtrace import Walking
from harnpy.vm.run.calls import UNSET, redeclared

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, Protocol

    from harnpy.syntax import ast
    from harnpy.vm.front_end import Resolved
    from harnpy.vm.modules import Linker
    from harnpy.vm.resolve import FunctionScope, Variable
    from harnpy.vm.resolve.types import Spec
    from harnpy.vm.unit import Unit
    from harnpy.vm.values import Fn, Value
    from harnpy.vm.vm import Vm

    #: Evaluates a node of one class; the first argument is the function that it stands in.
    Evaluator = Callable[[Any, Any], Value]

    class Observer(Protocol):
        """A watcher of a program that is walked, such as a debugger.

        ``statement`` is called before a statement of ``a`` is evaluated, ``done`` after it, unless it was
        left. ``failed`` is called when one has failed, for the innermost statement first, while the variables
        are still those of the failure. ``a.mark`` is the observer's to use.
        """

        def statement(self, a: Activation, node: ast.Node) -> None: ...
        def done(self, a: Activation, node: ast.Node) -> None: ...
        def failed(self, a: Activation, error: BaseException) -> None: ...


class Jump(BaseException):
    """Unwinds up to the loop or function that it leaves; `finally` and `defer` run on the way."""


class BreakLoop(Jump):
    """`break`"""


class ContinueLoop(Jump):
    """`continue`"""


class Return(Jump):
    """`return`, or a `?` that met an `Err`."""

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.value = value


# Evaluators that look at the size of every value, for a Vm with a limit of items. Spec: 09 §16.1.


def growing(
    evaluators: Mapping[type[ast.Node], Evaluator], check: Callable[[Any], None]
) -> Mapping[type[ast.Node], Evaluator]:
    """Return ``evaluators`` that give each value to ``check``, which may leave the program."""
    return {kind: _checked(evaluate, check) for kind, evaluate in evaluators.items()}


def _checked(evaluate: Evaluator, check: Callable[[Any], None]) -> Evaluator:
    def value(a: Activation, node: ast.Node) -> Any:
        result = evaluate(a, node)
        check(result)
        return result

    return value


class Activation(Walking):
    """A function that runs.

    ``slots`` holds its variables; ``boxes`` what closures share that look a name up late (02 §7.4).
    ``depth`` counts the calls around it. ``protected`` counts the blocks around the current place that have
    something to do after it, so that no call there is a tail call (02 §9.4); ``catches`` tell of those that
    catch failures whether they take a value. ``defers`` are the blocks to run at its end; ``generates`` is
    set in the body of a generator; ``deadlines`` are those of the blocks around the current place.
    """

    __slots__ = (
        "boxes",
        "catches",
        "deadlines",
        "defers",
        "depth",
        "function",
        "generates",
        "mark",
        "protected",
        "slots",
        "walker",
    )

    def __init__(self, walker: Walker, function: FunctionScope, name: str, depth: int) -> None:
        super().__init__(walker.unit, name, function.node.start)
        self.walker = walker
        self.function = function
        self.depth = depth
        self.slots: dict[Variable, Value] = {}
        self.boxes: dict[Variable, list[Value]] = {}
        self.protected = 0
        self.defers: list[Callable[[], None]] = []
        self.catches: list[Callable[[Value], bool]] = []
        self.generates = False
        self.deadlines: list[float] = []
        #: What an observer knows this run of the function by, 0 until it has met it.
        self.mark = 0

    def within(self, name: str) -> Activation:
        """A function that runs in this one, on the same variables: a `defer` block."""
        inner = Activation(self.walker, self.function, name, self.depth)
        inner.slots, inner.boxes, inner.defers, inner.mark = self.slots, self.boxes, self.defers, self.mark
        return inner

    # --- evaluating -------------------------------------------------------------------------------

    def value(self, node: ast.Node) -> Value:
        """The value of any node; nil for a statement that has none."""
        return self.walker.evaluators[type(node)](self, node)

    def values(self, nodes: Iterable[ast.Node]) -> list[Value]:
        """The values of ``nodes``, evaluated in this order."""
        found = []
        for node in nodes:
            found.append(self.value(node))
        return found

    def block(self, block: ast.Block) -> Value:
        """The value of a `{ … }`, which is that of its last statement."""
        self.open_scope(block)
        return self.statements(block.statements)

    def statements(self, statements: Sequence[ast.Node]) -> Value:
        value = None
        for statement in statements:
            self.at = statement.start
            value = None  # what nobody refers to is gone before the next statement (05 §7.2)
            observer = self.walker.observer
            value = self.value(statement) if observer is None else self.observed(observer, statement)
        return value

    def observed(self, observer: Observer, statement: ast.Node) -> Value:
        observer.statement(self, statement)
        try:
            value = self.value(statement)
        except FAILURES as error:
            observer.failed(self, error)
            raise
        observer.done(self, statement)
        return value

    def open_scope(self, owner: ast.Node) -> None:
        """Make what the closures of a block may look for before it is declared (02 §7.4)."""
        scope = self.walker.resolution.scopes.get(id(owner))
        if scope is None:
            return
        for variable in scope.late:
            self.boxes[variable] = [UNSET]
        for variable in scope.shells:
            self.declare(variable, self.walker.shell(variable))

    def poll(self) -> None:
        """Between two turns of a loop, or entering a function: notice deadlines and cancellation (05 §9)."""
        if self.walker.vm.signal.pending:
            self.walker.vm.poll()

    def leave(self, value: Value) -> None:
        """Return ``value`` from the function."""
        raise Return(value)

    # --- variables --------------------------------------------------------------------------------

    def declared_by(self, node: ast.Node, name: str) -> Variable:
        """The variable that ``node`` declares under ``name``."""
        return self.walker.resolution.variables[id(node), name]

    def refuse_redeclared(self, node: ast.Node, name: str) -> None:
        """Raise when ``node`` may not declare ``name``, which is taken (02 §8)."""
        if (id(node), name) in self.walker.resolution.redeclared:
            redeclared(name)

    def read(self, variable: Variable) -> Value:
        """Return what a variable holds; `UNSET` when a closure reads it before it has been declared."""
        if variable.in_table:
            return self.walker.table[variable.name]
        return self.slots[variable][0] if variable.in_box else self.slots[variable]

    def declare(self, variable: Variable, value: Value) -> None:
        """Give a variable a value, its first or another."""
        if variable.in_table:
            self.walker.table[variable.name] = value
        else:
            self.slots[variable] = value
        if variable.late and not variable.in_box:
            self.boxes[variable][0] = value

    assign = declare

    def capture(self, outer: Variable, own: Variable) -> Value:
        """Return what a closure made now gets for ``outer``: its value, or the box around it (02 §7.3)."""
        if own.late:
            return self.slots[outer] if outer.captured_from else self.boxes[outer]
        return self.read(outer)

    def bound(self) -> Iterator[tuple[str, Value]]:
        for variable in reversed(self.slots):
            yield variable.name, self.slots[variable]


class Walker:
    """One unit being walked.

    ``impls`` collects its `impl` methods, ``linker`` does its imports; ``table`` holds the variables that all
    of its functions share: those of a module, or of a REPL session.
    """

    def __init__(
        self,
        vm: Vm,
        unit: Unit,
        tree: Resolved,
        evaluators: Mapping[type[ast.Node], Evaluator],
        impls: dict[str, dict[str, Fn]],
        linker: Linker | None,
        table: dict[str, Value],
    ) -> None:
        self.vm = vm
        self.unit = unit
        self.tree = tree
        self.resolution = tree.resolution
        self.evaluators = evaluators if vm.growth is None else growing(evaluators, vm.growth.check)
        self.impls = impls
        self.linker = linker
        self.table = table
        self.observer: Observer | None = vm.observer

    def spec_of(self, param: ast.Param) -> Spec | None:
        """Return what the annotation of a parameter demands, None when that is nothing."""
        if param.type is None or param.rest:
            return None
        return annotation_spec(param.type, self.resolution)

    def shell(self, variable: Variable) -> Fn:
        """A function that is named before its declaration has run."""
        assert variable.fn
        return self.vm.calls.shell(variable.name, *signature(variable.fn.params))
