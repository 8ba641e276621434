"""One Harn function being written as one Python function.

Expressions come back as Python text to put where the value is wanted; what cannot be said in an expression is
written first, as lines before it. `operands` keeps evaluation in order when that happens. Statement forms
take a *destination*: a slot, `RETURN` or `DISCARD`.
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.emit import ENTRY, NIL, SLOT, TEMP, Operand, at_hand, is_fixed, reading
from harnpy.vm.emit.source_map import Line, mark
from harnpy.vm.resolve.tree import signature

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeAlias

    from harnpy.vm.emit import Text
    from harnpy.vm.emit.program import UnitDraft
    from harnpy.vm.resolve import FunctionScope, Reference, Variable

    Destination: TypeAlias = "Operand | Goal"

# Temporaries that keep a part of a variable's value after the statement that read it.
#
#     if len(o.items) > 3 { o.items = o.items + [i] }        t4 = o_1['items']; if len(t4) > 3: …
#
# Nothing uses ``t4`` again, but it is one more holder of the list, for which an update would copy the list at
# each turn of the loop. So an update first lets go of such temporaries: ``t4 = None``. Which ones there are,
# also further down in the loop, is known when the loop has been written; until then a line is left free for
# it.


class Leftovers:
    """Those of one Python function."""

    __slots__ = ("_free", "_held", "_loops", "_numbered", "_open")

    def __init__(self) -> None:
        self._open: list[int] = []
        """The statements and conditions being written, innermost last, by number."""
        self._numbered = 0
        self._loops = 0
        self._held: list[tuple[Operand, str, int]] = []
        """Temporaries with the variable whose part they hold, and the innermost statement that made them."""
        self._free: list[tuple[Line, str, frozenset[int]]] = []
        """Lines left free for an update of a variable, with the statements around it."""

    def within(self) -> InStatement:
        """Around a statement or a condition: nothing uses its temporaries after it."""
        return InStatement(self)

    def loop(self) -> InLoop:
        """Around a loop. What is left behind outside of loops costs one copy, not one at each turn."""
        return InLoop(self)

    def hold(self, slot: Operand, variable: str) -> None:
        """Note that ``slot`` has got a part of the value of ``variable``, the text that reads it."""
        self._held.append((slot, variable, self._open[-1] if self._open else 0))

    def count(self) -> int:
        return len(self._held)

    def take(self, count: int) -> list[Operand]:
        """The temporaries beyond the first ``count``, which the caller lets go of."""
        taken = [slot for slot, _, _ in self._held[count:]]
        del self._held[count:]
        return taken

    def release_at(self, line: Line, variable: str) -> None:
        """Fill ``line`` when the loop is done with what lets go of the parts of ``variable``."""
        if self._loops:
            self._free.append((line, variable, frozenset(self._open)))

    def _settle(self) -> None:
        for line, updated, around in self._free:
            left = [slot for slot, of, made in self._held if of is updated and made not in around]
            line.text = release(left)
        self._free.clear()
        self._held.clear()


class InStatement:
    __slots__ = ("_all",)

    def __init__(self, leftovers: Leftovers) -> None:
        self._all = leftovers

    def __enter__(self) -> None:
        self._all._numbered += 1
        self._all._open.append(self._all._numbered)

    def __exit__(self, *failure: object) -> None:
        self._all._open.pop()


class InLoop:
    __slots__ = ("_all",)

    def __init__(self, leftovers: Leftovers) -> None:
        self._all = leftovers

    def __enter__(self) -> None:
        if not self._all._loops:
            self._all._held.clear()
        self._all._loops += 1

    def __exit__(self, *failure: object) -> None:
        self._all._loops -= 1
        if not self._all._loops:
            self._all._settle()


def release(slots: list[Operand]) -> str:
    """``t4 = t7 = None``; nothing where there is nothing to let go of."""
    return f"{' = '.join(dict.fromkeys(map(str, slots)))} = None" if slots else ""


def part_of(refs: dict[int, Reference], node: ast.Node) -> str:
    """Return what reads the variable that ``node`` reads a part of; nothing for any other node."""
    while isinstance(node, ast.Member | ast.Index):
        node = node.object
    ref = refs.get(id(node)) if isinstance(node, ast.Name) else None
    return ref.variable.python if ref and ref.kind == "local" and ref.variable else ""


# What holds for a part of a function while it is written: context managers that `Emitter` makes.
#
# Classes, because `contextlib` is not worth its import when a program starts.


#: Python's own limit on indentation is 100; this leaves room for what we add.
_MAX_INDENT = 90


class TooDeep(Exception):
    """The blocks of ``function``, a node, are nested deeper than Python can express."""

    def __init__(self, function: ast.Node) -> None:
        super().__init__("blocks are nested too deeply")
        self.function = function


class Indented:
    """The lines are one level deeper."""

    __slots__ = ("_e",)

    def __init__(self, e: Emitter) -> None:
        self._e = e

    def __enter__(self) -> None:
        self._e.indent += 1
        if self._e.indent > _MAX_INDENT:
            raise TooDeep(self._e.function.node)

    def __exit__(self, *failure: object) -> None:
        self._e.indent -= 1


class Suite(Indented):
    """The lines stand below a header; `pass` does, if there are none."""

    __slots__ = ("_before", "_header")

    def __init__(self, e: Emitter, header: str) -> None:
        super().__init__(e)
        self._header = header

    def __enter__(self) -> None:
        self._e.line(self._header + ":")
        self._before = len(self._e.lines)
        super().__enter__()

    def __exit__(self, *failure: object) -> None:
        if len(self._e.lines) == self._before:
            self._e.line("pass")
        super().__exit__(*failure)


class Apart:
    """The lines go into a list of their own, ``deeper`` levels deeper."""

    __slots__ = ("_deeper", "_e", "_outside")

    def __init__(self, e: Emitter, deeper: int) -> None:
        self._e = e
        self._deeper = deeper

    def __enter__(self) -> list[Line]:
        lines: list[Line] = []
        self._outside, self._e.lines = self._e.lines, lines
        self._e.indent += self._deeper
        return lines

    def __exit__(self, *failure: object) -> None:
        self._e.indent -= self._deeper
        self._e.lines = self._outside


class Protected:
    """Something is still to be done after the calls of these lines, so none of them is a tail call."""

    __slots__ = ("_e",)

    def __init__(self, e: Emitter) -> None:
        self._e = e

    def __enter__(self) -> None:
        self._e.protections += 1

    def __exit__(self, *failure: object) -> None:
        self._e.protections -= 1


class OnStack:
    """``item`` is on top of a stack."""

    __slots__ = ("_item", "_stack")

    def __init__(self, stack: list[Any], item: Any) -> None:
        self._stack = stack
        self._item = item

    def __enter__(self) -> None:
        self._stack.append(self._item)

    def __exit__(self, *failure: object) -> None:
        self._stack.pop()


class NestedFunction:
    """The lines are the body of a Python function inside the one that is written.

    ``lines`` are its own, ``assigned`` the slots of the function around it that it assigns.
    """

    __slots__ = ("_e", "_outside", "assigned", "lines")

    def __init__(self, e: Emitter) -> None:
        self._e = e
        self.lines: list[Line] = []
        self.assigned: set[Operand] = set()

    def __enter__(self) -> NestedFunction:
        e = self._e
        self._outside = e.lines, e.own, e.outer, e.loops, e.generator, e.leftovers
        e.lines, e.own, e.outer, e.loops, e.generator = self.lines, set(), self.assigned, [], False
        e.leftovers = Leftovers()
        e.indent += 1
        return self

    def __exit__(self, *failure: object) -> None:
        e = self._e
        e.indent -= 1
        e.lines, e.own, e.outer, e.loops, e.generator, e.leftovers = self._outside


class Deferring:
    """Around the body of a function: what it defers, if anything, runs after it.

    The deferred blocks are called from the function as a whole.
    """

    __slots__ = ("_e", "_suite")

    def __init__(self, e: Emitter) -> None:
        self._e = e
        self._suite = Suite(e, "try") if e.function.defers else None

    def __enter__(self) -> None:
        if self._suite:
            self._e.line("defers = []")
            self._suite.__enter__()

    def __exit__(self, *failure: object) -> None:
        if self._suite:
            self._suite.__exit__(*failure)
            self._e.at = self._e.function.node
            self._e.line("finally:")
            self._e.line(" if alive(): run_defers(defers)")


class Goal:
    """A place for a value that no variable takes."""

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

    def loop(self, signal: Operand | None = None) -> OnStack:
        """In a Python loop: that of a Harn loop, or our own with its signal slot."""
        return OnStack(self.loops, signal)

    def under_deadline(self, token: Operand) -> OnStack:
        return OnStack(self.deadlines, token)

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
        """Write the error and return True if ``node`` may not declare ``name``, which is taken (02 §8)."""
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
