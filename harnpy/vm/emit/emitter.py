"""One Harn function being written as one Python function.

Expressions come back as Python text to put where the value is wanted; what cannot be said in an expression is
written first, as lines before it. `operands` keeps evaluation in order when that happens. Statement forms
take a *destination*: a slot, `RETURN` or `DISCARD`.
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.syntax.ast import walk
from harnpy.vm.emit import AHEAD, ANY, ENTRY, NIL, SLOT, TEMP, Operand, at_hand, is_fixed, reading, type_of
from harnpy.vm.emit.source_map import Line, mark
from harnpy.vm.resolve import signature
from harnpy.vm.resolve.kinds import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, TypeAlias

    from harnpy.vm.emit import Bounds, Text
    from harnpy.vm.emit.program import UnitDraft
    from harnpy.vm.resolve import FunctionScope, Reference, Variable
    from harnpy.vm.resolve.kinds import Version

    Destination: TypeAlias = "Operand | Goal"


class _Around:
    """A context manager that runs a generator up to its `yield`, and the rest however the block ends."""

    __slots__ = ("_steps",)

    def __init__(self, steps: Iterator[Any]) -> None:
        self._steps = steps

    def __enter__(self) -> Any:
        return next(self._steps)

    def __exit__(self, *failure: object) -> None:
        next(self._steps, None)


if TYPE_CHECKING:
    import contextlib

    around = contextlib.contextmanager
else:
    # Contextlib is not worth its import when a program starts.
    def around(steps):
        return lambda *args: _Around(steps(*args))


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

    def begin(self) -> None:
        """Begin a statement or a condition: nothing uses its temporaries after it."""
        self._numbered += 1
        self._open.append(self._numbered)

    def end(self) -> None:
        self._open.pop()

    @around
    def loop(self) -> Iterator[None]:
        """Around a loop. What is left behind outside of loops costs one copy, not one at each turn."""
        if not self._loops:
            self._held.clear()
        self._loops += 1
        yield
        self._loops -= 1
        if not self._loops:
            self._settle()

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


def release(slots: list[Operand]) -> str:
    """``t4 = t7 = None``; nothing where there is nothing to let go of."""
    return f"{' = '.join(dict.fromkeys(map(str, slots)))} = None" if slots else ""


def part_of(refs: dict[int, Reference], node: ast.Node) -> str:
    """Return what reads the variable that ``node`` reads a part of; nothing for any other node."""
    while isinstance(node, ast.Member | ast.Index):
        node = node.object
    ref = refs.get(id(node)) if isinstance(node, ast.Name) else None
    return ref.variable.python if ref and ref.kind == "local" and ref.variable else ""


#: Tests for the kinds of values that are updated in place.
TYPE_TESTS = {
    "list": "{0}.__class__ is list",
    "dict": "{0}.__class__ is dict",
    "fields": "({0}.__class__ is dict or {0}.__class__ is Struct)",
}


class Alone:
    """The kind of value that a loop updates a variable for, and the flag that nobody else holds it."""

    __slots__ = ("flag", "kind")

    def __init__(self, flag: Operand, kind: str) -> None:
        self.flag = flag
        self.kind = kind

    def asking(self, x: Operand) -> str:
        return f"{self.flag} = {TYPE_TESTS[self.kind].format(x)} and getrefcount({x}) == SOLE"


class Known:
    """The bounds of a function's int variables, a scope for each block that is being written."""

    __slots__ = ("_scopes",)

    def __init__(self) -> None:
        self._scopes: list[dict[Variable, Bounds]] = [{}]

    def enter(self) -> None:
        self._scopes.append({})

    def leave(self) -> None:
        self._scopes.pop()

    def of(self, variable: Variable) -> Bounds:
        for scope in reversed(self._scopes):
            if variable in scope:
                return scope[variable]
        return ANY

    def learn(self, variable: Variable, bounds: Bounds) -> None:
        """From here on to the end of the block, ``variable`` is within ``bounds``, too."""
        if not (variable.in_table or variable.late):
            low, high = self.of(variable)
            self._scopes[-1][variable] = max(low, bounds[0]), min(high, bounds[1])

    def forget(self, variable: Variable) -> None:
        for scope in self._scopes:
            scope.pop(variable, None)


class Hoisted:
    """What a loop computes of values that stay the same, and so once, before it begins."""

    __slots__ = ("changing", "line", "slots", "there")

    def __init__(self, line: Line, there: set[str], changing: set[str]) -> None:
        self.line = line
        """A line left free before the loop."""
        self.there = there
        """The slots of variables that have been declared before the loop …"""
        self.changing = changing
        """… and those that are assigned in it."""
        self.slots: dict[str, Operand] = {}
        """The texts of what is computed, each with the temporary that holds its value."""


#: Python's own limit on indentation is 100; this leaves room for what we add.
_MAX_INDENT = 90


