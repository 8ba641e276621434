"""Unions of shapes that a field tells apart. Spec: 03 §6."""

from __future__ import annotations

from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.check.types.names import Type
    from harnpy.check.types.questions import Questions


def tagged(types: Questions, type: Type) -> tuple[str, list[tuple[str | int, Type]]] | None:
    """See `Types.tagged`. The discriminant is the first field of the first shape that can be one."""
    shapes = [types.unfolded(member) for member in types.members(type)]
    if len(shapes) < 2 or not isinstance(shapes[0], ast.TypeShape):
        return None
    for field in shapes[0].fields:
        tags = _tags(types, shapes, field.name)
        if len(set(tags)) == len(shapes):
            return field.name, list(zip(tags, shapes, strict=True))
    return None


def _tags(types: Questions, shapes: Sequence[Type], name: str) -> list[str | int]:
    """The literals of the shapes that require the field ``name`` to be one."""
    tags: list[str | int] = []
    for shape in shapes:
        fields = shape.fields if isinstance(shape, ast.TypeShape) else ()
        for field in fields:
            type = types.unfolded(field.type)
            if field.name == name and not field.optional and isinstance(type, ast.TypeLiteral):
                tags.append(type.value)
    return tags
