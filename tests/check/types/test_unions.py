"""Aliases, unions and shapes that a field tells apart. Spec: 03 §3.3, §6."""

from __future__ import annotations

import pytest

from harnpy.check.types import Declared, Types, schemas, type_nodes
from harnpy.check.types.type_nodes import shown
from harnpy.syntax.parser import parse

from . import expansion
from .written import enter, types, written

ALIASES = """
type Id = int
type Key = "a" | "b"
type Both = Key | Id
type Box<T> = {value: T}
type Two<T, U> = {one: T, two: U}
type Chest<T> = Box<list<T>>
type Maybe<T> = T | nil
type Tree = {value: int, children: list<Tree>}
type Endless = Endless | int
type Round = {kind: "round", radius: int}
type Square<T> = {kind: "square", side: T}
"""

PRODUCT = [f"{{one: {one}, two: {two}}}" for one in ("int", "nil") for two in ("nil", "string")]


@pytest.mark.parametrize(
    ("type", "expanded"),
    [
        ("Id", "int"),
        ("list<Id>", "list<int>"),
        ("{a: Id, b?: fn(Id) -> Id}", "{a: int, b?: fn(int) -> int}"),
        ("Both", '"a" | "b" | int'),
        ("Box<Id>", "{value: int}"),
        ("Box<Key>", '{value: "a"} | {value: "b"}'),
        ("Box<int | nil>", "{value: int} | {value: nil}"),
        ("Two<Key, nil>", '{one: "a", two: nil} | {one: "b", two: nil}'),
        ("Two<int | nil, nil | string>", " | ".join(PRODUCT)),
        ("Chest<Id | nil>", "{value: list<int>} | {value: list<nil>}"),
        ("Maybe<Maybe<int>>", "int | nil"),
        ("Box<int, int>", "Box<int, int>"),
        ("Box", "Box"),
        ("Tree", "{value: int, children: list<Tree>}"),
        ("Endless", "Endless | int"),
        ("Unknown<Id>", "Unknown<int>"),
        ("int | int", "int | int"),
    ],
)
def test_expanded(type: str, expanded: str) -> None:
    assert shown(expansion.expanded(types(ALIASES), written(type))) == expanded


def test_many_unions_as_arguments_do_not_multiply_without_end() -> None:
    params = ", ".join(f"T{i}" for i in range(10))
    algebra = types(f"type Many<{params}> = {{{', '.join(f'f{i}: T{i}' for i in range(10))}}}")
    many = written(f"Many<{', '.join(['int | string | nil'] * 10)}>")
    assert shown(algebra.unfolded(many)).startswith("{f0: int | string | nil, ")


def test_aliases_without_end_stay_names_somewhere() -> None:
    algebra = types("type A<T> = A<list<T>>\ntype B<T> = B<list<T>> | int\ntype C<T> = {next: C<list<T>>}")
    for name in "ABC":
        assert algebra.members(written(f"{name}<int>"))
        assert algebra.fits(written(f"{name}<int>"), written(f"{name}<int>"))
        algebra.fits(written(f"{name}<int>"), written("string"))
        algebra.fits(written(f"{name}<int>"), written(f"{name}<string>"))
    chain = "\n".join(f"type A{i} = A{i + 1}" for i in range(3000))
    assert not types(f"{chain}\ntype A3000 = int").fits(written("A0"), written("string"))


def test_members() -> None:
    algebra = types(ALIASES)
    assert [shown(m) for m in algebra.members(written("Both | nil | Box<int>"))] == [
        '"a"',
        '"b"',
        "Id",
        "nil",
        "Box<int>",
    ]
    assert algebra.members(written("Id")) == (written("Id"),)
    assert [shown(m) for m in algebra.members(written("Endless"))] == ["int"]


@pytest.mark.parametrize(
    ("members", "union"),
    [
        ([], "never"),
        (["int"], "int"),
        (["int", "nil", "int"], "int | nil"),
        (["int | nil", "nil | string"], "int | nil | string"),
        (["never", "int"], "int"),
    ],
)
def test_union(members: list[str], union: str) -> None:
    assert shown(type_nodes.union(map(written, members))) == union


