"""`match`: what its arms say of a variable, and patterns that can't be right. Spec: 03 §6, §8.1, §8.2."""

from __future__ import annotations

from harnpy.check.narrowing.facts import NO_FACTS, Facts
from harnpy.check.narrowing.literals import kind_of, literal_kind, literal_value
from harnpy.check.types.names import shown
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
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


def arm_facts(match: ast.Match, variables: Variables, types: Types) -> list[Facts]:
    """What holds of the matched variable in the guard and the body of each arm."""
    value = match.value
    subject = value.object if isinstance(value, ast.Member) and not value.optional else value
    type = variables(subject.name) if isinstance(subject, ast.Name) else None
    if not isinstance(subject, ast.Name) or type is None:
        return [NO_FACTS] * len(match.arms)
    choices = _variants(types, type, value.name) if isinstance(value, ast.Member) else _members(types, type)
    facts = []
    for arm in match.arms:
        chosen = [choices.equal(pattern) for pattern in arm.patterns]
        facts.append(Facts())
        if all(chosen):
            facts[-1].types[subject.name] = types.union(member for part in chosen for member in part)
    return facts


class _Choices:
    """What the value may be, by the literals that it is compared with."""

    def __init__(self) -> None:
        self.values: dict[str | int | None, list[Type]] = {}
        self.kinds: dict[str | None, list[Type]] = {}

    def equal(self, pattern: ast.Node) -> list[Type]:
        """What is of the literal that a pattern is, or else of its kind; none when that says nothing."""
        return self.values.get(literal_value(pattern)) or self.kinds.get(literal_kind(pattern)) or []


def _members(types: Types, type: Type) -> _Choices:
    """The members of a union; a type that is no union leaves no choice."""
    choices = _Choices()
    members = types.members(type)
    for member in members if len(members) > 1 else ():
        if isinstance(member, ast.TypeLiteral):
            choices.values.setdefault(member.value, []).append(member)
        elif isinstance(member, ast.TypeName):
            choices.kinds.setdefault(member.name, []).append(member)
    return choices


def _variants(types: Types, type: Type, tag: str) -> _Choices:
    """The variants of a tagged union, when ``tag`` is what tells them apart."""
    choices = _Choices()
    field, variants = types.tagged(type) or ("", [])
    choices.values = {value: [variant] for value, variant in variants if field == tag}
    return choices


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
