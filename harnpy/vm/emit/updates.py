"""``x = x + y``, ``x.k = x.k.push(y)``, ``x[i] = v``: updates that may change a value in place. Spec: 02 §8.

Values never change for the program; a list or dict that nothing but the updated place holds is changed, not
copied (`SOLE`: what `getrefcount` returns then, see `harnpy.vm.values.operators`). The place is a variable
or, below one, a property or an element.
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.emit import NIL, Operand, reading, type_of
from harnpy.vm.emit.emitter import TYPE_TESTS, release
from harnpy.vm.emit.expressions import all_simple, atoms_needed, mapping, sequence, wrap_line
from harnpy.vm.emit.source_map import Line
from harnpy.vm.resolve.kinds import WRAPPING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harnpy.vm.emit import Text
    from harnpy.vm.emit.bounds import Assigned
    from harnpy.vm.emit.emitter import Emitter
    from harnpy.vm.resolve import Variable

    #: Whether a node reads what is updated.
    Reads = Callable[[ast.Node], bool]
    #: One step from a variable to the place that is assigned: ("prop", "'name'") or ("index", the key).
    Step = tuple[str, Text]

# Values that an update makes from the one before: ``x + y``, ``x.push(y)``, ``[...x, y]``, ``x[1:]``.
#
# A form knows what reads the value before, what it takes besides, how a list or dict that nobody else holds
# is changed into the new value, and how the new value is computed where that may not be. What is updated, a
# variable or a part of one, is the business of `harnpy.vm.emit.updates`. Spec: 02 §8.


class Form:
    """``node`` computes a value from the one that ``before`` reads and from those of ``added``."""

    def __init__(self, node: ast.Node, before: ast.Node, added: Sequence[ast.Node]) -> None:
        self.node = node
        self.before = before
        self.added = added

    @property
    def kind(self) -> str:
        """The type of value that is surely changed in place, if nobody else holds it; "" for none."""
        return ""

    def in_place(self, x: Operand, atoms: Sequence[Operand]) -> str:
        """What changes such a value."""
        raise NotImplementedError

    def check(self, e: Emitter, value: Operand) -> None:
        """Write what is refused before ``added`` are evaluated."""

    def operands(self, e: Emitter) -> list[Operand]:
        """The values of ``added``, or what they are put together to."""
        return e.atoms(self.added)

    def change(self, e: Emitter, target: Target, atoms: Sequence[Operand]) -> None:
        """Write the changes of ``target`` by ``atoms``, each after a test of the kinds."""
        raise NotImplementedError

    def computed(self, e: Emitter, value: Operand, atoms: Sequence[Operand]) -> str:
        """The new value, of operands of any kinds."""
        raise NotImplementedError


class Sum(Form):
    """``x + y + z``: the strings of a chain are put together first, so that `x` grows once.

    ``x = x + y`` of values that may be anything:

        if x_1.__class__ is int and y_2.__class__ is int: …
        elif x_1.__class__ is dict and y_2.__class__ is dict and getrefcount(x_1) == SOLE: x_1.update(y_2)
        elif x_1.__class__ is list and y_2.__class__ is list and getrefcount(x_1) == SOLE: x_1 += y_2
        elif x_1.__class__ is str and y_2.__class__ is str: x_1 = x_1 + y_2
        else: x_1 = add(x_1, y_2)
    """

    def __init__(self, e: Emitter, node: ast.Binary) -> None:
        super().__init__(node, *chain(node))
        self.chain = node
        self.kinds = {e.kind(each) for each in (self.before, *self.added)}
        self.grows = [kind for kind in ("dict", "list", "str") if self.kinds <= {"any", kind}]
        self.item = only_item(self.added)
        self._kind = e.kind(self.added[0]) if len(self.added) == 1 else ""

    @property
    def kind(self) -> str:
        return self._kind if self._kind in ("list", "dict") else ""

    def operands(self, e: Emitter) -> list[Operand]:
        return [e.atom(self.item)] if self.item else atoms_needed(e, self.added)

    def in_place(self, x: Operand, atoms: Sequence[Operand]) -> str:
        if self.item:
            return f"{x}.append({atoms[0]})"
        return f"{x}.update({atoms[0]})" if self.kind == "dict" else f"{x} += {atoms[0]}"

    def fits(self, e: Emitter) -> bool:
        """Return True if it may be more than arithmetic, and its strings can be put together first."""
        if any(isinstance(node, ast.Binary) and node.op in WRAPPING for node in self.added):
            return False
        if len(self.added) > 1:
            return "str" in self.grows and all(all_simple(e, node) for node in self.added[1:])
        return bool(self.grows)

    def change(self, e: Emitter, target: Target, atoms: Sequence[Operand]) -> None:
        x = target.value
        if self.kinds == {"str"}:
            target.grow("", f"({' + '.join(map(str, atoms))})")
            return
        if self.kinds == {"any"} and len(atoms) == 1:
            target.add_ints(self.chain, atoms[0])
        for kind in self.grows if len(atoms) == 1 else ["str"]:
            unsure = [a for a, node in zip(atoms, self.added, strict=True) if e.kind(node) != kind]
            test = " and ".join(f"{type_of(a)} is {kind}" for a in (x, *unsure))
            if kind == "str":
                target.grow(test, str(atoms[0]) if len(atoms) == 1 else f"({' + '.join(map(str, atoms))})")
            elif self.kind:
                target.change(test, self.in_place(x, atoms))
            else:
                target.change(test, f"{x}.update({atoms[0]})" if kind == "dict" else f"{x} += {atoms[0]}")
        target.otherwise(self.computed(e, x, atoms))

    def computed(self, e: Emitter, value: Operand, atoms: Sequence[Operand]) -> str:
        added: Sequence[Text] = [f"[{atoms[0]}]"] if self.item else atoms
        return added_one_by_one(e, self.chain, e.reduced(value), added)


def only_item(added: Sequence[ast.Node]) -> ast.Node | None:
    """The item of ``[item]``, if that is all that is added."""
    match added:
        case [ast.List(items=[item])] if not isinstance(item, ast.Spread):
            return item
    return None


def chain(value: ast.Binary) -> tuple[ast.Node, list[ast.Node]]:
    """``x + y + z`` as `x` and what is added to it."""
    added: list[ast.Node] = []
    first: ast.Node = value
    while isinstance(first, ast.Binary) and first.op == "+":
        added.insert(0, first.right)
        first = first.left
    return first, added


def added_one_by_one(e: Emitter, value: ast.Binary, x: Text, atoms: Sequence[Text]) -> str:
    deeper = isinstance(value.left, ast.Binary) and len(atoms) > 1
    left: Text = added_one_by_one(e, value.left, x, atoms[:-1]) if deeper else x  # type: ignore[arg-type]
    return e.mark(value, f"add({left}, {atoms[-1]})")


class Push(Form):
    """``x = x.push(y)``:

    if x_1.__class__ is list and getrefcount(x_1) == SOLE: x_1.append(y_2)
    else: x_1 = m_push_1_[type(x_1)](vm, x_1, y_2)
    """

    kind = "list"

    def in_place(self, x: Operand, atoms: Sequence[Operand]) -> str:
        return f"{x}.append({atoms[0]})"

    def change(self, e: Emitter, target: Target, atoms: Sequence[Operand]) -> None:
        target.change(f"{type_of(target.value)} is list", self.in_place(target.value, atoms))
        target.otherwise(self.computed(e, target.value, atoms))

    def computed(self, e: Emitter, value: Operand, atoms: Sequence[Operand]) -> str:
        table = e.unit.method_table("push", 1)
        return e.mark(self.node, f"{table}[type({value})](vm, {value}, {atoms[0]})")


class Pop(Form):
    """``x = x.pop()``, which is a list without its last item."""

    kind = "list"

    def in_place(self, x: Operand, atoms: Sequence[Operand]) -> str:
        return f"del {x}[-1:]"

    def change(self, e: Emitter, target: Target, atoms: Sequence[Operand]) -> None:
        target.change(f"{type_of(target.value)} is list", self.in_place(target.value, atoms))
        target.otherwise(self.computed(e, target.value, atoms))

    def computed(self, e: Emitter, value: Operand, atoms: Sequence[Operand]) -> str:
        table = e.unit.method_table("pop", 0)
        return e.mark(self.node, f"{table}[type({value})](vm, {value})")


class Cut(Form):
    """``x = x[1:]`` and ``x = x[:-1]``: what is left stays, the rest goes.

    if x_1.__class__ is list and getrefcount(x_1) == SOLE: del x_1[:1]
    else: x_1 = slice_(x_1, 1, None)

    Python moves the items that stay up to the front, all references in one go: as `list.pop(0)` does, a tenth
    of the time of a copy.
    """

    def __init__(self, e: Emitter, node: ast.Slice) -> None:
        super().__init__(node, node.object, [bound for bound in (node.first, node.last) if bound])
        self.from_start = node.first is not None
        self.by_int = e.kind(self.added[0]) == "int"

    @property
    def kind(self) -> str:
        return "list" if self.by_int else ""

    def in_place(self, x: Operand, atoms: Sequence[Operand]) -> str:
        return f"del {x}[:{atoms[0]}]" if self.from_start else f"del {x}[{atoms[0]}:]"

    def change(self, e: Emitter, target: Target, atoms: Sequence[Operand]) -> None:
        value = target.value
        is_int = "" if self.by_int else f" and {type_of(atoms[0])} is int"
        target.change(f"{type_of(value)} is list{is_int}", self.in_place(value, atoms))
        target.otherwise(self.computed(e, value, atoms))

    def computed(self, e: Emitter, value: Operand, atoms: Sequence[Operand]) -> str:
        first, last = (atoms[0], NIL) if self.from_start else (NIL, atoms[0])
        return e.mark(self.node, f"slice_({value}, {first}, {last})")


class Display(Form):
    """``x = [...x, y]`` and ``x = {...x, k: y}``. The former:

    if x_1.__class__ is not list: spread_list(x_1)
    if x_1.__class__ is list and getrefcount(x_1) == SOLE: x_1.append(y_2)
    else: x_1 = [*x_1, y_2]
    """

    def __init__(self, node: ast.List | ast.Dict, items: Sequence[ast.Node]) -> None:
        first = items[0]
        assert isinstance(first, ast.Spread)
        super().__init__(node, first.value, items[1:])
        self.spread = first
        self.display = "list" if isinstance(node, ast.List) else "dict"
        self.item = only_item([ast.List(0, 0, tuple(items[1:]))]) if self.display == "list" else None

    @property
    def kind(self) -> str:
        return self.display

    def in_place(self, x: Operand, atoms: Sequence[Operand]) -> str:
        if self.item:
            return f"{x}.append({atoms[0]})"
        return f"{x} += {atoms[0]}" if self.kind == "list" else f"{x}.update({atoms[0]})"

    def check(self, e: Emitter, value: Operand) -> None:
        refused = e.mark(self.spread, f"spread_{self.kind}({value})")
        e.line(f"if {type_of(value)} is not {self.kind}: {refused}")

    def operands(self, e: Emitter) -> list[Operand]:
        if self.item:
            return [e.atom(self.item)]
        write = sequence if self.kind == "list" else mapping
        return [e.fresh(write(e, self.added))]

    def change(self, e: Emitter, target: Target, atoms: Sequence[Operand]) -> None:
        x = target.value
        target.change(f"{type_of(x)} is {self.kind}", self.in_place(x, atoms))
        target.otherwise(self.computed(e, x, atoms))

    def computed(self, e: Emitter, value: Operand, atoms: Sequence[Operand]) -> str:
        if self.item:
            return f"[*{value}, {atoms[0]}]"
        return f"[*{value}, *{atoms[0]}]" if self.kind == "list" else f"{{**{value}, **{atoms[0]}}}"


def form_of(e: Emitter, node: ast.Node, reads: Reads) -> Form | None:
    """The form of ``node``, if it computes a new value from what ``reads`` finds in it, there alone."""
    form = _form(e, node)
    fits = form is not None and reads(form.before) and not any(map(reads, form.added))
    return form if fits else None


def _form(e: Emitter, node: ast.Node) -> Form | None:
    match node:
        case ast.Binary(op="+"):
            total = Sum(e, node)
            return total if total.fits(e) else None
        case ast.MethodCall(name="push", args=[item], optional=False) if not isinstance(item, ast.Spread):
            return Push(node, node.object, node.args)
        case ast.MethodCall(name="pop", args=[], optional=False):
            return Pop(node, node.object, ())
        case ast.Slice() if (node.first is None) != (node.last is None):
            return Cut(e, node)
        case ast.List(items=[ast.Spread(), *_]) if len(node.items) > 1:
            return Display(node, node.items)
        case ast.Dict(entries=[ast.Spread(), *_]) if len(node.entries) > 1:
            return Display(node, node.entries)
    return None


def may_update(variable: Variable) -> bool:
    """Return True if one holder of the value counts as one: a slot, or a module's table of variables."""
    return variable.shared or not variable.in_table


