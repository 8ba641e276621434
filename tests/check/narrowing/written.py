"""Types and conditions from their source text."""

from __future__ import annotations

from harnpy.check.narrowing.facts import Facts, facts_of
from harnpy.check.types import Declared, Types
from harnpy.check.types.names import Type
from harnpy.syntax import ast
from harnpy.syntax.parser import parse


def type_of(text: str) -> Type:
    (declared,) = parse(f"type T = {text}").items
    assert isinstance(declared, ast.TypeDecl)
    return declared.type


def expression(text: str) -> ast.Node:
    (item,) = parse(f"let it = {text}").items
    assert isinstance(item, ast.Let)
    return item.value


def types(declarations: str = "") -> Types:
    declared = Declared()
    declared.collect(parse(declarations).items)
    return Types(declared)


def sides(type: str, cond: str, declarations: str = "") -> tuple[Facts, Facts]:
    """The facts of a condition about `x`, which is of a type."""
    known = types(declarations)
    variables = {"x": type_of(type)}
    return facts_of(
        expression(cond), variables.get, lambda node: known.schema(node, lambda name: None), known
    )
