"""What is learnt of a variable is true of its value: facts of conditions and of arms against the run.

A value, a type that it has, a condition: the run says which side is taken, and the value must be of the type
that the facts of that side give. Two facts promise less than this by what the table of 03 §6 says, and such
cases aren't drawn: that what is falsy is nil, and that what fails a schema is of no type that fits it (a
`dict` fits a shape, an `int` a `float`).
"""

from __future__ import annotations

from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from harnpy import Vm
from harnpy.check.narrowing import arm_facts, facts_of
from harnpy.check.types.schemas import schema
from harnpy.check.types.type_nodes import Type, shown
from harnpy.syntax import ast
from tests.check.types.written import expression, types, written
from tests.counts import COUNT

#: Cases are run together, since a run costs more than its cases.
TOGETHER = 40

#: The message names the case that fails: making forty cases smaller would take minutes.
SETTINGS = settings(
    max_examples=COUNT.examples(2),
    deadline=None,
    derandomize=not COUNT.campaign,
    phases=[Phase.generate],
)

DECLARED = """
type User = {name: string, mail?: string}
type Mode = "on" | "off" | 3
"""
#: What values each type has, as the language writes them.
VALUES = {
    "int": ["0", "1", "7", "-2"],
    "float": ["0.5", "-1.5"],
    "string": ['""', '"a"', '"on"'],
    "bool": ["true", "false"],
    "nil": ["nil"],
    "list": ["[]", '[1, "a"]'],
    "list<int>": ["[]", "[1, 2]"],
    "dict": ["{}", "{z: 1}", '{name: "n"}'],
    "closure": ["{ q -> q }"],
    "Mode": ['"on"', '"off"', "3"],
    "User": ['{name: "n"}', '{name: "n", mail: "m"}'],
    '{tag: "p", n: int}': ['{tag: "p", n: 1}'],
    '{tag: "q"}': ['{tag: "q"}', '{tag: "q", n: 2}'],
    "{tag: 3, s?: string}": ["{tag: 3}", '{tag: 3, s: "s"}'],
}
SHAPES = [text for text in VALUES if text.startswith("{")]
KINDS = ["int", "string", "float", "bool", "nil", "list", "dict", "closure", "bytes"]
FALSY = ("0", '""', "false", "[]", "{}")
LITERALS = ["0", "1", "-2", "3", '"a"', '"on"', '"off"', "true", "false", "nil", "0.5"]

Case = tuple[str, str, str]


@st.composite
def cases(draw: st.DrawFn, test: str) -> Case:
    """The type of x, its value, and what is done with it: a condition or the arms of a match."""
    names = draw(st.sampled_from([list(VALUES), SHAPES]))
    members = draw(st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True))
    value = draw(st.sampled_from(VALUES[draw(st.sampled_from(members))]))
    type = " | ".join(members) if draw(st.integers(0, 5)) else "unknown"
    what = _conditions(members, value) if test == "if" else _arms(members)
    return type, value, draw(what)


