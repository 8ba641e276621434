"""One run of a Harn function: its variables, and how the nodes below are evaluated. Spec: 02 §7, §8."""

from __future__ import annotations

from harnpy.vm.errors import FAILURES
from harnpy.vm.run.calls import UNSET, redeclared
from harnpy.vm.run.frames import Walking
from harnpy.vm.walk.jumps import Return

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from harnpy.syntax import ast
    from harnpy.vm.resolve.scopes import FunctionScope, Variable
    from harnpy.vm.walk.walker import Observer, Walker

    Value = Any


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

    def within(self, name: str) -> Activation:
        """A function that runs in this one, on the same variables: a `defer` block."""
        inner = Activation(self.walker, self.function, name, self.depth)
        inner.slots, inner.boxes, inner.defers = self.slots, self.boxes, self.defers
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
            return self.value(statement)
        except FAILURES as error:
            observer.failed(self, error)
            raise

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
        """What a variable holds; `UNSET` when a closure reads it before it has been declared."""
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
        """What a closure made now gets for ``outer``: its value, or the box that it comes in (02 §7.3)."""
        if own.late:
            return self.slots[outer] if outer.captured_from else self.boxes[outer]
        return self.read(outer)

    def bound(self) -> Iterator[tuple[str, Value]]:
        for variable in reversed(self.slots):
            yield variable.name, self.slots[variable]
