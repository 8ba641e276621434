"""`let`, `var`, patterns and assignment. Spec: 02 §8, §13.

Values never change for the program; a variable that is the only holder of a list or dict is updated in
place instead of copied (`SOLE`: what `getrefcount` returns then, see `harnpy.vm.values.in_place`).
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.emit.function import DISCARD
from harnpy.vm.emit.operand import reading
from harnpy.vm.emit.ring import SLOW, all_simple, wrap_line
from harnpy.vm.resolve.kinds import RING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.vm.emit.function import Emitter
    from harnpy.vm.resolve.scopes import Variable


def let(e: Emitter, node: ast.Let) -> None:
    target = node.target
    if not isinstance(target, ast.NamePattern):
        bind(e, target, e.slot(node.value))
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


def bind(e: Emitter, pattern: ast.Node, value: str) -> None:
    """Take ``value``, a slot, apart into the variables of a pattern."""
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
    variable = declared_name(e, pattern, entry.name)
    slot = e.settle(text) if entry.default or not variable else text
    if entry.default:
        default = entry.default
        e.suite(f"if {slot} is None", lambda: e.into(default, slot))
    if variable:
        e.assign_new(variable, slot)


def declared_name(e: Emitter, pattern: ast.Node, name: str) -> Variable | None:
    e.refuses(pattern, name)
    return None if name == "_" else e.declared_by(pattern, name)


# --- assignment -------------------------------------------------------------------------------------


def assign(e: Emitter, node: ast.Assign) -> None:
    root = node.target
    while isinstance(root, ast.Member | ast.Index):
        root = root.object
    if not isinstance(root, ast.Name):
        e.operands([node.value, node.target])
        return
    ref = e.refs[id(root)]
    variable = ref.variable if ref.kind == "local" else None
    if variable is None or variable.in_box:
        e.into(node.value, DISCARD)
        e.line(f"undefined_variable({root.name!r}, {ref.visible!r})")
    elif not variable.mutable:
        e.into(node.value, DISCARD)
        e.line(f"immutable({root.name!r})")
    elif root is not node.target:
        store(e, node, variable)
    elif node.op == "=":
        set_name(e, node, variable)
    else:
        compound = ast.Binary(node.start, node.end, node.op[:-1], node.target, node.value)
        if not in_place(e, variable, compound):
            e.assign(reading(variable), e.expr(compound, reading(variable)))
        e.show_in_box(variable)


def set_name(e: Emitter, node: ast.Assign, variable: Variable) -> None:
    if not in_place(e, variable, node.value):
        # Not straight into the slot: a `finally` in the value still sees the old one.
        if variable.in_table or isinstance(node.value, ast.Try):
            e.assign(reading(variable), e.expr(node.value))
        else:
            e.into(node.value, reading(variable))
    e.show_in_box(variable)


def in_place(e: Emitter, variable: Variable, value: ast.Node) -> bool:
    """Write ``x = x + y …`` and ``x = x.push(y)`` as updates, where `x` may hold a list or string."""
    if not may_update(variable):
        return False
    if isinstance(value, ast.Binary) and value.op == "+":
        return extend(e, variable, value)
    if isinstance(value, ast.MethodCall) and value.name == "push" and reads(e, value.object, variable):
        return push(e, variable, value)
    return False


def may_update(variable: Variable) -> bool:
    """Whether one holder of the value counts as one: a slot, or a module's table of variables."""
    return variable.shared or not variable.in_table


