"""What a condition or a pattern says of a variable's type. Spec: 03 §6.

Functions over trees and types: the facts of conditions and arms, and blocks that surely leave. The walk of a
program puts the facts into its scopes.
"""

from __future__ import annotations

from harnpy.check.types.type_nodes import NIL, is_named, named, shown, union
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from harnpy.check.findings import Findings
    from harnpy.check.types import Types
    from harnpy.check.types.type_nodes import Type

    #: The type that a variable has where it is asked for, if any.
    Variables = Callable[[str], Type | None]
    #: The type that the values of a schema have, if the expression can be read as one.
    Schemas = Callable[[ast.Node], Type | None]

# Blocks that surely leave: what stands behind them is reached by the other way alone. Spec: 03 §6.


_LEAVING = ast.Return | ast.Throw | ast.Break | ast.Continue


def exits(block: ast.Block) -> bool:
    """Return True if the block *definitely exits*. Loops, `match`, `guard` and `try` don't count."""
    return any(statement_exits(statement) for statement in block.statements)


def statement_exits(statement: ast.Node) -> bool:
    """Return True if nothing behind a statement is reached: it leaves, or all branches of an `if` do."""
    if not isinstance(statement, ast.If):
        return isinstance(statement, _LEAVING)
    otherwise = statement.otherwise
    if otherwise is None or not exits(statement.then):
        return False
    return exits(otherwise) if isinstance(otherwise, ast.Block) else statement_exits(otherwise)


# What conditions and patterns compare with: literals, and the kinds of values. Spec: 03 §3.1, §6, §10.1.


def literal_value(node: ast.Node) -> str | int | None:
    """The value of a string or int literal, which a literal type may have."""
    if isinstance(node, ast.Str | ast.Int):
        return node.value
    if isinstance(node, ast.Unary) and node.op == "-" and isinstance(node.operand, ast.Int):
        return -node.operand.value
    return None


def literal_kind(node: ast.Node) -> str | None:
    """The type of a literal, by name: `string`, `int`, `float`, `bool` or `nil`."""
    if isinstance(node, ast.Unary) and node.op == "-":
        node = node.operand
        if not isinstance(node, ast.Int | ast.Float):
            return None
    return _KINDS.get(type(node))


_KINDS: dict[type[ast.Node], str] = {
    ast.Str: "string",
    ast.Int: "int",
    ast.Float: "float",
    ast.Bool: "bool",
    ast.Nil: "nil",
}


def kind_of(type: ast.Node) -> str | None:
    """Return what `type_of` says of the values of a type without aliases, if that is one word; else its name.

    A shape may hold a struct as well as a dict, and a function type a builtin as well as a closure.
    """
    if isinstance(type, ast.TypeName):
        return type.name
    if isinstance(type, ast.TypeLiteral):
        return "string" if isinstance(type.value, str) else "int"
    if isinstance(type, ast.TypeShape):
        return "dict"
    return "closure" if isinstance(type, ast.TypeFn) else None


# What holds of the variables where a condition is true, and where it is false. Spec: 03 §6.


#: The kinds that `type_of` can be asked for in a condition that narrows.
KINDS = ("int", "string", "float", "bool", "nil", "list", "dict", "closure", "bytes")


#: What tests a value against a schema.
SCHEMA_TESTS = ("schema_is", "is_type")


class Facts:
    """``types``: by name the type that a variable has; ``ruled_out``: the kinds that an `unknown` is not."""

    __slots__ = ("ruled_out", "types")

    def __init__(self) -> None:
        self.types: dict[str, Type] = {}
        self.ruled_out: dict[str, frozenset[str]] = {}

    def __bool__(self) -> bool:
        return bool(self.types or self.ruled_out)

    def without(self, names: Collection[str]) -> Facts:
        """The facts about other variables than those ``names``."""
        left = Facts()
        left.types = {name: type for name, type in self.types.items() if name not in names}
        left.ruled_out = {name: kinds for name, kinds in self.ruled_out.items() if name not in names}
        return left


#: Nothing is known.
NO_FACTS = Facts()