def _conditions(members: list[str], value: str) -> st.SearchStrategy[str]:
    kinds = st.sampled_from(KINDS)
    atoms = [
        st.sampled_from(["x == nil", "nil != x"]),
        st.builds('type_of(x) {} "{}"'.format, st.sampled_from(["==", "!="]), kinds),
        st.builds(
            'schema_is(x, {{type: "{}"}})'.format,
            st.sampled_from(["int", "string", "bool", "nil", "list", "dict"]),
        ),
    ]
    if value not in FALSY:
        atoms.append(st.just("x"))
    if "dict" not in members:
        atoms.append(st.just("is_type(x, User)"))
    if all(member in SHAPES for member in members):
        tags = st.sampled_from(['"p"', '"q"', "3", '"z"'])
        atoms.append(st.builds("x.tag {} {}".format, st.sampled_from(["==", "!="]), tags))
        atoms.append(st.just('x.has("s")'))

    def larger(part: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        both = st.builds("({} {} {})".format, part, st.sampled_from(["&&", "||"]), part)
        return both | st.builds("!({})".format, part)

    return st.recursive(st.one_of(atoms), larger, max_leaves=4)


def _arms(members: list[str]) -> st.SearchStrategy[str]:
    """A whole `match`, each arm giving its number."""
    tagged = all(member in SHAPES for member in members)
    literals = ['"p"', '"q"', "3", '"z"'] if tagged else LITERALS
    patterns = st.lists(st.sampled_from(literals), min_size=1, max_size=3, unique=True).map(" | ".join)

    def written(arms: list[str]) -> str:
        blocks = "\n".join(f"  {arm} -> {{ {number} }}" for number, arm in enumerate([*arms, "_"]))
        return f"match {'x.tag' if tagged else 'x'} {{\n{blocks}\n}}"

    return st.lists(patterns, min_size=1, max_size=4).map(written)


def _run(bodies: list[tuple[str, str]]) -> list[Any]:
    """What each expression about `x` gives for its value."""
    functions = "\n".join(f"fn f{number}(x) {{ {body} }}" for number, (_, body) in enumerate(bodies))
    calls = ", ".join(f"f{number}({value})" for number, (value, _) in enumerate(bodies))
    results = Vm().run_source(f"{DECLARED}\n{functions}\nreturn [{calls}]")
    assert isinstance(results, list)
    return results


def belongs(value: ast.Node, type: Type) -> bool:
    """Whether the value of a literal is of a type."""
    type = KNOWN.unfolded(type)
    if isinstance(type, ast.TypeUnion):
        return any(belongs(value, member) for member in type.members)
    if isinstance(type, ast.TypeLiteral):
        return isinstance(value, ast.Str | ast.Int) and value.value == type.value
    if isinstance(type, ast.TypeShape):
        return isinstance(value, ast.Dict) and _has_fields(value, type)
    assert isinstance(type, ast.TypeName)
    if isinstance(value, ast.List) and type.name == "list":
        return all(belongs(item, arg) for item in value.items for arg in type.args)
    return type.name in ("any", "unknown", NAMES[value.__class__])


NAMES: dict[type[ast.Node], str] = {
    ast.Int: "int",
    ast.Unary: "int",
    ast.Float: "float",
    ast.Str: "string",
    ast.Bool: "bool",
    ast.Nil: "nil",
    ast.List: "list",
    ast.Dict: "dict",
    ast.Closure: "closure",
}
KNOWN = types(DECLARED)


def _has_fields(value: ast.Dict, shape: ast.TypeShape) -> bool:
    given = {entry.key.value: entry.value for entry in value.entries}  # type: ignore[attr-defined]
    return all(
        belongs(given[field.name], field.type) if field.name in given else field.optional
        for field in shape.fields
    )


def _value(text: str) -> ast.Node:
    value = expression(text)
    # A negative number: only its kind matters.
    return value.operand if isinstance(value, ast.Unary) else value


@SETTINGS
@given(st.lists(cases("if"), min_size=TOGETHER, max_size=TOGETHER))
def test_the_side_that_is_taken(drawn: list[Case]) -> None:
    taken = _run([(value, f"if {cond} {{ return true }}\nreturn false") for _, value, cond in drawn])
    for (type, value, cond), true in zip(drawn, taken, strict=True):
        sides = facts_of(
            expression(cond),
            {"x": written(type)}.get,
            lambda node: schema(KNOWN, node, lambda name: None),
            KNOWN,
        )
        learnt = sides[0 if true else 1]
        known = learnt.types.get("x", written(type))
        assert belongs(_value(value), known), f"{type} is {shown(known)} where {cond} is {true}: {value}"
        assert NAMES[_value(value).__class__] not in learnt.ruled_out.get("x", ()), f"{cond}: {value}"


@SETTINGS
@given(st.lists(cases("match"), min_size=TOGETHER, max_size=TOGETHER))
def test_the_arm_that_is_taken(drawn: list[Case]) -> None:
    taken = _run([(value, f"return {text}") for _, value, text in drawn])
    for (type, value, text), number in zip(drawn, taken, strict=True):
        match = expression(text)
        assert isinstance(match, ast.Match)
        learnt = arm_facts(match, {"x": written(type)}.get, KNOWN)[number]
        known = learnt.types.get("x", written(type))
        assert belongs(_value(value), known), f"{type} is {shown(known)} in arm {number} of {text}: {value}"