def reads(e: Emitter, node: ast.Node, variable: Variable) -> bool:
    while isinstance(node, ast.TryStar):  # which is its value
        node = node.value
    if not isinstance(node, ast.Name):
        return False
    ref = e.refs[id(node)]
    return ref.kind == "local" and ref.variable is variable


class Target:
    """The place that a form changes: the ``value`` before, in a slot, and the branches written so far."""

    def __init__(self, e: Emitter, value: Operand, sole: str) -> None:
        self.e = e
        self.value = value
        self.sole = sole
        """The test that nobody else holds the value."""
        self.word = "if"

    def change(self, test: str, text: str) -> None:
        """A branch that changes the value in place."""
        self.e.line(f"{self.word} {test} and {self.sole}: {text}")
        self.word = "elif"

    def grow(self, test: str, added: str) -> None:
        """A branch for a string that grows by ``added``; Python does it in place in a variable of its own.

        Without a ``test`` it is surely a string.
        """
        raise NotImplementedError

    def add_ints(self, node: ast.Binary, added: Operand) -> None:
        """A branch for ints, to which ``added`` is added."""
        e, value = self.e, self.value
        with e.suite(f"{self.word} {e.is_int(value)} and {e.is_int(added)}"):
            e.line(f"{value} = {value} + {added}")
            wrap_line(e, node, value, "")
            self.put(value)
        self.word = "elif"

    def put(self, value: Operand) -> None:
        """Assign the new value to the place, where ``value`` isn't it."""

    def otherwise(self, text: str) -> None:
        """The last branch, with the new value."""
        with self.e.suite("else") if self.word == "elif" else self.e.here():
            self.e.line(f"{self.value} = {text}")
            self.e.changed(self.value)
            self.put(self.value)


