"""What builtins and methods return, as the checks read it from their declarations. Spec: 03 §5, §8.3, §13."""

from __future__ import annotations

import subprocess
import sys

import pytest

from harnpy.builtins import catalog
from harnpy.check.types import fitting
from harnpy.check.types.methods import RESULTS as METHODS
from harnpy.check.types.methods import method_result
from harnpy.check.types.schemas import seen_as
from harnpy.check.types.signatures import certain_result_of, generic, result_of
from harnpy.check.types.type_nodes import Type, shown
from harnpy.vm.declare import Signature
from harnpy.vm.run import methods
from tests.check.programs import knowledge

from .written import expression, types, written


@pytest.mark.parametrize(
    ("returns", "static", "certain"),
    [
        ("int", "int", "int"),
        ("string | nil", "string | nil", "string | nil"),
        ("int?", "int", "int | nil"),
        ("list<string>", "list<string>", "list<string>"),
        ("never", "never", "never"),
        ("any", None, None),
        ("int | float", None, None),
        ("dict | list | nil", None, None),
        ("sync_permit | nil", None, None),
        ("{name: string, age?: int}", "{name: string, age?: int}", "{name: string, age?: int}"),
    ],
)
def test_a_result_is_what_the_signature_says(returns: str, static: str | None, certain: str | None) -> None:
    signature = Signature(f"f(value: any) -> {returns}")
    assert text_of(result_of(signature)) == static
    assert text_of(certain_result_of(signature)) == certain


@pytest.mark.parametrize(
    ("returns", "unbound"), [("T", None), ("Result<T, any>", "Result"), ("{data: T}", "dict")]
)
def test_what_is_left_of_a_result_whose_parameter_is_unbound(returns: str, unbound: str | None) -> None:
    assert text_of(result_of(Signature(f"f<T>(schema: Schema<T>) -> {returns}"))) == unbound


def test_what_is_no_builtin_has_no_result() -> None:
    assert knowledge().signature("no_such_name") is None
    assert result_of(None) is None


def test_no_module_of_builtins_is_imported_for_what_builtins_return() -> None:
    script = (
        "import sys; from harnpy import Vm; from harnpy.builtins import catalog;"
        "from harnpy.check.types.signatures import result_of; known = Vm().builtins.knowledge();"
        "before = set(sys.modules); results = [result_of(known.signature(name)) for name in catalog.names()];"
        "loaded = [name for name in {*sys.modules} - before if name.startswith('harnpy.builtins')];"
        "print(len(results), loaded)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == f"{len(catalog.names())} []\n"


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
    assert text_of(method_result(algebra, written(receiver), call)) == result
    assert method_result(algebra, None, call) is None


def text_of(type: Type | None) -> str | None:
    return None if type is None else shown(type)


@pytest.mark.parametrize(
    ("builtin", "argument", "result"),
    [
        ("schema_parse", '{type: "int"}', "Result<int, any>"),
        ("schema_expect", '{properties: {a: {type: "string"}}, required: ["a"]}', "{a: string}"),
        ("schema_expect", "User", "{name: string}"),
        ("llm_call_structured", "User", "{name: string}"),
        ("ask_user", "{schema: User}", "{name: string}"),
    ],
)
def test_a_schema_says_what_a_builtin_returns(builtin: str, argument: str, result: str) -> None:
    algebra = types("type User = {name: string}")
    declared = knowledge().signature(builtin)
    assert declared is not None
    signature = generic(declared)
    assert signature is not None
    names = {param.name for param in signature.type_params}
    assert signature.params[1].type is not None
    assert signature.returns is not None
    expected = signature.params[1].type
    given = written("{schema: any}") if builtin == "ask_user" else written("dict")
    actual = seen_as(algebra, expected, expression(argument), given, lambda name: None)
    assert actual is not None
    bound: dict[str, Type] = {}
    assert fitting.bind(algebra, names, expected, actual, bound) is None
    assert text_of(fitting.settled(signature.returns, names, bound)) == result


def test_a_builtin_without_type_parameters_is_not_generic() -> None:
    assert generic(Signature("f(value: any) -> int")) is None
