"""The types of what builtins return, from the signatures that declare them. Spec: 03 §8.3, §13, 04 §32.

A builtin has no static type whose result is `any`, is one of several kinds besides nil (its arguments decide
which), or has a type without a name in programs, such as a handle. Calls on a namespace
(`workflow.signal(…)`) are method calls, and have none either.
"""

from __future__ import annotations

from harnpy.check.types.type_nodes import DICT, KNOWN, NIL, flat, named, union, without
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

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


class _Read:
    """What texts of signatures mean, which is the same for every program: each is read once."""

    static: Final[dict[str, Type | None]] = {}
    parsed: Final[dict[str, ast.Node]] = {}


def _static(text: str) -> Type | None:
    if text not in _Read.static:
        _Read.static[text] = _one_kind(text)
    return _Read.static[text]


def _one_kind(text: str) -> Type | None:
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


def _parsed(source: str) -> ast.Node:
    if source not in _Read.parsed:
        from harnpy.syntax.parser import parse

        _Read.parsed[source] = parse(source).items[0]
    return _Read.parsed[source]
