"""JSON in other text: laws that no single program shows (04 §11.2, 07 §1.6)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy.llm.json_extraction import extract, is_json, json_part

SCALARS = st.none() | st.booleans() | st.integers() | st.text()
DATA = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10)
OBJECTS = st.dictionaries(st.text().filter(lambda key: "```" not in key), st.integers())
PROSE = st.text(alphabet=st.characters(exclude_characters="{}[]`"))


@given(DATA)
def test_json_is_its_own_extract(data: object) -> None:
    text = json.dumps(data)
    assert extract(f"\n {text} ", json.loads) == data
    assert is_json(text, json.loads)


@given(PROSE, OBJECTS, PROSE)
def test_an_object_is_found_in_prose(before: str, data: dict[str, int], after: str) -> None:
    text = f"{before}{json.dumps(data)}{after}"
    assert extract(text, json.loads) == data


@given(PROSE, DATA.filter(lambda data: "```" not in json.dumps(data)), PROSE)
def test_a_fence_is_found_in_prose(before: str, data: object, after: str) -> None:
    text = f"x{before}\n```json\n{json.dumps(data, indent=1)}\n```\n{after}x"
    assert json.loads(json_part(text)) == data


@given(st.text(alphabet='{}[]"\\`\n a'))
def test_any_text_is_judged(text: str) -> None:
    try:
        extract(text, json.loads)
    except ValueError:
        assert not is_json(text, json.loads)


@pytest.mark.parametrize("text", ["{" * 200_000, '"{' * 100_000, "[" + '"\\' * 100_000, "{" + '""' * 100_000])
def test_long_texts_cost_one_pass(text: str) -> None:
    assert json_part(text) == text
