"""Schemas: what a check gives, and JSON Schema's spelling, which `jsonschema` reads alike. Spec: 04 §12."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.builtins.language.schemas import HarnValues
from harnpy.formats.schema_checks import SchemaValues, check
from harnpy.formats.schemas import (
    JSON_SCHEMA,
    OPENAPI,
    SERVICE,
    SchemaError,
    canonical,
    omitted,
    partial,
    picked,
    spelled,
)
from harnpy.vm.values import Set, Struct
from tests.builtins.conftest import FakeVm
from tests.counts import COUNT

PLAIN = SchemaValues()


def checked(value: Any, schema: Any, values: SchemaValues = PLAIN, **options: Any) -> tuple[Any, list[str]]:
    return tuple(check(value, canonical(schema), values, **options))  # type: ignore[return-value]


@pytest.fixture
def harn() -> HarnValues:
    return HarnValues(FakeVm())  # type: ignore[arg-type]


def test_both_spellings_are_one() -> None:
    json = {
        "type": "object",
        "properties": {"a": {"type": ["integer", "null"], "minimum": 1}, "b": {"oneOf": [{"type": "array"}]}},
        "additionalProperties": {"type": "number", "unheard": 1},
        "$schema": "dropped",
    }
    ours = {
        "type": "dict",
        "properties": {
            "a": {"union": [{"type": "int"}, {"type": "nil"}], "min": 1},
            "b": {"union": [{"type": "list"}]},
        },
        "additional_properties": {"type": "float"},
    }
    assert canonical(json) == ours
    assert canonical(ours) == ours


def test_a_list_of_types_beside_a_union_asks_for_both() -> None:
    schema = {"type": ["string", "integer"], "anyOf": [{"minLength": 2}, {"minimum": 5}]}
    assert checked("ab", schema)[1] == []
    assert checked(True, schema)[1] == [
        "at root: value did not match any union branch",
    ]
    assert checked([], {"type": ["string"], "anyOf": [{"type": "array"}]})[1]


@pytest.mark.parametrize("uniquely", [{"uniqueItems": True}, {"x-harn-type": "set"}])
def test_unique_items_mean_a_set(uniquely: dict[str, Any], harn: HarnValues) -> None:
    schema = {"type": "array", "items": {"type": "integer"}, **uniquely}
    value, errors = checked(Set([1, "x"]), schema, harn)
    assert (value.items, errors) == ([1], ["at [1]: expected type 'int', got 'string'"])
    assert checked([1], schema, harn)[1] == ["at root: expected type 'set', got 'list'"]


def test_a_struct_is_a_dict_and_stays_a_struct(harn: HarnValues) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"default": 2}}}
    value, errors = checked(Struct("Point", {"a": 1}), schema, harn, defaults=True)
    assert value == Struct("Point", {"a": 1, "b": 2})
    assert errors == []
    wrong = checked(Struct("Point", {}), {"type": "string"}, harn)[1]
    assert wrong == ["at root: expected type 'string', got 'dict'"]


def test_defaults_fill_what_is_absent_all_the_way_down() -> None:
    inner = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer", "default": 1}}}
    schema = {"properties": {"inner": {**inner, "default": {}}, "rows": {"items": inner}}}
    assert checked({"rows": [{}]}, schema, defaults=True) == ({"inner": {"n": 1}, "rows": [{"n": 1}]}, [])
    assert checked({"rows": [{}]}, schema)[1] == ["at rows[0]: missing required key 'n'"]


def test_a_default_must_be_valid_itself() -> None:
    schema = {"properties": {"n": {"type": "integer", "default": "x"}}}
    assert checked({}, schema, defaults=True)[1] == ["at n: expected type 'int', got 'string'"]


def test_what_fails_is_kept_in_dicts_and_left_out_of_lists() -> None:
    schema = {
        "properties": {"xs": {"items": {"type": "integer"}}, "d": {"properties": {"k": {"default": 1}}}},
    }
    value, errors = checked({"xs": [1, "x", 2], "d": {}}, schema, defaults=True)
    # The failing list is the entry of a dict, and so it is kept as it was given.
    assert value == {"xs": [1, "x", 2], "d": {"k": 1}}
    assert errors == ["at xs[1]: expected type 'int', got 'string'"]
    assert checked([1, "x", 2], {"items": {"type": "integer"}})[0] == [1, 2]


def test_every_branch_of_all_of_sees_the_same_items() -> None:
    branches = [{"items": {"type": "integer"}}, {"items": {"min": 5}}]
    assert checked(["x", 3], {"all_of": branches}) == (
        ["x", 3],
        ["at [0]: expected type 'int', got 'string'", "at [1]: expected value >= 5, got 3"],
    )


def test_the_branch_that_fits_gives_the_value() -> None:
    branches = [{"type": "string"}, {"type": "object", "properties": {"a": {"default": 1}}}]
    assert checked({}, {"union": branches}, defaults=True) == ({"a": 1}, [])


@pytest.mark.parametrize("schema", [{"$ref": "#"}, {"all_of": [{"$ref": "#"}]}])
def test_a_reference_to_itself_ends(schema: dict[str, Any]) -> None:
    assert checked(1, schema)[1] == ["at root: unresolved schema reference '#'"]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (5, "schema must be a dict"),
        ({"items": [1]}, "schema must be a dict"),
        ({"properties": {"a": {"properties": {"b": "x"}}}}, "schema must be a dict"),
        ({"definitions": {"a": None}}, "schema must be a dict"),
        ({"union": {}}, "schema union/all_of must be a list"),
        ({"allOf": "x"}, "schema union/all_of must be a list"),
    ],
)
def test_what_is_no_schema(schema: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        canonical(schema)


EXAMPLES = COUNT.examples(20)

KEYS = st.sampled_from("abc")
SCALARS = (
    st.none() | st.booleans() | st.integers(-2, 4) | st.sampled_from([0.5, 1.5]) | st.text("xé", max_size=3)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
SMALL = st.integers(0, 3)


def schemas(depth: int = 2) -> st.SearchStrategy[dict[str, Any]]:
    """Schemas without what the two take differently: floats, sets, enums of lists, references."""
    plain = st.sampled_from(["any", "nil", "bool", "dict", "list"]).map(lambda name: {"type": name})
    kinds = [
        st.just({}),
        plain,
        st.fixed_dictionaries({"type": st.just("int")}, optional={"min": SMALL, "max": SMALL}),
        st.fixed_dictionaries({}, optional={"min": SMALL, "max_length": SMALL, "min_items": SMALL}),
        st.fixed_dictionaries(
            {"type": st.just("string")},
            optional={"min_length": SMALL, "max_length": SMALL, "pattern": st.sampled_from(["^x", "é"])},
        ),
        st.fixed_dictionaries({"type": st.just("int"), "enum": st.lists(SMALL, max_size=3)}),
        st.fixed_dictionaries({"const": VALUES}),
    ]
    if depth:
        inner = schemas(depth - 1)
        kinds += [
            st.fixed_dictionaries(
                {"type": st.just("list"), "items": inner}, optional={"min_items": SMALL, "max_items": SMALL}
            ),
            st.fixed_dictionaries(
                {"properties": st.dictionaries(KEYS, inner, max_size=3)},
                optional={
                    "type": st.just("dict"),
                    "required": st.lists(KEYS, max_size=2, unique=True),
                    "additional_properties": st.booleans() | inner,
                },
            ),
            st.fixed_dictionaries({"union": st.lists(inner, min_size=1, max_size=3)}),
            st.fixed_dictionaries({"all_of": st.lists(inner, min_size=1, max_size=2)}),
        ]
    return st.builds(_nullable, st.one_of(kinds), st.sampled_from([None, None, True, False]))


def _nullable(schema: dict[str, Any], nullable: bool | None) -> dict[str, Any]:
    return schema if nullable is None else {**schema, "nullable": nullable}


def fits(value: Any, schema: dict[str, Any]) -> bool:
    return not check(value, canonical(schema), SchemaValues()).errors


@settings(max_examples=EXAMPLES, deadline=None)
@given(VALUES, schemas())
def test_a_validator_of_json_schema_agrees(value: Any, schema: dict[str, Any]) -> None:
    judge = jsonschema.Draft7Validator(spelled(schema, SERVICE))
    judge.check_schema(judge.schema)
    assert judge.is_valid(value) == fits(value, schema)


@settings(max_examples=EXAMPLES, deadline=None)
@given(VALUES, schemas())
def test_every_spelling_says_the_same(value: Any, schema: dict[str, Any]) -> None:
    for dialect in (JSON_SCHEMA, OPENAPI, SERVICE):
        back = canonical(spelled(schema, dialect))
        assert fits(value, back) == fits(value, schema)
        assert canonical(back) == back


@settings(max_examples=EXAMPLES, deadline=None)
@given(VALUES, schemas())
def test_what_fits_fits_again_and_with_less_required(value: Any, schema: dict[str, Any]) -> None:
    normalised, errors = check(value, canonical(schema), SchemaValues())
    if not errors:
        assert normalised == value
        if "union" not in schema:
            assert fits(value, partial(schema))


@pytest.mark.parametrize(
    "schema", [{"properties": {"a": {}, "b": {}}, "required": ["b", "c"]}, {"type": "int"}]
)
def test_picking_and_omitting_share_the_schema_out(schema: dict[str, Any]) -> None:
    picks, rest = picked(schema, {"a", "c"}), omitted(schema, {"a", "c"})
    both = {**picks.get("properties", {}), **rest.get("properties", {})}
    assert both == schema.get("properties", {})
    assert {*picks.get("required", ()), *rest.get("required", ())} == {*schema.get("required", ())}