class NamedTarget(Target):
    """A variable."""

    def __init__(self, e: Emitter, x: Operand) -> None:
        super().__init__(e, x, f"getrefcount({x}) == SOLE")

    def grow(self, test: str, added: str) -> None:
        e, x = self.e, self.value
        if x.is_slot and not e.function.defers:
            e.line((f"{self.word} {test}: " if test else "") + f"{x} = {x} + {added}")
        else:
            # Neither a table nor a cell, which a `defer` makes of a variable, is a variable of its own.
            own = e.temp()
            with e.suite(f"{self.word} {test}") if test else e.here():
                e.line(f"{own} = {x}")
                e.line(f"{x} = None")
                e.line(f"{own} = {own} + {added}")
                e.line(f"{x} = {own}")
                e.line(f"{own} = None")
        self.word = "elif"


class PartTarget(Target):
    """A place below the variable ``x``, whose value was read into a temporary."""

    def __init__(
        self,
        e: Emitter,
        x: Operand,
        steps: Sequence[Step],
        value: Operand,
        put: Callable[[list[Step], Operand], None],
    ) -> None:
        self.holder = f"sole_holder({x}, {path_text(steps)}, {value})"
        super().__init__(e, value, self.holder)
        self.key = key_text(steps[-1])
        self._put = put
        self._steps = list(steps)

    def put(self, value: Operand) -> None:
        self._put(self._steps, value)

    def grow(self, test: str, added: str) -> None:
        e, own, holder = self.e, self.value, self.e.temp()
        if not self.key:
            return
        with e.suite(f"{self.word} {test} and ({holder} := {self.holder})"):
            e.line(f"{holder}[{self.key}] = None")
            e.line(f"{own} = {own} + {added}")
            e.line(f"{holder}[{self.key}] = {own}")
            e.line(f"{holder} = None")
        self.word = "elif"


