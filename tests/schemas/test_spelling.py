"""Schemas in JSON Schema's spelling: `jsonschema` accepts what we accept, and they come back as they were."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.formats.schema_checks import SchemaValues, check
from harnpy.formats.schemas import JSON_SCHEMA, OPENAPI, SERVICE, canonical, omitted, partial, picked, spelled
from tests.counts import COUNT

EXAMPLES = COUNT.examples(40)

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