class TooDeep(Exception):
    """The blocks of ``function``, a node, are nested deeper than Python can express."""

    def __init__(self, function: ast.Node) -> None:
        super().__init__("blocks are nested too deeply")
        self.function = function


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

    def __init__(self, unit: UnitDraft, function: FunctionScope, version: Version | None = None) -> None:
        self.unit = unit
        self.function = function
        self.version = version
        """Which version of the function is being written; None: the one for any arguments."""
        self.python = ""
        """What the Python function is called."""
        self.has_tail_calls = any(
            isinstance(node, ast.Return) and isinstance(node.value, ast.Call | ast.Pipe)
            for node in (walk(function.node) if version else ())
        )
        """Whether a version may return a tail call."""
        self.view = version.view if version else unit.kinds.everywhere
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
        self.first_call: int | None = None
        """The line before the first statement of the body that calls something at a greater depth."""
        self.self_tail = False
        self.may_tail = False
        self.generator = function.yields
        self.own: set[str] | None = None
        """In a `defer` body, a nested Python function: the slots that are its own …"""
        self.outer: set[Operand] = set()
        """… and those of the function around it that it assigns."""
        self.leftovers = Leftovers()
        self.known = Known()
        self.alone: dict[Variable, Alone] = {}
        """The variables that the loops around the current place only update (`updates`)."""
        self.int_flags: dict[str, Operand] = {}
        """The slots of variables that loops around the current place add to, with the flags that hold whether
        they are ints."""
        self.unreduced: set[str] = set()
        """The slots of ints that are reduced to 64 bits at the end of a loop only."""
        self.hoisted: list[Hoisted] = []
        """Of each Harn loop around the current place, what is computed before it."""
        self.declared = {variable.python for variable in (*function.params, *function.captures.values())}
        """The slots of variables that have been declared so far."""

    # --- lines ------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append(Line(self.indent, text, self.at))

    @around
    def here(self) -> Iterator[None]:
        """Change nothing: for what is only sometimes inside of something."""
        yield

    @around
    def indented(self) -> Iterator[None]:
        self.indent += 1
        if self.indent > _MAX_INDENT:
            raise TooDeep(self.function.node)
        yield
        self.indent -= 1

    @around
    def suite(self, header: str) -> Iterator[None]:
        """Below ``header:``, indented; `pass` stands there if nothing else does."""
        self.line(header + ":")
        before = len(self.lines)
        with self.indented():
            yield
            if len(self.lines) == before:
                self.line("pass")

    @around
    def apart(self, deeper: int = 1) -> Iterator[list[Line]]:
        """Out of the text: gives the list that the lines, ``deeper`` levels deeper, go into."""
        outside, self.lines = self.lines, []
        self.indent += deeper
        yield self.lines
        self.indent -= deeper
        self.lines = outside

    @around
    def protected(self) -> Iterator[None]:
        """In a block that has something to do after it: its calls are no tail calls."""
        self.protections += 1
        yield
        self.protections -= 1

    @around
    def loop(self, signal: Operand | None = None) -> Iterator[None]:
        """In a Python loop: that of a Harn loop, or our own with its signal slot."""
        self.loops.append(signal)
        yield
        self.loops.pop()

    @around
    def updating(self, variables: Mapping[Variable, str]) -> Iterator[None]:
        """Around a loop that only updates ``variables``, values of those kinds: they have flags there."""
        for variable, kind in variables.items():
            flag = Operand(f"sole{self.number_temp()}", TEMP)
            self.line(f"{flag} = False")
            self.alone[variable] = Alone(flag, kind)
        yield
        for variable in variables:
            del self.alone[variable]

    @around
    def summing(self, variables: Iterable[Variable]) -> Iterator[None]:
        """Around a loop that assigns ``variables`` nothing but sums with themselves."""
        added = [v.python for v in variables if v.python not in self.int_flags]
        for slot in added:
            flag = Operand(f"int{self.number_temp()}", TEMP)
            self.line(f"{flag} = {slot}.__class__ is int")
            self.int_flags[slot] = flag
        yield
        for slot in added:
            del self.int_flags[slot]

    @around
    def adding_up(self, variables: Iterable[Variable]) -> Iterator[None]:
        """Around a loop that only adds to ``variables``: how often they are reduced makes no difference."""
        added = [reading(v) for v in variables if v.python not in self.unreduced]
        self.unreduced.update(map(str, added))
        yield
        self.unreduced.difference_update(map(str, added))
        for slot in added:
            flag = self.int_flags.get(slot.text)
            test = f"{slot} > 1073741823 or {slot} < -1073741823"
            self.line(f"if {f'{flag} and ({test})' if flag else test}: {slot} = wrap({slot})")

    @around
    def looping(self, changing: Iterable[Variable]) -> Iterator[None]:
        """Around a loop that assigns ``changing``: what stays the same is computed before it."""
        self.line("")
        hoisted = Hoisted(self.lines[-1], set(self.declared), {variable.python for variable in changing})
        self.hoisted.append(hoisted)
        yield
        self.hoisted.pop()
        hoisted.line.text = "; ".join(f"{slot} = {text}" for text, slot in hoisted.slots.items())

    def hoist(self, text: str, root: Operand | None = None) -> Text:
        """``text``, which cannot fail and depends on nothing but what the slot ``root`` holds: in a loop that
        leaves that alone, a temporary that got it before the loop."""
        outermost = None
        for hoisted in reversed(self.hoisted):
            if root and (root.text in hoisted.changing or root.text not in hoisted.there):
                break
            outermost = hoisted
        if outermost is None:
            return text
        if text not in outermost.slots:
            outermost.slots[text] = Operand(f"t{self.number_temp()}", AHEAD)
        return outermost.slots[text]

    def reduced(self, text: Text) -> Text:
        """The value of a slot for what is done with any values."""
        return f"wrap({text})" if str(text) in self.unreduced else text

    @around
    def under_deadline(self, token: Operand) -> Iterator[None]:
        self.deadlines.append(token)
        yield
        self.deadlines.pop()

    @around
    def deferring(self) -> Iterator[None]:
        """Around the body of a function: what it defers, if anything, runs after it.

        The deferred blocks are called from the function as a whole.
        """
        if not self.function.defers:
            yield
            return
        self.line("defers = []")
        with self.suite("try"):
            yield
        self.at = self.function.node
        self.line("finally:")
        self.line(" if alive(): run_defers(defers)")

    @around
    def nested_function(self) -> Iterator[tuple[list[Line], set[Operand]]]:
        """In a Python function of its own; gives its lines and the slots outside that it assigns."""
        outside = self.lines, self.own, self.outer, self.loops, self.generator
        around = self.leftovers, self.known, self.int_flags, self.hoisted
        self.lines, self.own, self.outer, self.loops, self.generator = [], set(), set(), [], False
        # It runs later, when variables have other values.
        self.leftovers, self.known, self.int_flags, self.hoisted = Leftovers(), Known(), {}, []
        self.indent += 1
        yield self.lines, self.outer
        self.indent -= 1
        self.lines, self.own, self.outer, self.loops, self.generator = outside
        self.leftovers, self.known, self.int_flags, self.hoisted = around

    def number_temp(self) -> int:
        self.temps += 1
        return self.temps

    def temp(self) -> Operand:
        return Operand(f"t{self.number_temp()}", TEMP)

    def assign(self, target: Operand, text: Text) -> None:
        if text != target:
            self.line(f"{target} = {text}")
            self.changed(target)
        self.assigned(target)

    def changed(self, slot: Operand) -> None:
        """After an assignment of any value: look whether it is an int, if there is a flag for that."""
        if flag := self.int_flags.get(slot.text):
            self.line(f"{flag} = {type_of(slot)} is int")

    def is_int(self, slot: Text) -> str:
        """The test whether a value at hand is an int."""
        return str(self.int_flags.get(str(slot)) or f"{type_of(slot)} is int")

    def assigned(self, target: Operand) -> None:
        """Note the assignment, so that a nested Python function declares the slot nonlocal."""
        if target.kind == SLOT and self.own is not None and target.text not in self.own:
            self.outer.add(target)

    # --- expressions ------------------------------------------------------------------------------

    def expr(self, node: ast.Node, into: Operand | None = None) -> Text:
        """Python text for the value of ``node``; ``into`` may be assigned on the way to it."""
        writers = self.unit.writers
        kind, before = type(node), self.at
        if form := writers.forms[kind]:
            slot = into or self.temp()
            self.at = node
            form(self, node, slot)
            self.at = before
            return slot
        text = writers.expressions[kind](self, node, into)
        self.at = before
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
        return self.view.kind(node)

    def kind_of(self, variable: Variable) -> str:
        """The kind of a variable."""
        return plain(self.view.of_variable(variable) or "any")

    def is_self(self, ref: Reference) -> bool:
        """Return True if a name means the function being written."""
        own = self.function.own_variable
        return own is not None and ref.variable is not None and ref.variable.captured_from is own

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
        if form := writers.forms[kind]:
            form(self, node, dest)
        elif statement := writers.statements[kind]:
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
        self.known.enter()
        self.open_scope(block)
        self.statements(block.statements, dest)
        self.known.leave()

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

    def statements(self, statements: Sequence[ast.Node], dest: Destination, whole: bool = False) -> None:
        """Statements in a row; ``whole``: they are all of a function's body."""
        last = statements[-1] if statements else None
        for statement in statements:
            before = self.uses_depth or len(self.lines)
            self.leftovers.begin()
            self.into(statement, dest if statement is last else DISCARD)
            self.leftovers.end()
            if whole and self.uses_depth and before is not True:
                self.first_call = before
        if last is None and dest is not DISCARD:
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

    def forget(self, variable: Variable) -> None:
        """Before an assignment of any value: it may have other holders."""
        if alone := self.alone.get(variable):
            self.line(f"{alone.flag} = False")

    def declare_slot(self, slot: str) -> None:
        self.declared.add(slot)
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
