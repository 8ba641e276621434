"""Whether what builtins return is of the types that their signatures declare. Spec: 03 §13."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest

from harnpy.syntax import ast
from harnpy.syntax.parser import parse
from harnpy.vm.declare import BuiltinTable, Declaration
from harnpy.vm.values import type_name

#: Types that are several kinds of values, by the names that `type_of` has for them.
_KINDS = {
    "callable": {"closure", "builtin"},
    "closure": {"closure", "builtin"},
    "Schema": {"dict"},
    "Result": {"enum"},
}


class Returned:
    """The builtins that have returned something, and what is not of the declared type."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.wrong: set[str] = set()

    def note(self, declaration: Declaration, value: Any) -> None:
        self.names.add(declaration.name)
        if not is_as_declared(declaration, value):
            returns = declaration.signature().returns
            self.wrong.add(f"{declaration.name} returns {type_name(value)}, declared {returns}")


@contextmanager
def watched() -> Iterator[Returned]:
    """Inside the block every builtin that a `Vm` gives out is watched."""
    returned = Returned()
    checked = BuiltinTable._checked

    def watching(
        self: BuiltinTable, declaration: Declaration, function: Callable[..., Any]
    ) -> Callable[..., Any]:
        inner = checked(self, declaration, function)

        def call(vm: Any, *args: Any) -> Any:
            value = inner(vm, *args)
            returned.note(declaration, value)
            return value

        return call

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BuiltinTable, "_checked", watching)
        yield returned


def is_as_declared(declaration: Declaration, value: Any) -> bool:
    """Whether a builtin's result is of the type that its signature declares."""
    signature = declaration.signature()
    return holds(value, _type(signature.returns), frozenset(signature.type_params))


def holds(value: Any, type: ast.Node, free: frozenset[str] = frozenset()) -> bool:
    """Whether a value is of a type; the names in ``free`` stand for any."""
    if isinstance(type, ast.TypeUnion):
        return any(holds(value, member, free) for member in type.members)
    if isinstance(type, ast.TypeShape):
        return isinstance(value, dict) and all(_has(value, field, free) for field in type.fields)
    assert isinstance(type, ast.TypeName), type
    if type.name == "any" or type.name in free:
        return True
    if type_name(value) not in _KINDS.get(type.name, {type.name}):
        return False
    return type.name != "list" or all(holds(item, of, free) for of in type.args for item in value)


def _has(value: dict[str, Any], field: ast.ShapeField, free: frozenset[str]) -> bool:
    """Whether a dict has a field as a shape wants it; one of a type that nothing has determined may lack."""
    if field.name in value:
        return holds(value[field.name], field.type, free)
    return field.optional or (isinstance(field.type, ast.TypeName) and field.type.name in free)


@cache
def _type(text: str) -> ast.Node:
    (declaration,) = parse(f"type Returned = {text}").items
    assert isinstance(declaration, ast.TypeDecl)
    return declaration.type
