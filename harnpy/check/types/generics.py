"""Type parameters: bound by the arguments of a call, replaced in its result. Spec: 03 §7.2."""

from __future__ import annotations

from harnpy.check.types.aliases import substituted
from harnpy.check.types.names import ANY, HOLE, base, named
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence, Set

    from harnpy.check.types.names import Type
    from harnpy.check.types.questions import Questions

    Conflict = tuple[str, Type, Type]


def bind(
    types: Questions, names: Set[str], expected: Type, actual: Type, bound: dict[str, Type]
) -> Conflict | None:
    """See `Types.bind`."""
    if isinstance(expected, ast.TypeName) and not expected.args and expected.name in names:
        return _bind_one(types, expected.name, actual, bound)
    if expected == actual or not names:
        return None
    pairs = _matching(types.unfolded(expected), types.unfolded(actual))
    conflicts = (bind(types, names, wanted, given, bound) for wanted, given in pairs)
    return next((conflict for conflict in conflicts if conflict), None)


def _bind_one(types: Questions, name: str, actual: Type, bound: dict[str, Type]) -> Conflict | None:
    """A hole says nothing; types that fit each other both ways contradict nothing."""
    if actual == HOLE:
        return None
    known = bound.setdefault(name, actual)
    if known == actual or (types.fits(known, actual) and types.fits(actual, known)):
        return None
    return (name, known, actual)


def _matching(expected: Type, actual: Type) -> Iterable[tuple[Type, Type]]:
    """The parts of two types that stand at the same place."""
    if isinstance(expected, ast.TypeName) and isinstance(actual, ast.TypeName):
        if base(expected.name) == base(actual.name) and len(expected.args) == len(actual.args):
            return zip(expected.args, actual.args, strict=True)
    elif isinstance(expected, ast.TypeShape) and isinstance(actual, ast.TypeShape):
        given = {field.name: field.type for field in actual.fields}
        return [(field.type, given[field.name]) for field in expected.fields if field.name in given]
    elif (
        isinstance(expected, ast.TypeFn)
        and isinstance(actual, ast.TypeFn)
        and len(expected.params) == len(actual.params)
    ):
        return [*zip(expected.params, actual.params, strict=True), (expected.returns, actual.returns)]
    return ()


def settled(type: Type, names: Iterable[str], bound: Mapping[str, Type]) -> Type | None:
    """See `Types.settled`."""
    result = substituted(type, {**dict.fromkeys(names, HOLE), **bound})
    return None if result == HOLE else result


def arguments(params: Sequence[ast.TypeParam], args: Sequence[Type]) -> dict[str, Type]:
    """What each type parameter of a declaration stands for; `any` when the arguments aren't as many."""
    if len(params) != len(args):
        return {param.name: ANY for param in params}
    return {param.name: arg for param, arg in zip(params, args, strict=True)}


def applied(
    types: Questions, name: str, params: Sequence[ast.TypeParam], given: Iterable[tuple[Type, Type]]
) -> ast.TypeName:
    """See `Types.applied`."""
    names = {param.name for param in params}
    bound: dict[str, Type] = {}
    for expected, actual in given:
        bind(types, names, expected, actual, bound)
    return named(name, *(bound.get(param.name, HOLE) for param in params))