def test_without() -> None:
    without = type_nodes.without
    assert shown(without(written("int | nil"), written("nil"))) == "int"
    assert shown(without(written("int | nil | string"), written("nil"))) == "int | string"
    assert shown(without(written("nil"), written("nil"))) == "never"
    assert shown(without(written("int"), written("nil"))) == "int"


@pytest.mark.parametrize(
    ("type", "other", "intersection"),
    [
        ("int | nil", "int", "int"),
        ("int | string | nil", "string | nil", "string | nil"),
        ("dict", "{a: int}", "{a: int}"),
        ("{a: int}", "dict", "{a: int}"),
        ("list", "list<int>", "list<int>"),
        ("list<int>", "list", "list<int>"),
        ("string", '"a" | "b"', '"a" | "b"'),
        ('"a" | "b"', "string", '"a" | "b"'),
        ('"a" | "b"', '"b" | "c"', '"b"'),
        ("int", "float", "int"),
        ("float", "int", "int"),
        ("int", "string", "never"),
        ("{a: int}", "{b: int}", "{a: int, b: int}"),
        ('{k: "a", x: int} | {k: "b"}', '{k: "a"}', '{k: "a", x: int}'),
        ("Round | Square<int>", '{kind: "square"}', "Square<int>"),
        ("Point", "{x: int}", "Point"),
        ("any", "int", "any"),
        ("int", "any", "int"),
        ("unknown", "string", "string"),
        ("unknown", "{a: int}", None),
        ("Id | nil", "int", "Id"),
    ],
)
def test_intersection(type: str, other: str, intersection: str | None) -> None:
    algebra = types(ALIASES + "struct Point { x: int }")
    found = schemas.intersection(algebra, written(type), written(other))
    assert (None if found is None else shown(found)) == intersection


@pytest.mark.parametrize(
    ("type", "tagged"),
    [
        ("Round | Square<int>", ("kind", ["round", "square"])),
        ("Square<int | nil> | Round", None),
        ('{a: "x", b: 1} | {a: "x", b: 2}', ("b", [1, 2])),
        ('{a?: "x"} | {a: "y"}', None),
        ('{a: "x"} | {a: string}', None),
        ('{a: "x"} | int', None),
        ('{a: "x"}', None),
        ("int", None),
    ],
)
def test_tagged(type: str, tagged: tuple[str, list[str | int]] | None) -> None:
    found = schemas.tagged(types(ALIASES), written(type))
    assert (found and (found[0], [tag for tag, _ in found[1]])) == tagged


def test_the_variants_of_a_tagged_union_are_shapes() -> None:
    found = schemas.tagged(types(ALIASES), written("Round | Square<int>"))
    assert found is not None
    assert shown(found[1][1][1]) == '{kind: "square", side: int}'


def test_declarations_inside_pipelines_are_those_of_the_file_and_imports_come_before() -> None:
    declared = Declared()
    module = parse(
        "type Id = Hidden\nstruct Point { x: Hidden }\ninterface Sized { type Item\nfn size(self) -> Item }"
    )
    declared.enter_imported({item.name: item for item in module.items})  # type: ignore[attr-defined]
    enter(declared, "pipeline p() { type Size = float }\ntype Point = string")
    algebra = Types(declared)
    assert algebra.fits(written("float"), written("Size"))
    assert algebra.fits(written("string"), written("Point"))
    # What the module doesn't export means nothing here.
    assert algebra.fits(written("string"), written("Id"))


def test_of_imported_types_no_methods_are_known() -> None:
    declared = Declared()
    module = parse("struct Point { x: int }")
    declared.enter_imported({"Point": module.items[0]})
    enter(declared, "interface Sized { fn size(self) -> int }")
    assert Types(declared).fits(written("Point"), written("Sized"))


def test_types_declared_in_a_body_hold_there() -> None:
    outer = types("type Id = int")
    body = parse("type Id = string\nlet x = 1").items
    assert outer.inner(body[1:]) is outer
    inner = outer.inner(body)
    assert inner.fits(written("string"), written("Id"))
    assert not outer.fits(written("string"), written("Id"))
