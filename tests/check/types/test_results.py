"""The types of what builtins return are those that the specification lists. Spec: 03 §13, §5, 04 §32."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from harnpy.builtins import catalog
from harnpy.check.types.methods import RESULTS as METHODS
from harnpy.check.types.results import RESULTS, result_of, signature_of
from harnpy.check.types.type_nodes import Type, shown
from harnpy.cli.builtin_help import Citation, find_section
from harnpy.vm.run import methods

from .written import expression, types, written

#: Where the static type is a hint (04 §32).
HINTS = {
    "metadata_get": "dict | nil",
    "metadata_resolve": "dict | nil",
    "project_root": "string | nil",
    "range": "range",
    "regex_match": "list | nil",
}


def rows(text: str) -> dict[str, str]:
    """The type of each name in a table of results."""
    pairs = [row.split(": ") for row in text.strip().splitlines()]
    return {name: type for type, names in pairs for name in names.split()}


def section() -> str:
    found = find_section(Citation("03", "13"))
    assert found is not None
    return "\n".join(found.lines)


def listed(text: str) -> Iterator[str]:
    """The names in a list of the specification; `prefix_* (a, b)` with commas says which are meant."""
    text = re.sub(
        r"(\w+_)\* \(([\w, ]+, [\w, ]+)\)", lambda m: " ".join(m[1] + x for x in m[2].split(", ")), text
    )
    for name in re.sub(r"\([^()]*\)", "", text).split():
        if "." not in name:
            yield name


def specified() -> dict[str, str]:
    unions, _, lists = section().partition("* **string**")
    found = {name: m[2] for m in re.finditer(r"`([^`]*)` → `([^`]*)`", unions) for name in listed(m[1])}
    for m in re.finditer(r"\*\*([^*]+)\*\*: `([^`]*)`", "* **string**" + lists):
        found |= dict.fromkeys(listed(m[2]), m[1])
    return found


def test_the_table_is_the_list_of_the_specification() -> None:
    assert rows(RESULTS) == specified()


def test_no_builtin_returns_what_its_static_type_excludes() -> None:
    algebra = types()
    wrong = {}
    for name in catalog.names():
        static, declaration = result_of(name), catalog.find(name)
        if static is not None and declaration is not None and "." not in name:
            returns = written(declaration.signature().returns.replace("callable", "closure"))
            if not algebra.fits(returns, static):
                wrong[name] = shown(returns)
    assert wrong == HINTS


def test_methods_return_what_their_declarations_say() -> None:
    for line in METHODS.strip().splitlines():
        head, names = line.split(": ")
        kind, type = head.split()
        declared = methods.declared_methods(kind.lower())
        assert {declared[name].signature().returns for name in names.split()} <= {type, f"{type} | nil"}, line


@pytest.mark.parametrize(
    ("receiver", "call", "result"),
    [
        ("list<int>", "iter", "iter<int>"),
        ("dict<string, int>", "iter", "iter<Pair<string, int>>"),
        ("list", "iter", "iter"),
        ("string", "iter", "iter"),
        ("Stream<int>", "iter", "iter<int>"),
        ("generator", "iter", "iter"),
        ("list<int>", "window", "list<list<int>>"),
        ("list", "window", "list"),
        ("list<int>", "filter", "list"),
        ("dict", "filter", "dict"),
        ("{a: int}", "keys", "list"),
        ("string", "reverse", "string"),
        ("list<int>", "reverse", "list"),
        ("list<int>", "find", None),
        ("iter<int>", "take", "iter<int>"),
        ("iter<int>", "map", "iter"),
        ("iter<int>", "zip", "iter<Pair<int, any>>"),
        ("iter<int>", "enumerate", "iter<Pair<int, int>>"),
        ("iter<int>", "chunks", "iter<list<int>>"),
        ("iter", "to_list", "list<any>"),
        ("iter<int>", "to_set", "set<int>"),
        ("iter<int>", "to_dict", "dict"),
        ("iter<int>", "sum", "int"),
        ("iter<float>", "sum", "float"),
        ("iter", "sum", None),
        ("iter", "first", None),
        ("iter<int>", "first", "int | nil"),
        ("iter<int>", "for_each", "nil"),
        ("Names", "count", "int"),
        ("Point", "norm", "float"),
        ("Point", "name", None),
        ("Point", "count", None),
        ("Cell<int>", "get", "int"),
        ("Cell", "get", None),
        ("Sized", "size", "int"),
        ("any", "count", None),
        ("unknown", "count", None),
        ("string | nil", "trim", None),
    ],
)
def test_method_results(receiver: str, call: str, result: str | None) -> None:
    algebra = types(
        """
        type Names = list<string>
        struct Point { x: int }
        struct Cell<T> { value: T }
        interface Sized { fn size(self) -> int }
        impl Point {
          fn norm(self) -> float { return 1.0 }
          fn name(self) { return "" }
        }
        impl Cell { fn get(self) -> T { return self.value } }
        """
    )
    assert text_of(algebra.method_result(written(receiver), call)) == result
    assert algebra.method_result(None, call) is None


def text_of(type: Type | None) -> str | None:
    return None if type is None else shown(type)


@pytest.mark.parametrize(
    ("builtin", "argument", "result"),
    [
        ("schema_parse", '{type: "int"}', "Result<int, string>"),
        ("schema_expect", '{properties: {a: {type: "string"}}, required: ["a"]}', "{a: string}"),
        ("schema_expect", "User", "{name: string}"),
        ("llm_call_structured", "User", "{name: string}"),
        ("ask_user", "{schema: User}", "{name: string}"),
    ],
)
def test_a_schema_says_what_a_builtin_returns(builtin: str, argument: str, result: str) -> None:
    algebra = types("type User = {name: string}")
    signature = signature_of(builtin)
    assert signature is not None
    names = {param.name for param in signature.type_params}
    assert signature.params[1].type is not None
    assert signature.returns is not None
    expected = signature.params[1].type
    given = written("{schema: any}") if builtin == "ask_user" else written("dict")
    actual = algebra.seen_as(expected, expression(argument), given, lambda name: None)
    assert actual is not None
    bound: dict[str, Type] = {}
    assert algebra.bind(names, expected, actual, bound) is None
    assert text_of(algebra.settled(signature.returns, names, bound)) == result


def test_only_builtins_with_a_signature_have_one() -> None:
    assert signature_of("println") is None
    assert signature_of("schema") is None
    assert signature_of("request_approval") is not None
