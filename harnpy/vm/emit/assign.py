"""`let`, `var`, patterns and assignment. Spec: reference 02 §8, §13.

Values never change for the program; a variable that is the only holder of a list or dict is updated in
place instead of copied (`SOLE`: what `getrefcount` answers then, see `harnpy.vm.update`).
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.emit.operators import _SLOW

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.emit.emitter import Emitter
    from harnpy.vm.scopes import Binding


def let(e: Emitter, node: ast.Let) -> None:
    target = node.target
    if not isinstance(target, ast.NamePattern):
        bind(e, target, e.atom(node.value))
        return
    if target.name == "_":
        e.into(node.value, "discard")
        return
    if id(target) in e.unit.resolution.redeclared:
        e.into(node.value, "discard")
        e.line(f"redeclared({target.name!r})")
        return
    binding = e.unit.resolution.bindings[id(target), target.name]
    if binding.python.isidentifier():
        e.declared(binding.python)
        e.into(node.value, binding.python)
        e.boxed(binding)
    else:
        e.assign_new(binding, e.expr(node.value))


def bind(e: Emitter, pattern: ast.Node, value: str) -> None:
    """Take ``value``, a variable, apart into the names of a pattern."""
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
                variable = declared_name(e, pattern, name)
                e.assign_new(variable, text) if variable else e.line(text)
            return
        case _:
            return
    if pattern.rest:
        variable = declared_name(e, pattern, pattern.rest)
        if variable:
            e.assign_new(variable, rest)


def entry_value(e: Emitter, pattern: ast.Node, entry: ast.PatternEntry, text: str) -> None:
    """One entry; the default is for nil too, and sees the names before it."""
    binding = declared_name(e, pattern, entry.name)
    variable = e.settle(text) if entry.default or not binding else text
    if entry.default:
        default = entry.default
        e.suite(f"if {variable} is None", lambda: e.into(default, variable))
    if binding:
        e.assign_new(binding, variable)


def declared_name(e: Emitter, pattern: ast.Node, name: str) -> Binding | None:
    return None if name == "_" else e.unit.resolution.bindings[id(pattern), name]


# --- assignment -------------------------------------------------------------------------------------


def assign(e: Emitter, node: ast.Assign) -> None:
    root = node.target
    while isinstance(root, ast.Member | ast.Index):
        root = root.object
    if not isinstance(root, ast.Name):
        e.operands([node.value, node.target])
        return
    ref = e.refs[id(root)]
    binding = ref.binding if ref.kind == "local" else None
    if binding is None or (binding.late and binding.captured_from):
        e.into(node.value, "discard")
        e.line(f"undefined_variable({root.name!r}, {ref.visible!r})")
    elif not binding.mutable:
        e.into(node.value, "discard")
        e.line(f"immutable({root.name!r})")
    elif root is not node.target:
        store(e, node, binding)
    elif node.op == "=":
        set_name(e, node, binding)
    else:
        compound = e.unit.compound(node)
        e.assign(binding.python, e.expr(compound, binding.python)) if not in_place(
            e, binding, compound
        ) else None
        e.boxed(binding)


def set_name(e: Emitter, node: ast.Assign, binding: Binding) -> None:
    if not in_place(e, binding, node.value):
        if binding.python.isidentifier():
            e.into(node.value, binding.python)
        else:
            e.assign(binding.python, e.expr(node.value))
    e.boxed(binding)


def in_place(e: Emitter, binding: Binding, value: ast.Node) -> bool:
    """``x = x + y`` and ``x = x.push(y)`` where `x` may be a list or string that only `x` holds."""
    x = binding.python
    if isinstance(value, ast.Binary) and value.op == "+" and reads(e, value.left, binding):
        kind = e.kind(value.right)
        if kind in ("int", "num") or e.kind(value.left) in ("int", "num") or not x.isidentifier():
            return False
        if isinstance(value.right, ast.Binary):
            return False
        y = e.atom(value.right)
        e.assigned(x)
        word = "if"
        if kind in ("any", "list"):
            test = "" if kind == "list" else f" and type({y}) is list"
            e.line(f"if type({x}) is list{test} and getrefcount({x}) == SOLE: {x} += {y}")
            word = "elif"
        if kind in ("any", "str"):
            test = "" if kind == "str" else f" and type({y}) is str"
            e.line(f"{word} type({x}) is str{test}: {x} = {x} + {y}")
            word = "elif"
        if kind == "any":
            e.line(f"elif type({x}) is int and type({y}) is int:")
            e.line(f" {x} = {x} + {y}")
            e.line(f" if {x} > 1073741823 or {x} < -1073741823: {x} = wrap({x})")
        e.line(f"else: {x} = " + e.mark(value, f"add({x}, {y})") if word == "elif" else f"{x} = add({x}, {y})")
        return True
    if (
        isinstance(value, ast.MethodCall)
        and value.name == "push"
        and len(value.args) == 1
        and not isinstance(value.args[0], ast.Spread)
        and reads(e, value.object, binding)
    ):
        y = e.atom(value.args[0])
        e.assigned(x)
        table = e.unit.method_table("push", 1)
        e.line(f"if type({x}) is list and getrefcount({x}) == SOLE: {x}.append({y})")
        e.line(f"else: {x} = " + e.mark(value, f"{table}[type({x})](vm, {x}, {y})"))
        return True
    return False


def reads(e: Emitter, node: ast.Node, binding: Binding) -> bool:
    if not isinstance(node, ast.Name):
        return False
    ref = e.refs[id(node)]
    return ref.kind == "local" and ref.binding is binding


def store(e: Emitter, node: ast.Assign, binding: Binding) -> None:
    """``x.a[i].b = v``: value first, then the indexes, then the root is bound to the updated copy."""
    value = e.atom(node.value)
    steps: list[tuple[str, str]] = []
    collect_path(e, node.target, steps)
    x = binding.python
    path = f"({''.join(f'({kind!r}, {key}), ' for kind, key in steps)})"
    if node.op != "=":
        old = e.temp()
        e.line(f"{old} = " + e.mark(node, f"read_path({x}, {path})"))
        text = e.mark(node, f"{_SLOW[node.op[:-1]]}({old}, {value})")
        value = e.temp()
        e.line(f"{value} = {text}")
    if len(steps) == 1 and x.isidentifier():
        store_one(e, node, x, steps[0], value)
    else:
        e.line(f"{x} = " + e.mark(node, f"store_path({x}, {path}, {value})"))
    e.assigned(x)
    e.boxed(binding)


def collect_path(e: Emitter, target: ast.Node, steps: list[tuple[str, str]]) -> None:
    if isinstance(target, ast.Member):
        collect_path(e, target.object, steps)
        steps.append(("prop", repr(target.name)))
    elif isinstance(target, ast.Index):
        collect_path(e, target.object, steps)
        steps.append(("index", e.atom(target.index)))


def store_one(e: Emitter, node: ast.Node, x: str, step: tuple[str, str], value: str) -> None:
    kind, key = step
    if kind == "prop":
        e.line(f"if type({x}) is dict and getrefcount({x}) == SOLE: {x}[{key}] = {value}")
        e.line(f"else: {x} = " + e.mark(node, f"set_prop({x}, {key}, {value})"))
        return
    slow = e.mark(node, f"set_index({x}, {key}, {value})")
    if key[0] not in "'\"":
        e.line(f"if type({x}) is list and type({key}) is int and getrefcount({x}) == SOLE and 0 <= {key} < len({x}):")
        e.line(f" {x}[{key}] = {value}")
        e.line(f"elif type({x}) is dict and type({key}) is str and getrefcount({x}) == SOLE: {x}[{key}] = {value}")
    else:
        e.line(f"if type({x}) is dict and getrefcount({x}) == SOLE: {x}[{key}] = {value}")
    e.line(f"else: {x} = {slow}")
