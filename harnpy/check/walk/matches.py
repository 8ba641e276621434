"""`match`: its value, its arms in order, whether they leave nothing out. Spec: 03 §6, §8.1, §10.1; 02 §12."""

from __future__ import annotations

from harnpy.check.narrowing.exhaustiveness import check_exhaustive
from harnpy.check.narrowing.matching import arm_facts, check_arm
from harnpy.check.scopes import Binding, Scope
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.check.narrowing.facts import Facts
    from harnpy.check.walk.visitor import Walk


def match(walk: Walk, node: ast.Match) -> None:
    walk.visit(node.value)
    value_type = walk.type(node.value)
    object_type = walk.type(node.value.object) if isinstance(node.value, ast.Member) else None
    for arm, facts in zip(node.arms, arm_facts(node, walk.scope.type_of, walk.types), strict=True):
        _arm(walk, arm, facts, value_type)
    check_exhaustive(node, value_type, object_type, walk.types, walk.function.type_params, walk.findings)


def _arm(walk: Walk, arm: ast.Arm, facts: Facts, value_type: ast.Node | None) -> None:
    outer = walk.scope
    walk.scope = inner = Scope(outer)
    for pattern in arm.patterns:
        for part in _parts(walk, pattern, alone=len(arm.patterns) == 1):
            if isinstance(part, ast.Name):
                inner.declare(Binding(part.name, part))
            else:
                walk.visit(part)
    check_arm(arm, value_type, walk.types, walk.findings)
    inner.narrow({n: t for n, t in facts.types.items() if n not in inner.names}, facts.ruled_out)
    walk.optional(arm.guard)
    walk.block(arm.body)
    walk.scope = outer


def _parts(walk: Walk, pattern: ast.Node, *, alone: bool) -> Iterator[ast.Node]:
    """What a pattern binds (names) and compares (all else)."""
    if not alone:
        if not isinstance(pattern, ast.Name):
            yield pattern
    elif isinstance(pattern, ast.Dict | ast.List) and not _is_computed(pattern):
        if isinstance(pattern, ast.Dict):
            yield from (entry.value for entry in pattern.entries if isinstance(entry, ast.DictEntry))
        else:
            yield from pattern.items
    elif _is_variant(walk, pattern) and not _is_computed(pattern):
        yield from getattr(pattern, "args", ())
    else:
        yield pattern


def _is_variant(walk: Walk, pattern: ast.Node) -> bool:
    return (
        isinstance(pattern, ast.Member | ast.MethodCall)
        and isinstance(pattern.object, ast.Name)
        and not pattern.optional
        and pattern.object.name in walk.environment.enums_anywhere
    )


def _is_computed(pattern: ast.Node) -> bool:
    """Whether a pattern has a spread or a computed key: then it is a value to compare with."""
    return any(
        isinstance(part, ast.Spread) or (isinstance(part, ast.DictEntry) and part.computed)
        for part in pattern.children()
    )
