"""`let`, `var`, assignment and `match`: patterns, and where values go. Spec: 02 §8, §12, §13."""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.syntax.ast import walk
from harnpy.syntax.names import enum_variant, is_computed
from harnpy.vm.emit import constant, reading, type_of
from harnpy.vm.emit.bounds import bounds
from harnpy.vm.emit.emitter import DISCARD
from harnpy.vm.emit.expressions import SLOW, condition
from harnpy.vm.emit.updates import (
    add_to_part,
    indexes_of,
    let_go,
    may_update,
    path_text,
    store_one,
    update_name,
    update_part,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harnpy.vm.emit import Operand, Text
    from harnpy.vm.emit.emitter import Destination, Emitter
    from harnpy.vm.emit.updates import Step
    from harnpy.vm.resolve import Variable

# `let`, `var`, patterns and assignment. Spec: 02 §8, §13.
#
# Values never change for the program: an assignment binds a variable to an updated copy, if it is not done in
# place (`updates`).


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
        learn(e, variable, node.value)


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
        # Kinds are kept by the identity of nodes.
        e.unit.resolution.keep.append(compound)
        if not update_name(e, variable, compound):
            e.forget(variable)
            e.assign(reading(variable), e.expr(compound, reading(variable)))
            learn(e, variable, compound)
        e.show_in_box(variable)


def set_name(e: Emitter, node: ast.Assign, variable: Variable) -> None:
    if not update_name(e, variable, node.value):
        e.forget(variable)
        # Not straight into the slot: a `finally` in the value still sees the old one, and may throw.
        if variable.in_table or any(isinstance(part, ast.Try) and part.finally_ for part in walk(node.value)):
            e.assign(reading(variable), e.expr(node.value))
        else:
            e.into(node.value, reading(variable))
        learn(e, variable, node.value)
    e.show_in_box(variable)


def learn(e: Emitter, variable: Variable, value: ast.Node) -> None:
    """Note within which bounds a variable is that has got ``value``, which may read it."""
    found = bounds(e, value) if e.kind(value) == "int" else None
    e.known.forget(variable)
    if found:
        e.known.learn(variable, found)


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
            store_one(e, node, variable, path[0], value)
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


def path_to(target: ast.Node, keys: Iterator[Text]) -> list[Step]:
    """``x.a[i]`` as (("prop", "'a'"), ("index", i)), the indexes taken from ``keys``."""
    if isinstance(target, ast.Member):
        return [*path_to(target.object, keys), ("prop", repr(target.name))]
    if isinstance(target, ast.Index):
        return [*path_to(target.object, keys), ("index", next(keys))]
    return []


# `match`: arms in order, the first that fits runs. Spec: 02 §12.
#
# A pattern is walked once, left to right: each part is compared, or bound for the parts after it, only while
# all before it fitted. So an expression in a pattern sees the names to its left, and runs only when needed.


#: The text of a test that every value passes.
ALWAYS = constant(True)


def match(e: Emitter, node: ast.Match, dest: Destination) -> None:
    """``x = match v { {k: n} if n > 1 -> { n }  _ -> { 0 } }``:

    t1 = v_1
    t2 = False
    if t1.__class__ is dict:
     n_3 = t1.get('k')
     if n_3 > 1:
      t2 = True
      x_2 = n_3
    if not t2:
     t2 = True
     x_2 = 0
    if not t2: raise Thrown('No match arm matched the value')
    t1 = None
    """
    value, done = e.temp(), e.temp()
    e.line(f"{value} = {e.expr(node.value)}")
    e.line(f"{done} = False")
    for i, arm in enumerate(node.arms):
        e.at = arm
        if i:
            with e.suite(f"if not {done}"):
                one_arm(e, arm, value, done, dest)
        else:
            one_arm(e, arm, value, done, dest)
    e.at = node
    e.line(f"if not {done}: raise Thrown('No match arm matched the value')")
    # Let go of the value, so that the program's variable is its only holder again.
    e.line(f"{value} = None")


def one_arm(e: Emitter, arm: ast.Arm, value: Operand, done: Operand, dest: Destination) -> None:
    """Test and bind, guard, run; ``done`` is set as soon as the arm is chosen."""

    def run() -> None:
        e.line(f"{done} = True")
        e.block(arm.body, dest)

    def chosen() -> None:
        if arm.guard is not None:
            with e.suite(f"if {condition(e, arm.guard)}"):
                run()
        else:
            run()

    e.open_scope(arm)
    fits = alternatives(e, arm.patterns, value) if len(arm.patterns) > 1 else one_pattern(e, arm, value)
    if fits is ALWAYS:
        chosen()
    else:
        with e.suite(f"if {fits}"):
            chosen()


def alternatives(e: Emitter, patterns: tuple[ast.Node, ...], value: Operand) -> Operand:
    """``p1 | p2``: compared one after the other until one is equal."""
    fits = e.temp()
    for i, pattern in enumerate(patterns):
        if isinstance(pattern, ast.Name) and pattern.name == "_":
            e.line(f"{fits} = True")
            break
        with e.apart() as lines:
            text = equals(e, value, pattern)
        e.line(f"if not {fits}:" if i else "if True:")
        e.lines.extend(lines)
        e.line(f" {fits} = {text}")
    return fits


def one_pattern(e: Emitter, arm: ast.Arm, value: Operand) -> Text:
    """Text for "the pattern fits"; binds its names on the way."""
    pattern = arm.patterns[0]
    if isinstance(pattern, ast.Name):
        give(e, pattern, value)
        return ALWAYS
    kind, parts = shape(e, pattern, value)
    if kind is None:
        return equals(e, value, pattern)
    todo = [(part, text) for part, text in parts if not (isinstance(part, ast.Name) and part.name == "_")]
    if not todo:
        return kind
    fits = e.temp()
    e.line(f"{fits} = {kind}")
    for part, text in todo:
        if isinstance(part, ast.Name):
            with e.suite(f"if {fits}"):
                give(e, part, text)
        else:
            with e.apart() as lines:
                compared = equals(e, text, part)
            e.line(f"if {fits}:")
            e.lines.extend(lines)
            e.line(f" {fits} = {compared}")
    return fits


def shape(e: Emitter, pattern: ast.Node, value: Operand) -> tuple[str | None, Iterator[tuple[ast.Node, str]]]:
    """The test for the kind of value that a container pattern matches, and its parts with what each faces.

    The test is None for a pattern that is not a container.
    """
    if is_computed(pattern):
        return None, iter(())
    if isinstance(pattern, ast.Dict):
        entries = [entry for entry in pattern.entries if isinstance(entry, ast.DictEntry)]
        parts = ((entry.value, f"{value}.get({key_text(entry)!a})") for entry in entries)
        return f"{type_of(value)} is dict", parts
    if isinstance(pattern, ast.List):
        size = f"len({value}) >= {len(pattern.items)}"
        return f"{type_of(value)} is list and {size}", (
            (p, f"{value}[{i}]") for i, p in enumerate(pattern.items)
        )
    if variant := enum_variant(pattern, e.unit.resolution.enums):
        enum, name = variant
        kind = f"{type_of(value)} is EnumValue and {value}.variant == {name!r} and {value}.enum == {enum!r}"
        args = pattern.args if isinstance(pattern, ast.MethodCall) else ()
        return kind, ((arg, f"field({value}, {i})") for i, arg in enumerate(args))
    return None, iter(())


def equals(e: Emitter, value: Text, pattern: ast.Node) -> str:
    """``value == pattern`` of the language."""
    if isinstance(pattern, ast.Str):
        return f"{value} == {e.expr(pattern)}"
    if isinstance(pattern, ast.Nil):
        return f"{value} is None"
    return f"eq({value}, {e.expr(pattern)})"


def key_text(entry: ast.DictEntry) -> str:
    assert isinstance(entry.key, ast.Str)
    return entry.key.value


def give(e: Emitter, name: ast.Name, text: Text) -> None:
    """Bind a name of a pattern; what is absent is nil."""
    if name.name != "_":
        e.assign_new(e.declared_by(name, name.name), text)