def update_name(e: Emitter, variable: Variable, value: ast.Node) -> bool:
    """Write ``x = x + y …`` and the like as an update, where `x` may hold a list, dict or string.

    The variable is read first. If what is added may assign to it, its value is changed only when that
    didn't happen:

        t1 = x_1
        t2 = …
        if x_1 is t1:
         t1 = None
         <change x_1 by t2>
        else: x_1 = <t1 and t2 put together>
    """
    if not may_update(variable):
        return False
    form = form_of(e, value, lambda node: reads(e, node, variable))
    if form is None:
        return False
    x = reading(variable)
    e.assigned(x)
    before = e.leftovers.count()
    alone = e.alone.get(variable)
    if alone and alone.kind == form.kind:
        form.check(e, x)
        atoms = form.operands(e)
        with e.suite(f"if {alone.flag}"):
            e.line(form.in_place(x, atoms))
        with e.suite("else"):
            form.change(e, NamedTarget(e, x), atoms)
            e.line(alone.asking(x))
        return True
    e.forget(variable)
    if not any(e.unit.may_change(variable, node) for node in form.added):
        form.check(e, x)
        atoms = form.operands(e)
        if variable.in_table:
            let_go(e, variable, before, atoms)
        form.change(e, NamedTarget(e, x), atoms)
        return True
    read = e.fresh(x)
    form.check(e, read)
    atoms = form.operands(e)
    if variable.in_table:
        let_go(e, variable, before, [read, *atoms])
    with e.suite(f"if {x} is {read}"):
        e.line(f"{read} = None")
        form.change(e, NamedTarget(e, x), atoms)
    e.line(f"else: {x} = {form.computed(e, read, atoms)}")
    e.changed(x)
    return True


