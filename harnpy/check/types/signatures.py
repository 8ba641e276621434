"""The types of what builtins return, from the signatures that declare them. Spec: 03 §8.3, §13, 04 §32.

A builtin has no static type whose result is `any`, is one of several kinds besides nil (its arguments decide
which), or has a type without a name in programs, such as a handle. Calls on a namespace
(`workflow.signal(…)`) are method calls, and have none either.
"""

from __future__ import annotations

from functools import cache

from harnpy.check.types.type_nodes import DICT, KNOWN, NIL, flat, named, union, without
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.check.knowledge import Signature
    from harnpy.check.types.type_nodes import Type


def result_of(signature: Signature | None) -> Type | None:
    """The static type of what a builtin returns, whatever it is called with."""
    type = certain_result_of(signature)
    return without(type, NIL) if type is not None and signature is not None and signature.lenient else type


def certain_result_of(signature: Signature | None) -> Type | None:
    """The type of all that a builtin may return: nil, too, where the static type leaves it out."""
    if signature is None:
        return None
    type = _static(signature.returns)
    return _unbound(type) if signature.type_params and type is not None else type


def generic(signature: Signature) -> ast.FnDecl | None:
    """The declaration of a builtin with type parameters, without a body.

    When a type parameter stays unbound, the result is that of `result_of`.
    """
    if not signature.type_params:
        return None
    type_params = ", ".join(signature.type_params)
    params = ", ".join(f"{each.name}: {each.type}" for each in signature.parameters)
    declaration = _parsed(f"fn builtin<{type_params}>({params}) -> {signature.returns} {{}}")
    assert isinstance(declaration, ast.FnDecl)
    return declaration


@cache
def _static(text: str) -> Type | None:
    type = _written(text)
    kinds = [member for member in flat([type]) if member != NIL]
    if len(kinds) > 1 or not all(_is_known(kind) for kind in kinds):
        return None
    return type


def _is_known(type: Type) -> bool:
    return not isinstance(type, ast.TypeName) or (type.name in KNOWN and type.name != "any")


def _written(text: str) -> Type:
    """The type that a text is. Most are names, which need no parser."""
    names = text.split(" | ")
    if all(name.isidentifier() for name in names):
        return union(named(name) for name in names)
    declaration = _parsed(f"type Written = {text}")
    assert isinstance(declaration, ast.TypeDecl)
    return declaration.type


def _unbound(type: Type) -> Type | None:
    """Return what is left of a type when its parameters are unknown."""
    if isinstance(type, ast.TypeShape):
        return DICT
    return named(type.name) if isinstance(type, ast.TypeName) and type.args else None


@cache
def _parsed(source: str) -> ast.Node:
    from harnpy.syntax.parser import parse

    return parse(source).items[0]
