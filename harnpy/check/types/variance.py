"""Where type parameters marked `in` or `out` may appear. Spec: 03 §7.3."""

from __future__ import annotations

from harnpy.check.types.names import base
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.check.types.names import Type
    from harnpy.check.types.questions import Questions

    #: A type and the polarity of its position: 1 covariant, -1 contravariant, 0 invariant.
    Place = tuple[Type | None, int]

_POSITIONS = {1: "covariant", -1: "contravariant", 0: "invariant"}
_ALLOWED = {"out": 1, "in": -1}
_POLARITIES = {**_ALLOWED, "": 0}
_KINDS: dict[type, str] = {
    ast.FnDecl: "function",
    ast.TypeDecl: "type alias",
    ast.EnumDecl: "enum",
    ast.StructDecl: "struct",
    ast.InterfaceDecl: "interface",
}


def variance_faults(types: Questions, node: ast.Node) -> Iterator[tuple[ast.Node, str]]:
    """Each wrong appearance in a declaration: the type that names the parameter, and what to say."""
    if not isinstance(node, ast.FnDecl | ast.TypeDecl | ast.EnumDecl | ast.StructDecl | ast.InterfaceDecl):
        return
    marked = {param.name: param.variance for param in node.type_params if param.variance}
    if not marked:
        return
    for type, polarity in _places(node):
        for found, position in _appearances(types, type, polarity, marked):
            variance = marked[found.name]
            if position != _ALLOWED[variance]:
                yield (
                    found,
                    f"type parameter '{found.name}' is declared '{variance}' "
                    f"({_POSITIONS[_ALLOWED[variance]]}) but appears in a {_POSITIONS[position]} "
                    f"position in {_KINDS[node.__class__]} '{node.name}'",
                )


def _places(node: ast.Node) -> Iterator[Place]:
    """The types that a declaration writes down, in source order."""
    if isinstance(node, ast.TypeDecl):
        yield node.type, 1
    elif isinstance(node, ast.StructDecl):
        for field in node.fields:
            yield field.type, 0
    elif isinstance(node, ast.EnumDecl):
        for variant in node.variants:
            for param in variant.params:
                yield param.type, 1
    elif isinstance(node, ast.InterfaceDecl):
        for member in node.members:
            yield from _places(member)
    elif isinstance(node, ast.FnDecl | ast.MethodSig):
        for param in node.params:
            yield param.type, -1
        yield node.returns, 1
    elif isinstance(node, ast.AssocType):
        yield node.type, 1


def _appearances(
    types: Questions, type: Type | None, polarity: int, names: dict[str, str]
) -> Iterator[tuple[ast.TypeName, int]]:
    if isinstance(type, ast.TypeName):
        if type.name in names and not type.args:
            yield type, polarity
        variances = types.variances(base(type.name), len(type.args))
        for arg, variance in zip(type.args, variances, strict=True):
            yield from _appearances(types, arg, polarity * _POLARITIES[variance], names)
    elif isinstance(type, ast.TypeUnion):
        for member in type.members:
            yield from _appearances(types, member, polarity, names)
    elif isinstance(type, ast.TypeShape):
        for field in type.fields:
            yield from _appearances(types, field.type, polarity, names)
    elif isinstance(type, ast.TypeFn):
        for param in type.params:
            yield from _appearances(types, param, -polarity, names)
        yield from _appearances(types, type.returns, polarity, names)
