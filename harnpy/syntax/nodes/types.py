"""Types. Spec: 01 §7.9."""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.syntax.ast import Node
from harnpy.syntax.nodes.lists import Maybe

Nodes = list[Node]


def union(start: int, end: int, members: Nodes) -> ast.TypeUnion:
    return ast.TypeUnion(start, end, tuple(members))


def type_name(start: int, end: int, name: str) -> ast.TypeName:
    return ast.TypeName(start, end, name, ())


def type_generic(start: int, end: int, name: str, args: tuple[Node, ...]) -> ast.TypeName:
    return ast.TypeName(start, end, name, args)


def type_nil(start: int, end: int) -> ast.TypeName:
    return ast.TypeName(start, end, "nil", ())


def type_bool(start: int, end: int) -> ast.TypeName:
    return ast.TypeName(start, end, "bool", ())


def type_negative(start: int, end: int, value: int) -> ast.TypeLiteral:
    return ast.TypeLiteral(start, end, -value)


def type_list(start: int, end: int, item: Node) -> ast.TypeName:
    return ast.TypeName(start, end, "list", (item,))


def type_shape(start: int, end: int, fields: list[ast.ShapeField] | None) -> ast.TypeShape:
    return ast.TypeShape(start, end, tuple(fields or ()))


def shape_field(start: int, end: int, name: str, optional: bool | None, type: Node) -> ast.ShapeField:
    return ast.ShapeField(start, end, name, optional is not None, type)


def type_fn(start: int, end: int, params: Maybe, returns: Node) -> ast.TypeFn:
    return ast.TypeFn(start, end, tuple(params or ()), returns)