def update_part(
    e: Emitter,
    node: ast.Assign,
    variable: Variable,
    indexes: Sequence[ast.Node],
    steps: Callable[[Sequence[Operand]], list[Step]],
    put: Callable[[list[Step], Operand], None],
) -> bool:
    """Write ``x.k = x.k + y`` and the like: the same below a variable.

        t1 = x_1['k']
        t2 = …
        if t1.__class__ is list and t2.__class__ is list and sole_holder(x_1, (('prop', 'k'),), t1): t1 += t2
        else:
         t1 = <t1 and t2 put together>
         x_1['k'] = t1
        t1 = None

    Whatever was evaluated in between, `sole_holder` looks whether `t1` is still there. ``indexes`` are those
    of the place, ``steps`` make its path of their values, and ``put`` assigns it.
    """
    form = form_of(e, node.value, lambda part: same_place(e, part, node.target))
    # `x.k.push(x)` would put a dict into itself.
    if form is None or any(reads(e, part, variable) for part in form.added):
        return False
    before = e.leftovers.count()
    value = e.slot(form.before)
    form.check(e, value)
    atoms = form.operands(e)
    keys = e.atoms(indexes)
    let_go(e, variable, before, [value, *atoms, *keys])
    write_part(e, variable, form, steps(keys), value, atoms, put)
    return True


def add_to_part(
    e: Emitter,
    node: ast.Assign,
    variable: Variable,
    path: list[Step],
    value: Operand,
    added: Operand,
    put: Callable[[list[Step], Operand], None],
) -> bool:
    """The same of ``x.k += y``; ``value`` is what was at the place, ``added`` what is added."""
    form = Sum(e, ast.Binary(node.start, node.end, "+", node.target, node.value))
    # What is added was evaluated as a whole.
    form.item = None
    if not form.fits(e) or reads(e, node.value, variable):
        return False
    write_part(e, variable, form, path, value, [added], put)
    return True


