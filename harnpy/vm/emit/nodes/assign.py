"""`let`, `var`, patterns and assignment. Spec: 02 §8, §13.

Values never change for the program: an assignment binds a variable to an updated copy, if it is not done in
place (`updates`).
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.emit.function import DISCARD
from harnpy.vm.emit.nodes.ring import SLOW
from harnpy.vm.emit.nodes.updates import (
    add_to_part,
    let_go,
    may_update,
    path_text,
    store_one,
    update_name,
    update_part,
)
from harnpy.vm.emit.operand import reading
from harnpy.vm.resolve.tree import walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harnpy.vm.emit.function import Emitter
    from harnpy.vm.emit.nodes.updates import Step
    from harnpy.vm.emit.operand import Operand, Text
    from harnpy.vm.resolve.scopes import Variable


def let(e: Emitter, node: ast.Let) -> None:
    """``let x = v`` puts the value straight into the slot: ``x_1 = v``, or each branch of an `if` does."""
    target = node.target
    if not isinstance(target, ast.NamePattern):
        bind(e, target, source(e, target, node.value))
        return
    if target.name == "_":
        e.into(node.value, DISCARD)
        return
    if (id(target), target.name) in e.unit.resolution.redeclared:
        e.into(node.value, DISCARD)
        e.line(f"redeclared({target.name!r})")
        return
    variable = e.declared_by(target, target.name)
    if variable.in_table:
        e.assign_new(variable, e.expr(node.value))
    else:
        e.declare_slot(variable.python)
        e.into(node.value, reading(variable))
        e.show_in_box(variable)


def source(e: Emitter, pattern: ast.Node, node: ast.Node) -> Operand:
    """A slot with the value that a pattern takes apart, which its defaults can't assign to."""
    value = e.slot(node)
    assigning = any(e.unit.assigns_locals(part) for part in pattern.children())
    return e.fresh(value) if assigning and not value.is_fixed else value


def bind(e: Emitter, pattern: ast.Node, value: Operand) -> None:
    """Take ``value``, a slot, apart into the variables of a pattern. ``let {a, n = 1, ...rest} = v``:

    destructure_dict(v_1)
    a_2 = v_1.get('a')
    t1 = v_1.get('n')
    if t1 is None:
     t1 = 1
    n_3 = t1
    rest_4 = {k: v for k, v in v_1.items() if k not in ('a', 'n')}
    """
    match pattern:
        case ast.DictPattern():
            e.line(f"destructure_dict({value})")
            taken = tuple(entry.key for entry in pattern.entries)
            for entry in pattern.entries:
                entry_value(e, pattern, entry, f"{value}.get({entry.key!r})")
            rest = f"{{k: v for k, v in {value}.items() if k not in {taken!r}}}"
        case ast.ListPattern():
            e.line(f"destructure_list({value})")
            for i, entry in enumerate(pattern.entries):
                entry_value(e, pattern, entry, f"({value}[{i}] if len({value}) > {i} else None)")
            rest = f"{value}[{len(pattern.entries)}:]"
        case ast.PairPattern():
            for side, name in (("first", pattern.first), ("second", pattern.second)):
                text = f"get_prop({value}, {side!r})"
                slot = declared_name(e, pattern, name)
                e.assign_new(slot, text) if slot else e.line(text)
            return
        case _:
            return
    if pattern.rest:
        slot = declared_name(e, pattern, pattern.rest)
        if slot:
            e.assign_new(slot, rest)


def entry_value(e: Emitter, pattern: ast.Node, entry: ast.PatternEntry, text: str) -> None:
    """One entry; the default is for nil too, and sees the names before it."""
    value: Text = text
    if entry.default:
        value = slot = e.fresh(text)
        with e.suite(f"if {slot} is None"):
            e.into(entry.default, slot)
    elif entry.name == "_":
        value = e.fresh(text)
    variable = declared_name(e, pattern, entry.name)
    if variable:
        e.assign_new(variable, value)


def declared_name(e: Emitter, pattern: ast.Node, name: str) -> Variable | None:
    e.refuses(pattern, name)
    return None if name == "_" else e.declared_by(pattern, name)


