"""Types without aliases, as 03 §3.3 tells it: all at once, where `Types` unfolds one when it meets it."""

from __future__ import annotations

from itertools import product

from harnpy.check.types import Types
from harnpy.check.types.declared import substituted
from harnpy.check.types.type_nodes import Type, rebuilt, union
from harnpy.syntax import ast


def expanded(types: Types, type: Type, within: frozenset[str] = frozenset()) -> Type:
    """``type`` without aliases, however deep; those inside themselves stay names."""
    declared = types.declared.aliases.get(type.name) if isinstance(type, ast.TypeName) else None
    type = rebuilt(type, lambda part: expanded(types, part, within))
    if declared is None or declared.name in within or not isinstance(type, ast.TypeName):
        return type
    if len(type.args) != len(declared.type_params):
        return type
    names, within = [param.name for param in declared.type_params], within | {declared.name}
    choices = product(*map(members, type.args))
    bodies = (substituted(declared.type, dict(zip(names, args, strict=True))) for args in choices)
    return union(expanded(types, body, within) for body in bodies)


def members(type: Type) -> tuple[Type, ...]:
    return type.members if isinstance(type, ast.TypeUnion) else (type,)
