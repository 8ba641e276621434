"""What conditions and patterns compare with: literals, and the kinds of values. Spec: 03 §3.1, §6, §10.1."""

from __future__ import annotations

from harnpy.syntax import ast


def literal_value(node: ast.Node) -> str | int | None:
    """The value of a string or int literal, which a literal type may have."""
    if isinstance(node, ast.Str | ast.Int):
        return node.value
    if isinstance(node, ast.Unary) and node.op == "-" and isinstance(node.operand, ast.Int):
        return -node.operand.value
    return None


def literal_kind(node: ast.Node) -> str | None:
    """The type of a literal, by name: `string`, `int`, `float`, `bool` or `nil`."""
    if isinstance(node, ast.Unary) and node.op == "-":
        node = node.operand
        if not isinstance(node, ast.Int | ast.Float):
            return None
    return _KINDS.get(type(node))


_KINDS: dict[type[ast.Node], str] = {
    ast.Str: "string",
    ast.Int: "int",
    ast.Float: "float",
    ast.Bool: "bool",
    ast.Nil: "nil",
}


def kind_of(type: ast.Node) -> str | None:
    """What `type_of` says of the values of a type without aliases, if that is one word; else its name.

    A shape may hold a struct as well as a dict, and a function type a builtin as well as a closure.
    """
    if isinstance(type, ast.TypeName):
        return type.name
    if isinstance(type, ast.TypeLiteral):
        return "string" if isinstance(type.value, str) else "int"
    if isinstance(type, ast.TypeShape):
        return "dict"
    return "closure" if isinstance(type, ast.TypeFn) else None