# --- assignment -------------------------------------------------------------------------------------


def assign(e: Emitter, node: ast.Assign) -> None:
    """``x = v``, ``x += v``, ``x.a[i] = v``; what may not be assigned raises after the value is evaluated."""
    root = node.target
    while isinstance(root, ast.Member | ast.Index):
        root = root.object
    if not isinstance(root, ast.Name):
        # Nothing is assigned, but both are evaluated.
        for text in e.operands([node.value, node.target]):
            e.store(DISCARD, text)
        return
    ref = e.refs[id(root)]
    variable = ref.variable if ref.kind == "local" else None
    if variable is None or variable.in_box:
        e.into(node.value, DISCARD)
        e.line(f"undefined_target({root.name!r}, {ref.visible!r})")
    elif not variable.mutable:
        e.into(node.value, DISCARD)
        e.line(f"immutable({root.name!r})")
    elif root is not node.target:
        store(e, node, variable)
    elif node.op == "=":
        set_name(e, node, variable)
    else:
        compound = ast.Binary(node.start, node.end, node.op[:-1], node.target, node.value)
        if not update_name(e, variable, compound):
            e.assign(reading(variable), e.expr(compound, reading(variable)))
        e.show_in_box(variable)


def set_name(e: Emitter, node: ast.Assign, variable: Variable) -> None:
    if not update_name(e, variable, node.value):
        # Not straight into the slot: a `finally` in the value still sees the old one, and may throw.
        if variable.in_table or any(isinstance(part, ast.Try) and part.finally_ for part in walk(node.value)):
            e.assign(reading(variable), e.expr(node.value))
        else:
            e.into(node.value, reading(variable))
    e.show_in_box(variable)


def store(e: Emitter, node: ast.Assign, variable: Variable) -> None:
    """``x.a[i].b = v``: value first, then the indexes, then the root is bound to the updated copy.

    x_1 = store_path(x_1, (('prop', 'a'), ('index', i_2), ('prop', 'b'), ), v_3)
    """
    indexes = indexes_of(node.target)
    x = reading(variable)
    e.assigned(x)
    updates = may_update(variable)

    def steps(keys: Sequence[Operand]) -> list[Step]:
        return path_to(node.target, iter(keys))

    def put(path: list[Step], value: Operand) -> None:
        if len(path) == 1 and updates and value != x:
            store_one(e, node, x, path[0], value)
        else:
            e.line(f"{x} = " + e.mark(node, f"store_path({x}, {path_text(path)}, {value})"))

    if node.op == "=" and updates and update_part(e, node, variable, indexes, steps, put):
        e.show_in_box(variable)
        return
    before = e.leftovers.count()
    value, *keys = e.atoms([node.value, *indexes])
    path = steps(keys)
    if len(path) > 1 or node.op == "+=":
        let_go(e, variable, before, [value, *keys])
    if node.op != "=":
        old = e.temp()
        e.line(f"{old} = " + e.mark(node, f"read_path({x}, {path_text(path)})"))
        if node.op == "+=" and updates and add_to_part(e, node, variable, path, old, value, put):
            e.show_in_box(variable)
            return
        text = e.mark(node, f"{SLOW[node.op[:-1]]}({old}, {value})")
        value = e.temp()
        e.line(f"{value} = {text}")
    put(path, value)
    e.show_in_box(variable)


def indexes_of(target: ast.Node) -> list[ast.Node]:
    """The index expressions of an assignment's target, in order."""
    found: list[ast.Node] = []
    while isinstance(target, ast.Member | ast.Index):
        if isinstance(target, ast.Index):
            found.insert(0, target.index)
        target = target.object
    return found


def path_to(target: ast.Node, keys: Iterator[Text]) -> list[Step]:
    """``x.a[i]`` as (("prop", "'a'"), ("index", i)), the indexes taken from ``keys``."""
    if isinstance(target, ast.Member):
        return [*path_to(target.object, keys), ("prop", repr(target.name))]
    if isinstance(target, ast.Index):
        return [*path_to(target.object, keys), ("index", next(keys))]
    return []