def facts_of(cond: ast.Node, variables: Variables, schemas: Schemas, types: Types) -> tuple[Facts, Facts]:
    """The facts of the true side and of the false side of a condition."""
    return (
        _Side(variables, schemas, types).learnt(cond, True),
        _Side(variables, schemas, types).learnt(cond, False),
    )


def tests(cond: ast.Node, holds: bool) -> Iterator[tuple[ast.Node, bool]]:
    """The tests in a condition whose outcome is known when its own is, in the order of the run."""
    # A stack of our own: `a && b && …` is a tree as deep as it has terms.
    parts = [(cond, holds)]
    while parts:
        part, true = parts.pop()
        if isinstance(part, ast.Unary) and part.op == "!":
            parts.append((part.operand, not true))
        elif isinstance(part, ast.Binary) and part.op in ("&&", "||"):
            # Of a false `&&` and a true `||` nobody knows which operand made it so.
            if true == (part.op == "&&"):
                parts += [(part.right, true), (part.left, true)]
        else:
            yield part, true


def after_if(sides: tuple[Facts, Facts], then_exits: bool, else_exits: bool) -> Facts:
    """Return what holds after an `if`: the facts of the one branch that doesn't definitely exit."""
    if then_exits == else_exits:
        return NO_FACTS
    return sides[1] if then_exits else sides[0]


def expected_by(statement: ast.Call, schemas: Schemas) -> Facts:
    """Return what holds after a call of `schema_expect(x, S)`: the value of x has the type of S."""
    facts = Facts()
    if len(statement.args) > 1:
        subject, type = statement.args[0], schemas(statement.args[1])
        if isinstance(subject, ast.Name) and type is not None:
            facts.types[subject.name] = type
    return facts