def write_part(
    e: Emitter,
    variable: Variable,
    form: Form,
    path: list[Step],
    value: Operand,
    atoms: Sequence[Operand],
    put: Callable[[list[Step], Operand], None],
) -> None:
    form.change(e, PartTarget(e, reading(variable), path, value, put), atoms)
    e.line(f"{value} = None")


def let_go(e: Emitter, variable: Variable, before: int, used: Sequence[Operand]) -> None:
    """Let go of what was read of ``variable``'s value, by this statement or others, except what is ``used``.

    ``before``: how many temporaries there were before this statement.
    """
    passed = [slot for slot in e.leftovers.take(before) if slot not in used]
    if passed:
        e.line(release(passed))
    line = Line(e.indent, "", e.at)
    e.lines.append(line)
    e.leftovers.release_at(line, variable.python)


def same_place(e: Emitter, a: ast.Node, b: ast.Node) -> bool:
    """Return True if both read one place: the same properties and elements of one variable.

    A heuristic, which need not look into the indexes: `sole_holder` sees when they led elsewhere.
    """
    while True:
        match a, b:
            case ast.Member(optional=False), ast.Member() if a.name == b.name:
                a, b = a.object, b.object
            case ast.Index(optional=False), ast.Index() if same_index(a.index, b.index):
                a, b = a.object, b.object
            case ast.Name(), ast.Name():
                return a.name == b.name
            case _:
                return False


def same_index(a: ast.Node, b: ast.Node) -> bool:
    if isinstance(a, ast.Name):
        return isinstance(b, ast.Name) and a.name == b.name
    if isinstance(a, ast.Int | ast.Str):
        return isinstance(b, ast.Int | ast.Str) and a.value == b.value
    return False


def key_text(step: Step) -> str:
    """The key of a dict or struct; nothing where an index may be a list's."""
    kind, key = step
    return str(key) if kind == "prop" or str(key)[:1] in "'\"" else ""


def path_text(steps: Sequence[Step]) -> str:
    return f"({''.join(f'({kind!r}, {key}), ' for kind, key in steps)})"


def store_one(e: Emitter, node: ast.Assign, variable: Variable, step: Step, value: Operand) -> None:
    """``x.k = v`` and ``x[i] = v``. The latter:

    if x_1.__class__ is list and i_2.__class__ is int and getrefcount(x_1) == SOLE and 0 <= i_2 < len(x_1):
     x_1[i_2] = v_3
    elif x_1.__class__ is dict and getrefcount(x_1) == SOLE: x_1[…] = v_3
    else: x_1 = set_index(x_1, i_2, v_3)
    """
    x, key = reading(variable), step[1]
    setter = "set_prop" if step[0] == "prop" else "set_index"
    copied = f"{x} = " + e.mark(node, f"{setter}({x}, {key}, {value})")
    alone = e.alone.get(variable)
    if alone is None or alone.kind != stored_kind(e, node.target):
        e.forget(variable)
        store_asking(e, node.target, x, key, value, copied)
        return
    with e.suite(f"if {alone.flag}"):
        put = f"{x}[{key}] = {value}"
        if alone.kind == "list":
            e.line(f"try: {put}")
            e.line(f"except IndexError: {copied}")
        else:
            e.line(put)
    with e.suite("else"):
        store_asking(e, node.target, x, key, value, copied)
        e.line(alone.asking(x))


def store_asking(e: Emitter, target: ast.Node, x: Operand, key: Text, value: Operand, copied: str) -> None:
    kind, word, sole = stored_kind(e, target), "if", f"getrefcount({x}) == SOLE"
    if kind not in ("dict", "fields"):
        is_int = "" if kind == "list" else f"{type_of(key)} is int and "
        e.line(f"if {type_of(x)} is list and {is_int}{sole} and 0 <= {key} < len({x}):")
        e.line(f" {x}[{key}] = {value}")
        word = "elif"
    if kind == "list":
        text: Text = f"display({key})"
    else:
        text = key if kind else f"{key} if {type_of(key)} is str else display({key})"
    test = TYPE_TESTS["fields" if kind == "fields" else "dict"].format(x)
    e.line(f"{word} {test} and {sole}: {x}[{text}] = {value}")
    e.line(f"else: {copied}")


