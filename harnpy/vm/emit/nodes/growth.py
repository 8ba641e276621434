"""Values that an update makes from the one before: ``x + y``, ``x.push(y)``, ``[...x, y]``, ``x[1:]``.

A form knows what reads the value before, what it takes besides, how a list or dict that nobody else holds is
changed into the new value, and how the new value is computed where that may not be. What is updated, a
variable or a part of one, is the business of `harnpy.vm.emit.nodes.updates`. Spec: 02 §8.
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.emit.nodes.literals import mapping, sequence
from harnpy.vm.emit.nodes.ring import all_simple
from harnpy.vm.emit.operand import NIL
from harnpy.vm.resolve.kinds import RING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harnpy.vm.emit.function import Emitter
    from harnpy.vm.emit.nodes.updates import Target
    from harnpy.vm.emit.operand import Operand, Text

    #: Whether a node reads what is updated.
    Reads = Callable[[ast.Node], bool]


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

        if type(x_1) is dict and type(y_2) is dict and getrefcount(x_1) == SOLE: x_1.update(y_2)
        elif type(x_1) is list and type(y_2) is list and getrefcount(x_1) == SOLE: x_1 += y_2
        elif type(x_1) is str and type(y_2) is str: x_1 = x_1 + y_2
        elif type(x_1) is int and type(y_2) is int: …
        else: x_1 = add(x_1, y_2)
    """

    def __init__(self, e: Emitter, node: ast.Binary) -> None:
        super().__init__(node, *chain(node))
        self.chain = node
        self.kinds = {e.kind(each) for each in (self.before, *self.added)}
        self.grows = [kind for kind in ("dict", "list", "str") if self.kinds <= {"any", kind}]

    def fits(self, e: Emitter) -> bool:
        """Whether it may be more than arithmetic, and its strings can be put together first."""
        if any(isinstance(node, ast.Binary) and node.op in RING for node in self.added):
            return False
        if len(self.added) > 1:
            return "str" in self.grows and all(all_simple(e, node) for node in self.added[1:])
        return bool(self.grows)

    def change(self, e: Emitter, target: Target, atoms: Sequence[Operand]) -> None:
        x = target.value
        for kind in self.grows if len(atoms) == 1 else ["str"]:
            unsure = [a for a, node in zip(atoms, self.added, strict=True) if e.kind(node) != kind]
            test = " and ".join(f"type({a}) is {kind}" for a in (x, *unsure))
            if kind == "str":
                target.grow(test, str(atoms[0]) if len(atoms) == 1 else f"({' + '.join(map(str, atoms))})")
            else:
                target.change(test, f"{x}.update({atoms[0]})" if kind == "dict" else f"{x} += {atoms[0]}")
        numbers = self.kinds == {"any"} and len(atoms) == 1
        target.otherwise(self.computed(e, x, atoms), (self.chain, atoms[0]) if numbers else None)

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