class _Side:
    """One side of a condition. Its parts are read in the order of the run, each knowing those before it."""

    def __init__(self, variables: Variables, schemas: Schemas, types: Types) -> None:
        self.facts = Facts()
        self._variables = variables
        self._schemas = schemas
        self._types = types

    def learnt(self, cond: ast.Node, holds: bool) -> Facts:
        """The facts when ``cond`` is ``holds``."""
        for test, true in tests(cond, holds):
            self._read(test, true)
        return self.facts

    def _read(self, test: ast.Node, true: bool) -> None:
        if isinstance(test, ast.Name):
            self._nil(test.name, not true, truthiness=True)
        elif isinstance(test, ast.Binary) and test.op in ("==", "!="):
            equal = true == (test.op == "==")
            if not self._equal(test.left, test.right, equal):
                self._equal(test.right, test.left, equal)
        elif isinstance(test, ast.MethodCall) and test.name == "has" and true:
            self._has(test)
        elif isinstance(test, ast.Call) and test.name in SCHEMA_TESTS and len(test.args) > 1:
            self._schema(test.args[0], test.args[1], true)

    def _equal(self, subject: ast.Node, value: ast.Node, equal: bool) -> bool:
        """Read ``subject == value``; whether it has a form that narrows."""
        if isinstance(subject, ast.Name) and isinstance(value, ast.Nil):
            self._nil(subject.name, equal)
        elif isinstance(subject, ast.Call) and isinstance(value, ast.Str):
            self._type_of(subject, value.value, equal)
        elif isinstance(subject, ast.Member) and literal_value(value) is not None:
            self._tag(subject, value, equal)
        else:
            return False
        return True

    def _nil(self, name: str, is_nil: bool, *, truthiness: bool = False) -> None:
        type = self._type(name)
        if type is None:
            return
        members = self._types.members(type)
        others = [member for member in members if not is_named(member, "nil")]
        if truthiness and not 0 < len(others) < len(members):
            return
        if len(members) == 1 and others:
            return
        self._choose(name, members, [NIL] if is_nil else others)

    def _type_of(self, call: ast.Call, kind: str, equal: bool) -> None:
        """`type_of(x) == kind`."""
        if call.name != "type_of" or len(call.args) != 1 or kind not in KINDS:
            return
        subject = call.args[0]
        type = self._type(subject.name) if isinstance(subject, ast.Name) else None
        if not isinstance(subject, ast.Name) or type is None:
            return
        if is_named(type, "unknown"):
            self._unknown(subject.name, kind, equal)
            return
        members = self._types.members(type)
        of_kind = [member for member in members if kind_of(self._types.unfolded(member)) == kind]
        if not equal:
            # A shape may be a struct, and a function a builtin: neither is ruled out by its kind.
            self._choose(subject.name, members, [m for m in members if not self._is_surely(m, kind)])
        elif of_kind:
            self._choose(subject.name, members, of_kind)

    def _is_surely(self, member: Type, kind: str) -> bool:
        type = self._types.unfolded(member)
        return kind_of(type) == kind and not isinstance(type, ast.TypeShape | ast.TypeFn)

    def _unknown(self, name: str, kind: str, equal: bool) -> None:
        if equal:
            self.facts.types[name] = named(kind)
        else:
            self.facts.ruled_out[name] = self.facts.ruled_out.get(name, frozenset()) | {kind}

    def _tag(self, tag: ast.Member, value: ast.Node, equal: bool) -> None:
        """`x.tag == value`."""
        if not isinstance(tag.object, ast.Name) or tag.optional:
            return
        from harnpy.check.types.schemas import tagged

        type = self._type(tag.object.name)
        variants = tagged(self._types, type) if type is not None else None
        if variants is not None and variants[0] == tag.name:
            wanted = literal_value(value)
            chosen = [variant for given, variant in variants[1] if (given == wanted) == equal]
            self._choose(tag.object.name, [variant for _, variant in variants[1]], chosen)

    def _has(self, call: ast.MethodCall) -> None:
        """`x.has("k")`: what is there isn't optional."""
        if not isinstance(call.object, ast.Name) or call.optional or len(call.args) != 1:
            return
        type, key = self._type(call.object.name), call.args[0]
        shape = self._types.unfolded(type) if type is not None else None
        if not isinstance(shape, ast.TypeShape) or not isinstance(key, ast.Str):
            return
        if any(field.name == key.value and field.optional for field in shape.fields):
            fields = tuple(
                ast.ShapeField(f.start, f.end, f.name, f.optional and f.name != key.value, f.type)
                for f in shape.fields
            )
            self.facts.types[call.object.name] = ast.TypeShape(shape.start, shape.end, fields)

    def _schema(self, subject: ast.Node, schema: ast.Node, true: bool) -> None:
        """`schema_is(x, S)`."""
        type = self._type(subject.name) if isinstance(subject, ast.Name) else None
        expected = self._schemas(schema) if type is not None else None
        if not isinstance(subject, ast.Name) or type is None or expected is None:
            return
        members = self._types.members(type)
        if true:
            from harnpy.check.types.schemas import intersection

            both = intersection(self._types, type, expected)
            if both is not None:
                self._choose(subject.name, [type], [both])
        elif len(members) > 1:
            rest = [member for member in members if not self._types.fits(member, expected)]
            self._choose(subject.name, members, rest)

    def _type(self, name: str) -> Type | None:
        """Return what a variable is known to be so far. Of `any` nothing is known."""
        type = self.facts.types.get(name) or self._variables(name)
        return None if is_named(type, "any") else type

    def _choose(self, name: str, members: Sequence[Type], chosen: Sequence[Type]) -> None:
        """Of the members of a variable's type these are left; when those are all it stays as written."""
        if list(chosen) != list(members):
            self.facts.types[name] = union(chosen)


# `match`: what its arms say of a variable, and patterns that can't be right. Spec: 03 §6, §8.1, §8.2.


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
    """Return what holds of the matched variable in the guard and the body of each arm."""
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
            facts[-1].types[subject.name] = union(member for part in chosen for member in part)
    return facts


class _Choices:
    """The types that a value may have, by the literals that it is compared with."""

    def __init__(self) -> None:
        self.values: dict[str | int | None, list[Type]] = {}
        self.kinds: dict[str | None, list[Type]] = {}

    def equal(self, pattern: ast.Node) -> list[Type]:
        """Return the types of a pattern's literal, or else of its kind; none if that says nothing."""
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
    from harnpy.check.types.schemas import tagged

    field, variants = tagged(types, type) or ("", [])
    choices.values = {value: [variant] for value, variant in variants if field == tag}
    return choices


def check_arm(arm: ast.Arm, value_type: Type | None, types: Types, findings: Findings) -> None:
    """Report alternatives of an arm that aren't literals, and literals that the value can't be."""
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