def stored_kind(e: Emitter, target: ast.Node) -> str:
    """Return what ``x.k = v`` or ``x[i] = v`` changes, if that is sure: "fields", "list" or "dict"."""
    if isinstance(target, ast.Index):
        return {"int": "list", "str": "dict"}.get(e.kind(target.index), "")
    return "fields"


# Variables that stay the only holder of their value throughout a loop.
#
# To ask Python how many hold a value takes longer than most updates of it. In a loop that does nothing with a
# variable but update it and read parts of it, nobody can become another holder: there it is asked once.
#
#     for i in 0 to n exclusive { xs = xs + [i] }         sole1 = False
#                                                         for i_2 in range(0, n_1):
#                                                          if sole1: xs_3.append(i_2)
#                                                          else:
#                                                           <the update that asks>
#                                                           sole1 = xs_3.__class__ is list and …


#: Methods of lists that return a part or a number, never the list or what holds it.
_READING = frozenset(["contains", "count", "empty", "first", "index_of", "join", "last"])
_COMPARING = frozenset(["==", "!=", "<", ">", "<=", ">=", "in", "not in"])


def updated_alone(e: Emitter, loop: ast.For | ast.While, assigned: Assigned) -> dict[Variable, str]:
    """The variables of which ``loop`` does nothing but update the value, and read parts of it.

    Each with the type of value that its updates there are for.
    """
    if not any(may_be_alone(e, variable) and update_of(e, node, variable)[0] for node, variable in assigned):
        return {}
    used: set[Variable] = set()
    # Of a struct, `first` and the like may be methods of an `impl`, which get hold of it.
    receiving: set[Variable] = set()
    updated: dict[Variable, set[str]] = {}
    # Each node with whether it is a statement: nothing that was read before it is used after it.
    waiting: list[tuple[ast.Node, bool]] = [(child, child is loop.body) for child in loop.children()]
    while waiting:
        node, is_statement = waiting.pop()
        if variable := named(e, node):
            used.add(variable)
        elif function := e.unit.resolution.functions.get(id(node)):
            used.update(function.captures)
        elif isinstance(node, ast.Assign):
            root: ast.Node = node.target
            while isinstance(root, ast.Member | ast.Index):
                root = root.object
            variable = named(e, root)
            kind, parts = update_of(e, node, variable) if variable else ("", [node.target, node.value])
            if variable and not is_statement:
                used.add(variable)
            elif variable and kind:
                updated.setdefault(variable, set()).add(kind)
            waiting += [(part, False) for part in parts]
        else:
            if isinstance(node, ast.MethodCall) and (variable := named(e, node.object)):
                receiving.add(variable)
            children = [child for child in node.children() if not reads_part(e, node, child)]
            waiting += [(child, is_statement and leads_to(node, child)) for child in children]
    return {
        variable: kinds.pop()
        for variable, kinds in updated.items()
        if len(kinds) == 1 and not (variable in used or variable in e.alone) and may_be_alone(e, variable)
        if not (kinds == {"fields"} and variable in receiving)
    }


def sums(e: Emitter, assigned: Assigned) -> list[Variable]:
    """The variables that a loop only adds to, and the like, of which it isn't known what they hold."""
    found: dict[Variable, bool] = {}
    for node, variable in assigned:
        adds = (
            isinstance(node.target, ast.Name) and e.kind(node.target) == "any" and is_sum(e, node, variable)
        )
        found[variable] = adds and found.get(variable, True)
    return [v for v, adds in found.items() if adds and v not in e.alone and may_be_alone(e, v)]


