"""One Harn function being written as one Python function.

Expressions come back as Python text to put where the value is wanted; what cannot be said in an expression is
written first, as lines before it. `operands` keeps evaluation in order when that happens. Statement forms
take a *destination*: a slot, `RETURN` or `DISCARD`.
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.emit.contexts import Apart, Deferring, Indented, NestedFunction, Protected, Suite, Within
from harnpy.vm.emit.leftovers import Leftovers, part_of
from harnpy.vm.emit.operand import ENTRY, NIL, SLOT, TEMP, Operand, at_hand, is_fixed, reading
from harnpy.vm.emit.writer import Line, mark
from harnpy.vm.resolve.tree import signature

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from harnpy.vm.emit.operand import Text
    from harnpy.vm.emit.unit import UnitDraft
    from harnpy.vm.resolve.scopes import FunctionScope, Variable

    Destination: TypeAlias = "Operand | Goal"


class Goal:
    """Where a value goes when no variable takes it."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


RETURN = Goal("return")
DISCARD = Goal("discard")

#: From this length on an expression is put into a slot before it grows further.
_LONG = 1000
#: Statements after which nothing else runs, so that they need no value.
_LEAVING = (ast.Return, ast.Throw, ast.Break, ast.Continue)


class Emitter:
    """The state of one function's translation."""

    def __init__(self, unit: UnitDraft, function: FunctionScope) -> None:
        self.unit = unit
        self.function = function
        self.refs = unit.resolution.refs
        self.lines: list[Line] = []
        self.indent = 2
        self.temps = 0
        self.at = unit.start
        """The node that the next lines stand for."""
        self.loops: list[Operand | None] = []
        """Python loops around the current place: a Harn loop (None) or our own (its signal slot)."""
        self.protections = 0
        """How many blocks are around the current place that have something to do after it."""
        self.deadlines: list[Operand] = []
        """The tokens of the `deadline` blocks around the current place."""
        self.uses_depth = False
        self.self_tail = False
        self.may_tail = False
        self.generator = function.yields
        self.own: set[str] | None = None
        """In a `defer` body, a nested Python function: the slots that are its own …"""
        self.outer: set[Operand] = set()
        """… and those of the function around it that it assigns."""
        self.leftovers = Leftovers()

    # --- lines ------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append(Line(self.indent, text, self.at))

    def suite(self, header: str) -> Suite:
        """Below ``header:``, indented."""
        return Suite(self, header)

    def indented(self) -> Indented:
        return Indented(self)

    def apart(self, deeper: int = 1) -> Apart:
        """Out of the text: gives the list that the lines, one level deeper, go into."""
        return Apart(self, deeper)

    def protected(self) -> Protected:
        """In a block that has something to do after it: its calls are no tail calls."""
        return Protected(self)

    def loop(self, signal: Operand | None = None) -> Within:
        """In a Python loop: that of a Harn loop, or our own with its signal slot."""
        return Within(self.loops, signal)

    def under_deadline(self, token: Operand) -> Within:
        return Within(self.deadlines, token)

    def deferring(self) -> Deferring:
        return Deferring(self)

    def nested_function(self) -> NestedFunction:
        """In a Python function of its own; gives its lines and what it assigns outside."""
        return NestedFunction(self)

    def number_temp(self) -> int:
        self.temps += 1
        return self.temps

    def temp(self) -> Operand:
        return Operand(f"t{self.number_temp()}", TEMP)

    def assign(self, target: Operand, text: Text) -> None:
        if text != target:
            self.line(f"{target} = {text}")
        self.assigned(target)

    def assigned(self, target: Operand) -> None:
        """Note the assignment, so that a nested Python function declares the slot nonlocal."""
        if target.kind == SLOT and self.own is not None and target.text not in self.own:
            self.outer.add(target)

    # --- expressions ------------------------------------------------------------------------------

    def expr(self, node: ast.Node, into: Operand | None = None) -> Text:
        """Python text for the value of ``node``; ``into`` may be assigned on the way to it."""
        writers = self.unit.writers
        kind = type(node)
        if form := writers.forms.get(kind):
            slot = into or self.temp()
            before, self.at = self.at, node
            form(self, node, slot)
            self.at = before
            return slot
        text = writers.expressions[kind](self, node, into)
        if isinstance(text, Operand):
            return text if text == into else self.read(node, text)
        return self.short(text)

    def read(self, node: ast.Node, slot: Operand) -> Operand:
        """``slot``, which has got the value of ``node``, noted if it holds a part of a variable's."""
        if slot.kind == TEMP and isinstance(node, ast.Member | ast.Index):
            variable = part_of(self.refs, node)
            if variable:
                self.leftovers.hold(slot, variable)
        return slot

    def short(self, text: Text) -> Text:
        """``text``, or a slot that holds it once it is long: Python nests parentheses 200 deep."""
        return text if isinstance(text, Operand) or len(text) < _LONG else self.fresh(text)

    def atom(self, node: ast.Node) -> Operand:
        """The value of ``node`` in a slot, or as a constant."""
        return self.read(node, self.settle(self.expr(node)))

    def settle(self, text: Text) -> Operand:
        """``text`` itself when its value is at hand, else a new slot that holds it."""
        return text if isinstance(text, Operand) and at_hand(text) else self.fresh(text)

    def slot(self, node: ast.Node) -> Operand:
        """The value of ``node`` in a slot, for uses that a constant does not allow."""
        return self.read(node, self.held(self.expr(node)))

    def held(self, text: Text) -> Operand:
        """``text`` itself when it is a slot, else a new slot that holds it."""
        return text if isinstance(text, Operand) and text.is_slot else self.fresh(text)

    def fresh(self, text: Text) -> Operand:
        slot = self.temp()
        self.line(f"{slot} = {text}")
        if isinstance(text, Operand) and text.kind == ENTRY:
            self.leftovers.hold(slot, text.text)
        return slot

    def operands(self, nodes: Sequence[ast.Node]) -> list[Text]:
        """Texts for ``nodes``, to be used in this order in one expression."""
        return self.in_order([(node, self.expr) for node in nodes])

    def in_order(self, parts: Sequence[tuple[ast.Node, Callable[[ast.Node], Text]]]) -> list[Text]:
        """The same for nodes that are each written in their own way."""
        texts: list[Text] = []
        for node, write in parts:
            before = len(self.lines)
            text = write(node)
            if len(self.lines) > before:
                disturbs = self.unit.assigns_locals(node)
                for i, earlier in enumerate(texts):
                    if not at_hand(earlier) or (disturbs and not is_fixed(earlier)):
                        texts[i] = slot = self.read(parts[i][0], self.temp())
                        self.lines.insert(before, Line(self.indent, f"{slot} = {earlier}", self.at))
                        before += 1
            texts.append(text)
        return texts

    def atoms(self, nodes: Sequence[ast.Node]) -> list[Operand]:
        texts = self.operands(nodes)
        return [self.read(node, self.settle(text)) for node, text in zip(nodes, texts, strict=True)]

    def mark(self, node: ast.Node, text: str) -> str:
        return mark(text, node)

    def kind(self, node: ast.Node) -> str:
        return self.unit.kinds.kind(node)

    def depth(self) -> str:
        """The slot that holds the depth of the functions called from here."""
        self.uses_depth = True
        return "e"

    # --- statements -------------------------------------------------------------------------------

    def into(self, node: ast.Node, dest: Destination) -> None:
        """Write ``node`` so that its value ends up in ``dest``."""
        writers = self.unit.writers
        before, self.at = self.at, node
        kind = type(node)
        if form := writers.forms.get(kind):
            form(self, node, dest)
        elif statement := writers.statements.get(kind):
            statement(self, node)
            if dest is not DISCARD and kind not in _LEAVING:
                self.store(dest, NIL)
        else:
            into = dest if isinstance(dest, Operand) else None
            self.store(dest, writers.expressions[kind](self, node, into))
        self.at = before

    def store(self, dest: Destination, text: Text) -> None:
        if isinstance(dest, Operand):
            self.assign(dest, text)
        elif dest is RETURN:
            self.give(text)
        else:
            self.compute(text)

    def compute(self, text: Text) -> None:
        """Write ``text`` for what computing it does, not for its value."""
        if not at_hand(text):
            self.line(str(text))

    def give(self, text: Text) -> None:
        """Return ``text`` from the function; a generator's return value is not seen (02 §18)."""
        if self.generator:
            self.compute(text)
            self.line("return")
        else:
            self.line(f"return {text}")

    def block(self, block: ast.Block, dest: Destination) -> None:
        """A `{ … }` with a scope of its own."""
        self.open_scope(block)
        self.statements(block.statements, dest)

    def open_scope(self, owner: ast.Node) -> None:
        """Make what a block's closures may look for before it is declared."""
        scope = self.unit.resolution.scopes.get(id(owner))
        if scope is None:
            return
        for variable in scope.late:
            self.line(f"{variable.box} = [UNSET]")
            self.declare_slot(variable.box)
        for variable in scope.shells:
            self.assign_new(variable, f"shell({variable.name!r}, {parameters_text(variable)})")

    def statements(self, statements: Sequence[ast.Node], dest: Destination) -> None:
        for statement in statements[:-1]:
            with self.leftovers.within():
                self.into(statement, DISCARD)
        if statements:
            with self.leftovers.within():
                self.into(statements[-1], dest)
        elif dest is not DISCARD:
            self.store(dest, NIL)

    # --- variables --------------------------------------------------------------------------------

    def declared_by(self, node: ast.Node, name: str) -> Variable:
        """The variable that ``node`` declares under ``name``."""
        return self.unit.resolution.variables[id(node), name]

    def refuses(self, node: ast.Node, name: str) -> bool:
        """Whether ``node`` may not declare ``name``, which is taken (02 §8); if so, write the error."""
        if (id(node), name) not in self.unit.resolution.redeclared:
            return False
        self.line(f"redeclared({name!r})")
        return True

    def declare_slot(self, slot: str) -> None:
        if self.own is not None:
            self.own.add(slot)

    def assign_new(self, variable: Variable, text: Text) -> None:
        """Give a variable its first value."""
        self.declare_slot(variable.python)
        self.assign(reading(variable), text)
        self.show_in_box(variable)

    def show_in_box(self, variable: Variable) -> None:
        """After an assignment: show the value to the closures that look the name up late."""
        if variable.late and not variable.in_box:
            self.line(f"{variable.box}[0] = {variable.python}")


def parameters_text(variable: Variable) -> str:
    """The parameters of the `fn` that a variable holds, and whether the last takes the rest."""
    fn = variable.fn
    assert fn
    names, rest = signature(fn.params)
    return f"{names!r}, {rest}"
