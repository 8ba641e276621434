"""What is left out: values for which a `match` has no arm, and kinds of an `unknown` that nobody tested.

Spec: 03 §10.1, §10.2.
"""

from __future__ import annotations

from harnpy.check.narrowing import KINDS, literal_kind, literal_value
from harnpy.check.types.type_nodes import literal, shown
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Set

    from harnpy.check.findings import Findings
    from harnpy.check.types import Types
    from harnpy.check.types.type_nodes import Type
    from harnpy.syntax.ast import Node

# Whether a `match` has an arm for every value. Spec: 03 §10.1.


#: Names that are no set of values of their own, so that nothing is missing of them.
_OPEN = frozenset(("any", "unknown", "never", "_"))


def check_exhaustive(
    match: ast.Match,
    value_type: Type | None,
    object_type: Type | None,
    types: Types,
    params: Set[str],
    findings: Findings,
) -> None:
    """The error of a `match` that leaves values out.

    ``object_type`` is the type of `e` where `e.name` is matched, ``params`` are the type parameters in scope.
    """
    missing = _missing(match, value_type, object_type, types, params)
    if missing is not None:
        findings.error("non-exhaustive-match", match, f"Non-exhaustive match on {missing}")


def _missing(
    match: ast.Match, value_type: Type | None, object_type: Type | None, types: Types, params: Set[str]
) -> str | None:
    """Return what is matched, and what is missing of it, for the message."""
    patterns = [pattern for arm in match.arms for pattern in arm.patterns]
    if isinstance(match.value, ast.Member) and object_type is not None:
        enum = _enum(object_type, types) if match.value.name == "variant" else None
        if enum is not None:
            return _of_enum(enum, patterns)
        from harnpy.check.types.schemas import tagged

        variants = tagged(types, object_type)
        if variants is not None and variants[0] == match.value.name:
            values = [value for value, _ in variants[1]]
            return _of_literals("tagged shape union: missing variants", values, patterns)
    if value_type is None:
        return None
    enum = _enum(value_type, types)
    return _of_enum(enum, patterns) if enum is not None else _of_union(value_type, patterns, types, params)


def _enum(type: Type, types: Types) -> ast.EnumDecl | None:
    """The enum that a type names, unless it is generic."""
    expanded = types.unfolded(type)
    if not isinstance(expanded, ast.TypeName) or expanded.args:
        return None
    enum = types.declared.enums.get(expanded.name)
    return enum if enum is not None and not enum.type_params else None


def _of_enum(enum: ast.EnumDecl, patterns: Iterable[ast.Node]) -> str | None:
    def variant(pattern: ast.Node) -> str | None:
        """The variant that a pattern names."""
        if isinstance(pattern, ast.Str):
            return pattern.value
        if isinstance(pattern, ast.Member) and isinstance(pattern.object, ast.Name):
            return pattern.name if pattern.object.name == enum.name else None
        return None

    left = _left([variant.name for variant in enum.variants], patterns, variant)
    return f"enum {enum.name}: missing variants {_literals(left)}" if left else None


def _of_union(type: Type, patterns: Iterable[ast.Node], types: Types, params: Set[str]) -> str | None:
    members = {member: types.unfolded(member) for member in types.members(type)}
    values = [member.value for member in members.values() if isinstance(member, ast.TypeLiteral)]
    if len(members) < 2:
        return None
    if len(values) == len(members):
        return _of_literals("literal union: missing", values, patterns)
    # By the kind that a literal covers: the member as it is written.
    kinds = {
        member.name: shown(written)
        for written, member in members.items()
        if isinstance(member, ast.TypeName) and not member.args and member.name not in _OPEN | params
    }
    left = _left(kinds, patterns, literal_kind) if len(kinds) == len(members) else None
    return f"union type: missing {', '.join(kinds[str(kind)] for kind in left)}" if left else None


def _of_literals(what: str, values: Iterable[str | int], patterns: Iterable[ast.Node]) -> str | None:
    left = _left(values, patterns, literal_value)
    return f"{what} {_literals(left)}" if left else None


def _left(
    values: Iterable[str | int],
    patterns: Iterable[ast.Node],
    covered: Callable[[ast.Node], str | int | None],
) -> list[str | int] | None:
    """The values that no pattern covers, or None.

    A pattern that isn't understood may match anything: a name, a list, a dict, a variant with its payload.
    """
    seen: set[str | int | None] = set()
    for pattern in patterns:
        value = covered(pattern)
        if value is None and literal_kind(pattern) is None:
            return None
        seen.add(value)
    return [value for value in values if value not in seen] or None


def _literals(values: Iterable[str | int]) -> str:
    return ", ".join(shown(literal(value)) for value in values)


# An `unknown` of which some kinds were tested and others forgotten, where a path ends. Spec: 03 §10.2.


def check_coverage(
    site: str, node: Node, unknowns: Iterable[tuple[str, Set[str]]], findings: Findings
) -> None:
    """Warn at ``node``, which ends the path, of each variable whose remaining kinds nobody has thought of.

    ``site`` is ``throw``, ``unreachable()`` or ``f()``; ``unknowns`` are the variables that are `unknown`
    there, and the kinds that are ruled out for each.
    """
    for name, ruled_out in unknowns:
        left = [kind for kind in KINDS if kind not in ruled_out]
        if ruled_out and left:
            findings.warn(
                "unnarrowed-unknown",
                node,
                f"`{site}` reached but `{name}: unknown` was not fully narrowed"
                f" — uncovered concrete type(s): {', '.join(left)}",
            )
