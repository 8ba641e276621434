"""`match`: what its arms say of a variable, and patterns that can't be right. Spec: 03 §6, §8.1, §8.2."""

from __future__ import annotations

from harnpy.check.narrowing.facts import NO_FACTS, Facts
from harnpy.check.narrowing.literals import kind_of, literal_kind, literal_value
from harnpy.check.types.names import shown
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.check.findings import Findings
    from harnpy.check.narrowing.facts import Variables
    from harnpy.check.types import Types
    from harnpy.check.types.names import Type

#: The kinds whose values are equal to no literal of another kind. Int and float literals are one kind.
_JUDGED = {
    "int": "number",
    "float": "number",
    "string": "string",
    "bool": "bool",
    "nil": "nil",
    "bytes": "bytes",
    "list": "list",
    "dict": "dict",
    "set": "set",
    "closure": "closure",
    "duration": "duration",
    "range": "range",
}


def arm_facts(match: ast.Match, arm: ast.Arm, variables: Variables, types: Types) -> Facts:
    """What holds of the matched variable in the guard and the body of an arm."""
    value = match.value
    subject = value.object if isinstance(value, ast.Member) and not value.optional else value
    type = variables(subject.name) if isinstance(subject, ast.Name) else None
    if not isinstance(subject, ast.Name) or type is None:
        return NO_FACTS
    if isinstance(value, ast.Member):
        chosen = _tagged(value.name, arm.patterns, type, types)
    else:
        chosen = _equal(arm.patterns, types.members(type))
    if chosen is None:
        return NO_FACTS
    facts = Facts()
    facts.types[subject.name] = types.union(chosen)
    return facts


def _tagged(tag: str, patterns: Sequence[ast.Node], type: Type, types: Types) -> list[Type] | None:
    """The variants of a tagged union whose tags the patterns name."""
    tagged = types.tagged(type)
    wanted = [literal_value(pattern) for pattern in patterns]
    if tagged is None or tagged[0] != tag or None in wanted:
        return None
    return [variant for value, variant in tagged[1] if value in wanted]


def _equal(patterns: Sequence[ast.Node], members: Sequence[Type]) -> list[Type] | None:
    """The members of a union that the literals among which the value is are of."""
    if len(members) < 2:
        return None
    chosen: list[Type] = []
    for pattern in patterns:
        alternative = _alternative(pattern, members)
        if not alternative:
            return None
        chosen += alternative
    return [member for member in members if member in chosen]


def _alternative(pattern: ast.Node, members: Sequence[Type]) -> list[Type]:
    """The equal literal member, or those that are named by the literal's kind."""
    value, kind = literal_value(pattern), literal_kind(pattern)
    named: list[Type] = [m for m in members if isinstance(m, ast.TypeName) and m.name == kind]
    if value is None:
        return named
    return [m for m in members if isinstance(m, ast.TypeLiteral) and m.value == value] or named


def check_arm(arm: ast.Arm, value_type: Type | None, types: Types, findings: Findings) -> None:
    """What is wrong with the patterns of an arm: alternatives that aren't literals, wrong literals."""
    if len(arm.patterns) > 1:
        for pattern in arm.patterns:
            if literal_kind(pattern) is None and not _is_anything(pattern):
                findings.error(
                    "or-pattern",
                    pattern,
                    "Or-pattern alternatives must be literal patterns (string, int, float, bool, nil,"
                    " or `_`). Identifier bindings and destructuring patterns are not allowed inside `|`.",
                )
    for pattern in arm.patterns:
        kind = literal_kind(pattern)
        if value_type is None or kind is None or kind == "nil":
            continue
        held = [_JUDGED.get(kind_of(types.unfolded(m)) or "") for m in types.members(value_type)]
        if None not in held and _JUDGED[kind] not in held:
            findings.warn(
                "literal-pattern",
                pattern,
                f"Match pattern type mismatch: matching {shown(value_type)} against {kind} literal",
            )


def _is_anything(pattern: ast.Node) -> bool:
    return isinstance(pattern, ast.Name) and pattern.name == "_"
