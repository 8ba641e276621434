"""``x = x + y``, ``x = x.push(y)``, ``x[i] = v``: updates of a variable that may change its value in place.

Values never change for the program; a list or dict that the variable is the only holder of is updated instead
of copied (`SOLE`: what `getrefcount` returns then, see `harnpy.vm.values.in_place`). Spec: 02 §8.
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.emit.nodes.ring import all_simple, wrap_line
from harnpy.vm.emit.operand import reading
from harnpy.vm.resolve.kinds import RING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harnpy.vm.emit.function import Emitter
    from harnpy.vm.emit.operand import Operand, Text
    from harnpy.vm.resolve.scopes import Variable

    #: One step from a variable to the place that is assigned: ("prop", "'name'") or ("index", the key).
    Step = tuple[str, Text]


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


def reads(e: Emitter, node: ast.Node, variable: Variable) -> bool:
    if not isinstance(node, ast.Name):
        return False
    ref = e.refs[id(node)]
    return ref.kind == "local" and ref.variable is variable


def update(
    e: Emitter,
    variable: Variable,
    operands: Sequence[ast.Node],
    change: Callable[[Sequence[Operand]], None],
    compute: Callable[[Operand, Sequence[Operand]], str],
) -> None:
    """Evaluate ``operands``, then ``change`` the variable's value by them.

    The variable is read first. If ``operands`` may assign to it, its value is changed only when they did not:

        t1 = x_1
        t2 = …
        if x_1 is t1:
         t1 = None
         <change x_1 by t2>
        else: x_1 = <t1 and t2 put together>
    """
    x = reading(variable)
    e.assigned(x)
    if not any(e.unit.may_change(variable, node) for node in operands):
        change(e.atoms(operands))
        return
    read = e.fresh(x)
    atoms = e.atoms(operands)

    with e.suite(f"if {x} is {read}"):
        e.line(f"{read} = None")
        change(atoms)
    e.line(f"else: {x} = {compute(read, atoms)}")


def extend(e: Emitter, variable: Variable, value: ast.Binary) -> bool:
    """``x = x + y + z``: the strings of a chain are put together first, so that `x` grows once.

    ``x = x + y`` of values that may be anything:

        if type(x_1) is dict and type(y_2) is dict and getrefcount(x_1) == SOLE: x_1.update(y_2)
        elif type(x_1) is list and type(y_2) is list and getrefcount(x_1) == SOLE: x_1 += y_2
        elif type(x_1) is str and type(y_2) is str: x_1 = x_1 + y_2
        elif type(x_1) is int and type(y_2) is int: …
        else: x_1 = add(x_1, y_2)
    """
    first, added = chain(value)
    if not reads(e, first, variable) or any(reads(e, node, variable) for node in added):
        return False
    if any(isinstance(node, ast.Binary) and node.op in RING for node in added):
        return False
    kinds = {e.kind(node) for node in (first, *added)}
    grows = [kind for kind in ("dict", "list", "str") if kinds <= {"any", kind}]
    if len(added) > 1 and ("str" not in grows or not all(all_simple(e, node) for node in added[1:])):
        return False
    if not grows:
        return False
    x = reading(variable)

    def change(atoms: Sequence[Operand]) -> None:
        word = "if"
        for kind in grows if len(atoms) == 1 else ["str"]:
            unsure = [a for a, node in zip(atoms, added, strict=True) if e.kind(node) != kind]
            e.line(f"{word} {growth(kind, x, atoms, unsure)}")
            word = "elif"
        if kinds == {"any"} and len(atoms) == 1:
            e.line(f"elif type({x}) is int and type({atoms[0]}) is int:")
            e.line(f" {x} = {x} + {atoms[0]}")
            wrap_line(e, value, x, " ")
        e.line(f"else: {x} = {slow_chain(e, value, x, atoms)}")

    update(e, variable, added, change, lambda read, atoms: slow_chain(e, value, read, atoms))
    return True


def chain(value: ast.Binary) -> tuple[ast.Node, list[ast.Node]]:
    """``x + y + z`` as `x` and what is added to it."""
    added: list[ast.Node] = []
    first: ast.Node = value
    while isinstance(first, ast.Binary) and first.op == "+":
        added.insert(0, first.right)
        first = first.left
    return first, added


def growth(kind: str, x: Operand, atoms: Sequence[Operand], unsure: Sequence[Operand]) -> str:
    """How a value of ``kind`` grows, after the test that it is one; ``unsure`` may be of other kinds."""
    tests = " and ".join(f"type({a}) is {kind}" for a in (x, *unsure))
    if kind == "str":
        added = atoms[0] if len(atoms) == 1 else f"({' + '.join(map(str, atoms))})"
        return f"{tests}: {x} = {x} + {added}"
    grow = f"{x}.update({atoms[0]})" if kind == "dict" else f"{x} += {atoms[0]}"
    return f"{tests} and getrefcount({x}) == SOLE: {grow}"


def slow_chain(e: Emitter, value: ast.Binary, x: Operand, atoms: Sequence[Operand]) -> str:
    left: Text = slow_chain(e, value.left, x, atoms[:-1]) if isinstance(value.left, ast.Binary) else x
    return e.mark(value, f"add({left}, {atoms[-1]})")


def push(e: Emitter, variable: Variable, value: ast.MethodCall) -> bool:
    """``x = x.push(y)``:

    if type(x_1) is list and getrefcount(x_1) == SOLE: x_1.append(y_2)
    else: x_1 = m_push_1_[type(x_1)](vm, x_1, y_2)
    """
    if len(value.args) != 1 or isinstance(value.args[0], ast.Spread) or reads(e, value.args[0], variable):
        return False
    x, table = reading(variable), e.unit.method_table("push", 1)

    def pushed(x: Operand, atoms: Sequence[Operand]) -> str:
        return e.mark(value, f"{table}[type({x})](vm, {x}, {atoms[0]})")

    def change(atoms: Sequence[Operand]) -> None:
        e.line(f"if type({x}) is list and getrefcount({x}) == SOLE: {x}.append({atoms[0]})")
        e.line(f"else: {x} = {pushed(x, atoms)}")

    update(e, variable, value.args, change, pushed)
    return True


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