def extend(e: Emitter, variable: Variable, value: ast.Binary) -> bool:
    """``x = x + y + z``: the strings of a chain are put together first, so that `x` grows once."""
    added: list[ast.Node] = []
    first: ast.Node = value
    while isinstance(first, ast.Binary) and first.op == "+":
        added.insert(0, first.right)
        first = first.left
    kinds = {e.kind(node) for node in (first, *added)}
    if not reads(e, first, variable) or kinds & {"int", "num", "bool"}:
        return False
    if any(isinstance(node, ast.Binary) and node.op in RING for node in added):
        return False
    if len(added) > 1 and ("list" in kinds or not all(all_simple(node) for node in added[1:])):
        return False
    if any(reads(e, node, variable) for node in added):
        return False
    x = reading(variable)
    atoms = e.atoms(added)
    e.assigned(x)
    word = "if"
    if len(atoms) == 1 and kinds <= {"any", "dict"}:
        also = "" if e.kind(added[0]) == "dict" else f" and type({atoms[0]}) is dict"
        e.line(f"if type({x}) is dict{also} and getrefcount({x}) == SOLE: {x}.update({atoms[0]})")
        word = "elif"
    if len(atoms) == 1 and kinds <= {"any", "list"}:
        also = "" if "list" in kinds else f" and type({atoms[0]}) is list"
        e.line(f"{word} type({x}) is list{also} and getrefcount({x}) == SOLE: {x} += {atoms[0]}")
        word = "elif"
    if kinds <= {"any", "str"}:
        unsure = [a for a, node in zip(atoms, added, strict=True) if e.kind(node) != "str"]
        tests = " and ".join(f"type({a}) is str" for a in (x, *unsure))
        e.line(
            f"{word} {tests}: {x} = {x} + {atoms[0] if len(atoms) == 1 else '(' + ' + '.join(atoms) + ')'}"
        )
    if kinds == {"any"} and len(atoms) == 1:
        e.line(f"elif type({x}) is int and type({atoms[0]}) is int:")
        e.line(f" {x} = {x} + {atoms[0]}")
        wrap_line(e, value, x, " ")
    e.line(f"else: {x} = {slow_chain(e, value, x, atoms)}")
    return True


def slow_chain(e: Emitter, value: ast.Binary, x: str, atoms: Sequence[str]) -> str:
    left = slow_chain(e, value.left, x, atoms[:-1]) if isinstance(value.left, ast.Binary) else x
    return e.mark(value, f"add({left}, {atoms[-1]})")


def push(e: Emitter, variable: Variable, value: ast.MethodCall) -> bool:
    if len(value.args) != 1 or isinstance(value.args[0], ast.Spread) or reads(e, value.args[0], variable):
        return False
    x, y = reading(variable), e.atom(value.args[0])
    e.assigned(x)
    table = e.unit.method_table("push", 1)
    e.line(f"if type({x}) is list and getrefcount({x}) == SOLE: {x}.append({y})")
    e.line(f"else: {x} = " + e.mark(value, f"{table}[type({x})](vm, {x}, {y})"))
    return True


def reads(e: Emitter, node: ast.Node, variable: Variable) -> bool:
    if not isinstance(node, ast.Name):
        return False
    ref = e.refs[id(node)]
    return ref.kind == "local" and ref.variable is variable


def store(e: Emitter, node: ast.Assign, variable: Variable) -> None:
    """``x.a[i].b = v``: value first, then the indexes, then the root is bound to the updated copy."""
    value = e.atom(node.value)
    steps: list[tuple[str, str]] = []
    collect_path(e, node.target, steps)
    x = reading(variable)
    path = f"({''.join(f'({kind!r}, {key}), ' for kind, key in steps)})"
    if node.op != "=":
        old = e.temp()
        e.line(f"{old} = " + e.mark(node, f"read_path({x}, {path})"))
        text = e.mark(node, f"{SLOW[node.op[:-1]]}({old}, {value})")
        value = e.temp()
        e.line(f"{value} = {text}")
    if len(steps) == 1 and may_update(variable) and value != x:
        store_one(e, node, x, steps[0], value)
    else:
        e.line(f"{x} = " + e.mark(node, f"store_path({x}, {path}, {value})"))
    e.assigned(x)
    e.show_in_box(variable)


def collect_path(e: Emitter, target: ast.Node, steps: list[tuple[str, str]]) -> None:
    if isinstance(target, ast.Member):
        collect_path(e, target.object, steps)
        steps.append(("prop", repr(target.name)))
    elif isinstance(target, ast.Index):
        collect_path(e, target.object, steps)
        steps.append(("index", e.atom(target.index)))


def store_one(e: Emitter, node: ast.Assign, x: str, step: tuple[str, str], value: str) -> None:
    """``x.k = v`` and ``x[i] = v``."""
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
