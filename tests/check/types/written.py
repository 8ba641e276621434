"""Types and declarations from source text, for the tests of this folder."""

from __future__ import annotations

from functools import cache

from harnpy.check.environment import Surface
from harnpy.check.types import Declared, Types
from harnpy.check.types.type_nodes import Type
from harnpy.syntax import ast
from harnpy.syntax.parser import parse


@cache
def written(text: str) -> Type:
    """The type that ``text`` is."""
    declaration = parse(f"type X = {text}").items[0]
    assert isinstance(declaration, ast.TypeDecl)
    return declaration.type


@cache
def types(source: str = "") -> Types:
    """The types of a program."""
    declared = Declared()
    enter(declared, source)
    return Types(declared)


def enter(declared: Declared, source: str) -> None:
    """Enter what a program declares for the whole of its file."""
    for item in parse(source).items:
        for node in Surface(item).types:
            declared.enter(node)


def expression(text: str) -> ast.Node:
    """The expression that ``text`` is."""
    binding = parse(f"let x = {text}").items[0]
    assert isinstance(binding, ast.Let)
    return binding.value
