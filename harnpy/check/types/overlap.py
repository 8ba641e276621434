"""What two types have in common, for values that were tested against a schema. Spec: 03 §6.

Only what can't be is taken away: where it is open whether two types overlap, they do.
"""

from __future__ import annotations

from harnpy.check.types.names import NEVER, base
from harnpy.check.types.unions import union
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.check.types.names import Type
    from harnpy.check.types.questions import Questions

#: Kinds of values: a value of one is never of another, but that an int may pass for a float.
_KINDS = frozenset("int float string bool nil list dict closure bytes set duration range".split())


def intersection(types: Questions, type: Type, other: Type) -> Type | None:
    """See `Types.intersection`. `any` stays what it is."""
    if _is_name(type, "any") or _is_name(other, "any", "unknown"):
        return type
    branches = types.members(other)
    if _is_name(type, "unknown"):
        shapes = any(isinstance(types.unfolded(branch), ast.TypeShape) for branch in branches)
        return None if shapes else other
    members = types.members(type)
    if len(members) == 1 and len(branches) == 1:
        return _of_two(types, type, other)
    parts = (intersection(types, member, branch) or member for member in members for branch in branches)
    return union(parts)


def _of_two(types: Questions, type: Type, other: Type) -> Type:
    """The intersection of two types that are no unions, the one that says more if that is all it is."""
    one, two = types.unfolded(type), types.unfolded(other)
    if not _meet(types, one, two):
        return NEVER
    into, back = types.fits(type, other), types.fits(other, type)
    if into and back:
        return other if _precision(two) > _precision(one) else type
    if into:
        return type
    if not back and isinstance(one, ast.TypeShape) and isinstance(two, ast.TypeShape):
        return _merged(one, two)
    return other


def _precision(type: Type) -> int:
    """A shape says more than a `dict<…>`, that more than a `dict`; a literal more than its kind."""
    return int(bool(type.args)) if isinstance(type, ast.TypeName) else 2


def _merged(one: ast.TypeShape, two: ast.TypeShape) -> ast.TypeShape:
    """The fields of both; of one that both have the second's type, which is what was tested."""
    fields = {field.name: field for field in (*one.fields, *two.fields)}
    return ast.TypeShape(0, 0, tuple(fields.values()))


def _meet(types: Questions, type: Type, other: Type) -> bool:
    """Whether a value may be of both of two types that are neither unions nor aliases."""
    if isinstance(type, ast.TypeLiteral) and isinstance(other, ast.TypeLiteral):
        return type == other
    if isinstance(type, ast.TypeShape) and isinstance(other, ast.TypeShape):
        return _tags_meet(types, type, other)
    one, two = _kind(type), _kind(other)
    return one is None or two is None or one == two or {one, two} == {"int", "float"}


def _tags_meet(types: Questions, type: ast.TypeShape, other: ast.TypeShape) -> bool:
    """Whether no field that both shapes require is a different literal in each."""
    tags = _literals(types, type)
    return all(tags.get(name, tag) == tag for name, tag in _literals(types, other).items())


def _literals(types: Questions, shape: ast.TypeShape) -> dict[str, Type]:
    fields = ((field, types.unfolded(field.type)) for field in shape.fields if not field.optional)
    return {field.name: type for field, type in fields if isinstance(type, ast.TypeLiteral)}


def _kind(type: Type) -> str | None:
    """The kind of all values of a type; None when they may be of any kind."""
    if isinstance(type, ast.TypeLiteral):
        return "string" if isinstance(type.value, str) else "int"
    if isinstance(type, ast.TypeShape):
        return "dict"
    if isinstance(type, ast.TypeFn):
        return "closure"
    if isinstance(type, ast.TypeName) and base(type.name) in _KINDS:
        return type.name
    return None


def _is_name(type: Type, *names: str) -> bool:
    return isinstance(type, ast.TypeName) and type.name in names
