"""``x = x + y``, ``x.k = x.k.push(y)``, ``x[i] = v``: updates that may change a value in place. Spec: 02 §8.

Values never change for the program; a list or dict that nothing but the updated place holds is changed, not
copied (`SOLE`: what `getrefcount` returns then, see `harnpy.vm.values.operators`). The place is a variable
or, below one, a property or an element.
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.emit import NIL, Operand, reading
from harnpy.vm.emit.emitter import release
from harnpy.vm.emit.expressions import all_simple, mapping, sequence, wrap_line
from harnpy.vm.emit.source_map import Line
from harnpy.vm.resolve.types import WRAPPING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harnpy.vm.emit import Text
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

        if type(x_1) is int and type(y_2) is int: …
        elif type(x_1) is dict and type(y_2) is dict and getrefcount(x_1) == SOLE: x_1.update(y_2)
        elif type(x_1) is list and type(y_2) is list and getrefcount(x_1) == SOLE: x_1 += y_2
        elif type(x_1) is str and type(y_2) is str: x_1 = x_1 + y_2
        else: x_1 = add(x_1, y_2)
    """

    def __init__(self, e: Emitter, node: ast.Binary) -> None:
        super().__init__(node, *chain(node))
        self.chain = node
        self.kinds = {e.kind(each) for each in (self.before, *self.added)}
        self.grows = [kind for kind in ("dict", "list", "str") if self.kinds <= {"any", kind}]

    def fits(self, e: Emitter) -> bool:
        """Return True if it may be more than arithmetic, and its strings can be put together first."""
        if any(isinstance(node, ast.Binary) and node.op in WRAPPING for node in self.added):
            return False
        if len(self.added) > 1:
            return "str" in self.grows and all(all_simple(e, node) for node in self.added[1:])
        return bool(self.grows)

    def change(self, e: Emitter, target: Target, atoms: Sequence[Operand]) -> None:
        x = target.value
        if self.kinds == {"any"} and len(atoms) == 1:
            target.add_ints(self.chain, atoms[0])
        for kind in self.grows if len(atoms) == 1 else ["str"]:
            unsure = [a for a, node in zip(atoms, self.added, strict=True) if e.kind(node) != kind]
            test = " and ".join(f"type({a}) is {kind}" for a in (x, *unsure))
            if kind == "str":
                target.grow(test, str(atoms[0]) if len(atoms) == 1 else f"({' + '.join(map(str, atoms))})")
            else:
                target.change(test, f"{x}.update({atoms[0]})" if kind == "dict" else f"{x} += {atoms[0]}")
        target.otherwise(self.computed(e, x, atoms))

    def computed(self, e: Emitter, value: Operand, atoms: Sequence[Operand]) -> str:
        return added_one_by_one(e, self.chain, value, atoms)


def chain(value: ast.Binary) -> tuple[ast.Node, list[ast.Node]]:
    """``x + y + z`` as `x` and what is added to it."""
    added: list[ast.Node] = []
    first: ast.Node = value
    while isinstance(first, ast.Binary) and first.op == "+":
        added.insert(0, first.right)
        first = first.left
    return first, added


def added_one_by_one(e: Emitter, value: ast.Binary, x: Operand, atoms: Sequence[Operand]) -> str:
    deeper = isinstance(value.left, ast.Binary) and len(atoms) > 1
    left: Text = added_one_by_one(e, value.left, x, atoms[:-1]) if deeper else x  # type: ignore[arg-type]
    return e.mark(value, f"add({left}, {atoms[-1]})")


class Push(Form):
    """``x = x.push(y)``:

    if type(x_1) is list and getrefcount(x_1) == SOLE: x_1.append(y_2)
    else: x_1 = m_push_1_[type(x_1)](vm, x_1, y_2)
    """

    def change(self, e: Emitter, target: Target, atoms: Sequence[Operand]) -> None:
        target.change(f"type({target.value}) is list", f"{target.value}.append({atoms[0]})")
        target.otherwise(self.computed(e, target.value, atoms))

    def computed(self, e: Emitter, value: Operand, atoms: Sequence[Operand]) -> str:
        table = e.unit.method_table("push", 1)
        return e.mark(self.node, f"{table}[type({value})](vm, {value}, {atoms[0]})")


class Pop(Form):
    """``x = x.pop()``, which is a list without its last item."""

    def change(self, e: Emitter, target: Target, atoms: Sequence[Operand]) -> None:
        target.change(f"type({target.value}) is list", f"del {target.value}[-1:]")
        target.otherwise(self.computed(e, target.value, atoms))

    def computed(self, e: Emitter, value: Operand, atoms: Sequence[Operand]) -> str:
        table = e.unit.method_table("pop", 0)
        return e.mark(self.node, f"{table}[type({value})](vm, {value})")