def totals(e: Emitter, nodes: Sequence[ast.Node], assigned: Assigned) -> list[Variable]:
    """The ints that a loop of these ``nodes`` does nothing with but add to them, or take away.

    They stay small without being reduced to 64 bits at each turn, and nobody sees them before its end: not a
    handler or a deferred block either.
    """
    added: dict[Variable, int] = {}
    for node, variable in [] if e.protections else assigned:
        if e.kind_of(variable) == "int" or variable.python in e.int_flags:
            read = node.op in ("+=", "-=") or (node.op == "=" and is_added_to(e, node.value, variable))
            if read and isinstance(node.target, ast.Name) and not e.unit.assigns_locals(node.value):
                added[variable] = added.get(variable, 0) + 1 + (node.op == "=")
    if not added:
        return []
    uses = dict.fromkeys(added, 0)
    for each in nodes:
        if (used := named(e, each)) in added:
            uses[used] += 1
        elif function := e.unit.resolution.functions.get(id(each)):
            uses.update(dict.fromkeys(function.captures, len(nodes)))
    return [v for v, count in added.items() if count == uses[v] and may_be_alone(e, v)]


def is_added_to(e: Emitter, node: ast.Node, variable: Variable) -> bool:
    """Return True for `x`, ``x + y``, ``y + x`` and ``x - y``."""
    while isinstance(node, ast.Binary) and node.op in "+-":
        right = node.op == "+" and is_added_to(e, node.right, variable)
        if right:
            return True
        node = node.left
    return reads(e, node, variable)


def is_sum(e: Emitter, node: ast.Assign, variable: Variable) -> bool:
    """Return True for ``x += v`` and ``x = x * y + v``, where all may be ints."""
    waiting, found = [node.value], node.op != "="
    if not (node.op[:-1] in WRAPPING or (node.op == "=" and isinstance(node.value, ast.Binary))):
        return False
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.Binary) and part.op in WRAPPING:
            waiting += [part.left, part.right]
        elif e.kind(part) not in ("any", "int"):
            return False
        else:
            found = found or reads(e, part, variable)
    return found


def may_be_alone(e: Emitter, variable: Variable) -> bool:
    """Return True if nothing but the function being written holds the variable itself."""
    own = variable.python in e.declared and not e.function.defers
    return own and not (variable.in_table or variable.late)


def named(e: Emitter, node: ast.Node) -> Variable | None:
    """The variable that ``node`` is the name of."""
    ref = e.refs.get(id(node)) if isinstance(node, ast.Name) else None
    return ref.variable if ref and ref.kind == "local" else None


def reads_part(e: Emitter, node: ast.Node, child: ast.Node) -> bool:
    """Return True if ``node`` takes no more of its child, a variable, than a part or a number."""
    if not named(e, child):
        return False
    match node:
        case ast.Index() | ast.Member():
            return child is node.object
        case ast.Call(name="len" | "type_of", args=(_,)):
            return e.refs[id(node)].kind == "builtin"
        case ast.MethodCall(name=name):
            return child is node.object and name in _READING
        case ast.Binary(op=op):
            return op in _COMPARING
    return False


def leads_to(statement: ast.Node, child: ast.Node) -> bool:
    """Return True if ``child`` is a statement, too."""
    if isinstance(statement, ast.If) and child is statement.otherwise:
        return True
    return isinstance(statement, ast.Block) or isinstance(child, ast.Block | ast.Arm | ast.Catch)


def update_of(e: Emitter, node: ast.Assign, variable: Variable) -> tuple[str, Sequence[ast.Node]]:
    """The type of value that ``node`` updates in place, "" if that isn't sure, and what else it evaluates."""
    target = node.target
    if not isinstance(target, ast.Name):
        of_variable = node.op == "=" and isinstance(target.object, ast.Name)  # type: ignore[attr-defined]
        return stored_kind(e, target) if of_variable else "", [*indexes_of(target), node.value]
    value = node.value
    if node.op == "+=":
        value = ast.Binary(node.start, node.end, "+", target, value)
    form = form_of(e, value, lambda part: reads(e, part, variable)) if node.op in ("=", "+=") else None
    if form and form.kind and not any(e.unit.may_change(variable, part) for part in form.added):
        return form.kind, form.added
    return "", [value]


def indexes_of(target: ast.Node) -> list[ast.Node]:
    """The index expressions of an assignment's target, in order."""
    found: list[ast.Node] = []
    while isinstance(target, ast.Member | ast.Index):
        if isinstance(target, ast.Index):
            found.insert(0, target.index)
        target = target.object
    return found
