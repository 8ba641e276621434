"""Schema dicts as types. Spec: 03 §8.3."""

from __future__ import annotations

import pytest

from harnpy.check.types import schemas
from harnpy.check.types.type_nodes import Type, element, field, item, pair, part, shown

from .written import expression, types, written

LOCALS = {
    "literal": expression('{type: "int"}'),
    "properties": expression('{a: {type: "int"}}'),
    "User": expression('{type: "bool"}'),
}


def text_of(type: Type | None) -> str | None:
    return None if type is None else shown(type)


@pytest.mark.parametrize(
    ("schema", "type"),
    [
        ('{type: "string"}', "string"),
        ('{type: "object"}', "dict"),
        ('{type: "array"}', "list"),
        ('{type: "integer"}', "int"),
        ('{type: "number"}', "float"),
        ('{type: "boolean"}', "bool"),
        ('{type: "null"}', "nil"),
        ('{type: "file"}', None),
        ('{type: ["string", "null"]}', "string | nil"),
        ('{type: "int", nullable: true}', "int | nil"),
        ('{type: "int", nullable: false}', "int"),
        ('{type: "list", items: {type: "int"}}', "list<int>"),
        ("{items: {}}", "list<any>"),
        (
            '{type: "object", properties: {a: {type: "int"}, b: {type: "string"}}, required: ["a"]}',
            "{a: int, b?: string}",
        ),
        ("{properties: {a: literal, b: unreadable()}}", "{a?: int, b?: any}"),
        ("{properties: properties}", "{a?: int}"),
        ("{properties: unknown}", None),
        ('{union: [{type: "int"}, {type: "string"}], properties: {}}', "int | string"),
        ('{oneOf: [{type: "int"}], items: {}}', "int"),
        ('{anyOf: [{type: "int"}, {type: "nil"}]}', "int | nil"),
        ('{type: "dict", additional_properties: {type: "int"}}', "dict<string, int>"),
        ('{type: "object", additionalProperties: {type: "int"}}', "dict<string, int>"),
        ('{type: "object", additionalProperties: false}', "dict"),
        ("{}", None),
        ('{...base, type: "int"}', None),
        ("literal", "int"),
        ("Person", "{name: string}"),
        ("schema_of(Person)", "{name: string}"),
        ("schema_of(User)", "string"),
        ("User", "bool"),
        ("Box", None),
        ("other", None),
        ("schema_of(literal)", None),
        ("5", None),
    ],
)
def test_schema(schema: str, type: str | None) -> None:
    algebra = types("type Person = {name: string}\ntype User = string\ntype Box<T> = {value: T}")
    assert text_of(schemas.schema(algebra, expression(schema), LOCALS.get)) == type


@pytest.mark.parametrize(
    ("expected", "argument", "actual", "seen"),
    [
        ("Schema<T>", '{type: "int"}', "{type: string}", "Schema<int>"),
        ("Schema<T> | nil", "literal", "dict", "Schema<int>"),
        ("Schema<T>", "unreadable()", "dict", "dict"),
        (
            "{schema?: Schema<T>, n: int}",
            '{schema: {type: "int"}, n: 1}',
            "{schema: dict, n: int}",
            "{schema: Schema<int>, n: int}",
        ),
        ("int", "5", "int", "int"),
        ("{schema: Schema<T>}", "x", "dict", "dict"),
    ],
)
def test_what_a_parameter_sees_of_a_schema(expected: str, argument: str, actual: str, seen: str) -> None:
    found = schemas.seen_as(types(), written(expected), expression(argument), written(actual), LOCALS.get)
    assert text_of(found) == seen


# What is inside values. Spec: 03 §5.


@pytest.mark.parametrize(
    ("type", "items"),
    [
        ("list<int>", "int"),
        ("iter<int>", "int"),
        ("Generator<int>", "int"),
        ("stream<int>", "int"),
        ("string", "string"),
        ("range", "int"),
        ("list", None),
        ("list<any>", None),
        ("dict<string, int>", None),
        ("int | nil", None),
    ],
)
def test_element(type: str, items: str | None) -> None:
    assert text_of(element(written(type))) == items


def test_parts() -> None:
    pairs = pair(written("iter<Pair<string, int>>"))
    assert list(map(text_of, pairs)) == ["string", "int"]
    assert pair(written("list<int>")) == (None, None)
    assert text_of(field(written("{a: int, b: any}"), "a")) == "int"
    assert field(written("{a: int, b: any}"), "b") is None
    assert field(written("{a: int}"), "c") is None
    assert field(None, "a") is None
    zero, name = expression("0"), expression('"a"')
    assert text_of(item(written("list<int>"), zero)) == "int"
    assert text_of(item(written("dict<string, int>"), name)) == "int"
    assert text_of(item(written("{a: int}"), name)) == "int"
    assert item(written("{a: int}"), zero) is None
    assert text_of(item(written("string"), zero)) == "string"
    assert item(written("range"), zero) is None
    assert text_of(part(written("list<int>"))) == "list<int>"
    assert part(written("dict")) is None