class Cut(Form):
    """``x = x[1:]`` and ``x = x[:-1]``: what is left stays, the rest goes.

    if type(x_1) is list and getrefcount(x_1) == SOLE: del x_1[:1]
    else: x_1 = slice_(x_1, 1, None)

    Python moves the items that stay up to the front, all references in one go: as `list.pop(0)` does, a tenth
    of the time of a copy.
    """

    def __init__(self, node: ast.Slice) -> None:
        super().__init__(node, node.object, [bound for bound in (node.first, node.last) if bound])
        self.from_start = node.first is not None

    def change(self, e: Emitter, target: Target, atoms: Sequence[Operand]) -> None:
        bound, value = atoms[0], target.value
        is_int = "" if e.kind(self.added[0]) == "int" else f" and type({bound}) is int"
        gone = f"[:{bound}]" if self.from_start else f"[{bound}:]"
        target.change(f"type({value}) is list{is_int}", f"del {value}{gone}")
        target.otherwise(self.computed(e, value, atoms))

    def computed(self, e: Emitter, value: Operand, atoms: Sequence[Operand]) -> str:
        first, last = (atoms[0], NIL) if self.from_start else (NIL, atoms[0])
        return e.mark(self.node, f"slice_({value}, {first}, {last})")


class Display(Form):
    """``x = [...x, y]`` and ``x = {...x, k: y}``. The former:

    if type(x_1) is not list: spread_list(x_1)
    t1 = [y_2]
    if type(x_1) is list and getrefcount(x_1) == SOLE: x_1 += t1
    else: x_1 = [*x_1, *t1]
    """

    def __init__(self, node: ast.List | ast.Dict, items: Sequence[ast.Node]) -> None:
        first = items[0]
        assert isinstance(first, ast.Spread)
        super().__init__(node, first.value, items[1:])
        self.spread = first
        self.kind = "list" if isinstance(node, ast.List) else "dict"

    def check(self, e: Emitter, value: Operand) -> None:
        refused = e.mark(self.spread, f"spread_{self.kind}({value})")
        e.line(f"if type({value}) is not {self.kind}: {refused}")

    def operands(self, e: Emitter) -> list[Operand]:
        write = sequence if self.kind == "list" else mapping
        return [e.fresh(write(e, self.added))]

    def change(self, e: Emitter, target: Target, atoms: Sequence[Operand]) -> None:
        x, added = target.value, atoms[0]
        grow = f"{x} += {added}" if self.kind == "list" else f"{x}.update({added})"
        target.change(f"type({x}) is {self.kind}", grow)
        target.otherwise(self.computed(e, x, atoms))

    def computed(self, e: Emitter, value: Operand, atoms: Sequence[Operand]) -> str:
        added = atoms[0]
        return f"[*{value}, *{added}]" if self.kind == "list" else f"{{**{value}, **{added}}}"


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
            return Cut(node)
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
        """A branch for a string that grows by ``added``; Python does it in place in a variable of its own."""
        raise NotImplementedError

    def add_ints(self, node: ast.Binary, added: Operand) -> None:
        """A branch for ints, to which ``added`` is added."""
        e, value = self.e, self.value
        with e.suite(f"{self.word} type({value}) is int and type({added}) is int"):
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
            self.put(self.value)


class NamedTarget(Target):
    """A variable."""

    def __init__(self, e: Emitter, x: Operand) -> None:
        super().__init__(e, x, f"getrefcount({x}) == SOLE")

    def grow(self, test: str, added: str) -> None:
        e, x = self.e, self.value
        if x.is_slot and not e.function.defers:
            e.line(f"{self.word} {test}: {x} = {x} + {added}")
        else:
            # Neither a table nor a cell, which a `defer` makes of a variable, is a variable of its own.
            own = e.temp()
            with e.suite(f"{self.word} {test}"):
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
        if type(t1) is list and type(t2) is list and sole_holder(x_1, (('prop', 'k'),), t1): t1 += t2
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


def store_one(e: Emitter, node: ast.Assign, x: Operand, step: Step, value: Operand) -> None:
    """``x.k = v`` and ``x[i] = v``. The latter:

    if type(x_1) is list and type(i_2) is int and getrefcount(x_1) == SOLE and 0 <= i_2 < len(x_1):
     x_1[i_2] = v_3
    elif type(x_1) is dict and getrefcount(x_1) == SOLE: x_1[i_2 if type(i_2) is str else display(i_2)] = v_3
    else: x_1 = set_index(x_1, i_2, v_3)
    """
    kind, key = step
    sole = f"getrefcount({x}) == SOLE"
    word = "if"
    if isinstance(node.target, ast.Index) and not isinstance(node.target.index, ast.Str):
        e.line(f"if type({x}) is list and type({key}) is int and {sole} and 0 <= {key} < len({x}):")
        e.line(f" {x}[{key}] = {value}")
        word = "elif"
    key = key if word == "if" else f"{key} if type({key}) is str else display({key})"
    e.line(f"{word} type({x}) is dict and {sole}: {x}[{key}] = {value}")
    setter = "set_prop" if kind == "prop" else "set_index"
    e.line(f"else: {x} = " + e.mark(node, f"{setter}({x}, {step[1]}, {value})"))
