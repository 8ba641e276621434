"""Names that are used: read, called, assigned, piped into. Spec: 02 §4.3, §7, §8."""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.resolve.schemas import value_schema, without
from harnpy.vm.resolve.scopes import Reference
from harnpy.vm.resolve.tree import PLACEHOLDER_PARENTS, placeholders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.resolve.visitor import Visitor

#: Called like functions, and recognised before anything a user defines (05 §2).
TASK_CALLS = frozenset({"await", "cancel", "cancel_graceful", "is_cancelled"})

#: Builtins and which of their arguments may be a type's name.
SCHEMA_ARGUMENTS = {
    "schema_of": 0,
    "schema_is": 1,
    "is_type": 1,
    "schema_check": 1,
    "schema_parse": 1,
    "schema_expect": 1,
    "json_validate": 1,
}


def name(r: Visitor, node: ast.Name) -> None:
    r.out.refs[id(node)] = r.lookup(node.name)


def call(r: Visitor, node: ast.Call) -> None:
    call_target(r, node)
    for arg in node.args:
        r.visit(arg)
    schema_at = SCHEMA_ARGUMENTS.get(node.name, len(node.args))
    if schema_at < len(node.args) and r.out.refs[id(node)].kind == "builtin":
        type_as_value(r, node.args[schema_at])


def call_target(r: Visitor, node: ast.Call) -> None:
    """What a call calls. A function declared anywhere in the file may be in reach at run time."""
    if node.name in TASK_CALLS:
        return
    r.out.refs[id(node)] = r.lookup(node.name, called=True)


def dict_entry(r: Visitor, node: ast.DictEntry) -> None:
    r.children(node)
    if isinstance(node.key, ast.Str) and node.key.value == "output_schema":
        type_as_value(r, node.value)


def type_as_value(r: Visitor, node: ast.Node) -> None:
    """Make a type's name stand for the type's schema, unless it is a variable's too (03 §12)."""
    if not isinstance(node, ast.Name) or node.name not in r.out.aliases:
        return
    ref = r.out.refs[id(node)]
    schema = value_schema(r.out.aliases[node.name], without(r.out.aliases, node.name))
    if ref.kind in ("undefined", "dynamic") and schema is not None:
        ref.kind, ref.schema = "schema", schema


def pipe(r: Visitor, node: ast.Pipe) -> None:
    r.visit(node.left)
    holes = list(placeholders(node.right))
    if holes:
        variable = r.new_variable("_", False, "pipe")
        variable.values.append(node.left)
        r.out.variables[id(node), "_"] = variable
        for hole in holes:
            r.out.refs[id(hole)] = Reference("local", "_", variable)
        around(r, node.right, {id(hole) for hole in holes})
    else:
        r.visit(node.right)


def around(r: Visitor, node: ast.Node, holes: set[int]) -> None:
    """Visit a pipe's right side, whose placeholders are bound already."""
    if id(node) in holes:
        return
    if isinstance(node, ast.Call):
        call_target(r, node)
    if isinstance(node, PLACEHOLDER_PARENTS):
        for child in node.children():
            around(r, child, holes)
    else:
        r.visit(node)


def assign(r: Visitor, node: ast.Assign) -> None:
    r.visit(node.value)
    r.visit(node.target)
    root = node.target
    while isinstance(root, ast.Member | ast.Index):
        root = root.object
    ref = r.out.refs.get(id(root))
    if ref and ref.variable:
        ref.variable.reassigned = True
        if root is node.target and node.op == "=":
            ref.variable.values.append(node.value)
        elif root is node.target:
            compound = ast.Binary(node.start, node.end, node.op[:-1], root, node.value)
            r.out.keep.append(compound)
            ref.variable.values.append(compound)
        else:
            ref.variable.opaque = True
