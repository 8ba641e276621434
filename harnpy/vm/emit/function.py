"""One Harn function being written as one Python function.

Expressions come back as Python text to put where the value is wanted; what cannot be said in an
expression is written first, as lines before it. `operands` keeps evaluation in order when that
happens. Statement forms take a *destination*: a slot, `RETURN` or `DISCARD`.

Operand kinds: a *local* is a Python slot, a *constant* is written out, and only what is left is
computed; `atom` turns any expression into one of the first two.
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.emit.writer import Line, mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harnpy.vm.emit.unit import UnitEmitter
    from harnpy.vm.resolve.scopes import FunctionScope, Variable

    Destination = str

RETURN = "return"
DISCARD = "discard"

#: Python's own limits on nested blocks (20) and indentation (100), with room for what we add.
_MAX_INDENT = 90


#: From this length on an expression is put into a slot before it grows further.
_LONG = 1000


class TooDeep(Exception):
    """Blocks nested deeper than Python can express, at the source offset ``offset``."""

    def __init__(self, offset: int) -> None:
        super().__init__("blocks are nested too deeply")
        self.offset = offset


class Emitter:
    """The state of one function's translation."""

    def __init__(self, unit: UnitEmitter, function: FunctionScope) -> None:
        self.unit = unit
        self.function = function
        self.refs = unit.resolution.refs
        self.kinds = unit.kinds
        self.lines: list[Line] = []
        self.indent = 2
        self.temps = 0
        self.offset = 0
        self.loops: list[str | None] = []
        """Python loops around the current place: a Harn loop (None) or our own (its signal slot)."""
        self.protected = 0
        self.deadlines: list[str] = []
        """The tokens of the `deadline` blocks around the current place."""
        self.uses_depth = False
        self.self_tail = False
        self.may_tail = False
        self.generator = function.yields
        self.own: set[str] | None = None
        """In a `defer` body, a nested Python function: the variables that are its own …"""
        self.outer: set[str] = set()
        """… and those of the function around it that it assigns."""

    # --- lines ------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append(Line(self.indent, text, self.offset))

    def suite(self, header: str, body: Callable[[], None]) -> None:
        """``header:`` and, indented, what ``body`` writes."""
        self.line(header + ":")
        before = len(self.lines)
        self.indent += 1
        if self.indent > _MAX_INDENT:
            raise TooDeep(self.offset)
        body()
        if len(self.lines) == before:
            self.line("pass")
        self.indent -= 1

    def apart(self, write: Callable[[], str]) -> tuple[str, list[Line]]:
        """What ``write`` answers, and the lines it wrote, kept out of the text (one level deeper)."""
        outside, self.lines = self.lines, []
        self.indent += 1
        text = write()
        self.indent -= 1
        inside, self.lines = self.lines, outside
        return text, inside

    def temp(self) -> str:
        self.temps += 1
        return f"t{self.temps}"

    def assign(self, slot: str, text: str) -> None:
        if text != slot:
            self.line(f"{slot} = {text}")
        self.assigned(slot)

    def assigned(self, slot: str) -> None:
        """Note the assignment, so that a nested Python function declares it nonlocal."""
        ours = self.own is None or slot in self.own or is_temp(slot)
        if not ours and slot.isidentifier():
            self.outer.add(slot)

    # --- expressions ------------------------------------------------------------------------------

    def expr(self, node: ast.Node, into: str | None = None) -> str:
        """Python text for the value of ``node``; ``into`` may be assigned on the way to it."""
        from harnpy.vm.emit.tables import EXPRESSIONS, FORMS

        kind = type(node)
        if kind in FORMS:
            slot = into or self.temp()
            FORMS[kind](self, node, slot)
            return slot
        return self.short(EXPRESSIONS[kind](self, node, into))

    def short(self, text: str) -> str:
        """``text``, or a slot that holds it once it is long: Python nests parentheses 200 deep."""
        return text if len(text) < _LONG else self.settle(text)

    def atom(self, node: ast.Node) -> str:
        """The value of ``node`` as a slot or a constant."""
        return self.settle(self.expr(node))

    def settle(self, text: str) -> str:
        """``text`` itself when it is a slot or constant, else a new slot that holds it."""
        return text if is_atom(text) else self.fresh(text)

    def slot(self, node: ast.Node) -> str:
        """The value of ``node`` in a slot, for uses that a constant does not allow."""
        text = self.expr(node)
        return text if text.isidentifier() and not is_constant(text) else self.fresh(text)

    def fresh(self, text: str) -> str:
        slot = self.temp()
        self.line(f"{slot} = {text}")
        return slot

    def operands(self, nodes: Sequence[ast.Node]) -> list[str]:
        """Texts for ``nodes``, to be used in this order in one expression."""
        texts: list[str] = []
        for node in nodes:
            before = len(self.lines)
            text = self.expr(node)
            if len(self.lines) > before:
                disturbs = self.unit.assigns_locals(node)
                for i, earlier in enumerate(texts):
                    if not is_atom(earlier) or (disturbs and not is_fixed(earlier)):
                        texts[i] = slot = self.temp()
                        self.lines.insert(before, Line(self.indent, f"{slot} = {earlier}", self.offset))
                        before += 1
            texts.append(text)
        return texts

    def atoms(self, nodes: Sequence[ast.Node]) -> list[str]:
        return [self.settle(text) for text in self.operands(nodes)]

    def cond(self, node: ast.Node) -> str:
        """Python text that is true or false as ``node`` is truthy or falsy."""
        from harnpy.vm.emit.operators import condition

        return condition(self, node)

    def mark(self, node: ast.Node, text: str) -> str:
        return mark(text, node.start)

    def kind(self, node: ast.Node) -> str:
        return self.kinds.kind(node)

    def depth(self) -> str:
        """The slot that holds the depth of the functions called from here."""
        self.uses_depth = True
        return "e"

    # --- statements -------------------------------------------------------------------------------

    def into(self, node: ast.Node, dest: Destination) -> None:
        """Write ``node`` so that its value ends up in ``dest``."""
        from harnpy.vm.emit.tables import EXPRESSIONS, FORMS, STATEMENTS

        before, self.offset = self.offset, node.start
        kind = type(node)
        if kind in FORMS:
            FORMS[kind](self, node, dest)
        elif kind in STATEMENTS:
            STATEMENTS[kind](self, node)
            if dest != DISCARD and kind not in (ast.Return, ast.Throw, ast.Break, ast.Continue):
                self.store(dest, "None")
        else:
            slot = dest if dest not in (RETURN, DISCARD) else None
            self.store(dest, EXPRESSIONS[kind](self, node, slot))
        self.offset = before

    def store(self, dest: Destination, text: str) -> None:
        if dest == RETURN:
            self.give(text)
        elif dest == DISCARD:
            if not is_atom(text):
                self.line(text)
        else:
            self.assign(dest, text)

    def give(self, text: str) -> None:
        """Return ``text`` from the function; a generator's return value is not seen (02 §18)."""
        if self.generator:
            if not is_atom(text):
                self.line(text)
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
            self.declared(variable.box)
        for variable in scope.shells:
            self.assign_new(variable, f"shell({variable.name!r}, {self.unit.params_text(variable)})")

    def statements(self, statements: Sequence[ast.Node], dest: Destination) -> None:
        for statement in statements[:-1]:
            self.into(statement, DISCARD)
        if statements:
            self.into(statements[-1], dest)
        elif dest != DISCARD:
            self.store(dest, "None")

    # --- variables ---------------------------------------------------------------------------------

    def declared(self, slot: str) -> None:
        if self.own is not None:
            self.own.add(slot)

    def assign_new(self, variable: Variable, text: str) -> None:
        """Give a variable its first value."""
        self.declared(variable.python)
        self.assign(variable.python, text)
        self.boxed(variable)

    def boxed(self, variable: Variable) -> None:
        """After an assignment: show the value to the closures that look the name up late."""
        if variable.late and not variable.in_box:
            self.line(f"{variable.box}[0] = {variable.python}")


def is_temp(text: str) -> bool:
    return text[0] == "t" and text[1:].isdigit()


def is_atom(text: str) -> bool:
    """Whether ``text`` is a slot or a constant."""
    return text.isidentifier() or is_constant(text)


def is_constant(text: str) -> bool:
    if text in ("None", "True", "False") or text.lstrip("-").replace(".", "", 1).isdigit():
        return True
    return text[0] in "'\"" and text[-1] == text[0] and text[0] not in text[1:-1]


def is_fixed(text: str) -> bool:
    """Whether nothing that runs in between can change what ``text`` reads."""
    return is_temp(text) or is_constant(text)
