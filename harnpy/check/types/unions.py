"""Unions of types. Spec: 03 §3.1, §6."""

from __future__ import annotations

from harnpy.check.types.names import NEVER, flat
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.check.types.names import Type


def union(types: Iterable[Type]) -> Type:
    """The distinct ones among ``types`` in their order, unions by their members; `never` when there is none.

    A single one is that type.
    """
    members = dict.fromkeys(flat(types))
    members.pop(NEVER, None)
    if len(members) == 1:
        return next(iter(members))
    return ast.TypeUnion(0, 0, tuple(members)) if members else NEVER


def without(type: Type, member: Type) -> Type:
    """A union without one of its members; any other type as it is, but `never` when it is that member."""
    if type == member:
        return NEVER
    if isinstance(type, ast.TypeUnion) and member in type.members:
        return union(part for part in type.members if part != member)
    return type
