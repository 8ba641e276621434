"""Paths into JSON: what each leads to, in both styles. Spec: 10 §A2.6."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy.session.extension import MISSING, find

VALUE: dict[str, Any] = {
    "info": {"task": "tea", "none": None, "a b": 1, "0": "key"},
    "items": [{"id": 1, "name": "x"}, {"id": 2}],
    "rows": [[1, 2], [3, 4]],
    "empty": [],
    "text": "tea",
}
KEYS = st.text("abé _-", min_size=1, max_size=3)
LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
TREES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("info.task", "tea"),
        ("info", VALUE["info"]),
        ("info.none", None),
        ("info.a b", 1),
        ("info.0", "key"),
        ("items[0].name", "x"),
        ("items[-1].id", 2),
        ("items[*].id", [1, 2]),
        ("items[*].name", MISSING),
        ("items[2]", MISSING),
        ("items[-3]", MISSING),
        ("items.0", MISSING),
        ("rows[1][0]", 3),
        ("rows[*][1]", [2, 4]),
        ("rows[*][*]", [[1, 2], [3, 4]]),
        ("rows[0][*]", [1, 2]),
        ("empty[*].id", []),
        ("text[0]", MISSING),
        ("text[*]", MISSING),
        ("info[0]", MISSING),
        ("info.", MISSING),
        (".info", MISSING),
        ("info..task", MISSING),
        ("items[x]", MISSING),
        ("items[0]name", MISSING),
        ("items.[0]", MISSING),
        ("", MISSING),
        ("info/task", "tea"),
        ("/info//task/", "tea"),
        ("info/0", "key"),
        ("items/0/name", "x"),
        ("items/-1/id", 2),
        ("items/*/id", [1, 2]),
        ("items/[*]/id", [1, 2]),
        ("items/*/name", MISSING),
        ("rows/*/*", [[1, 2], [3, 4]]),
        ("items/x", MISSING),
        ("info/none", None),
        ("info/none/x", MISSING),
        ("items/0.name", MISSING),
        ("/", MISSING),
    ],
)
def test_paths(path: str, found: Any) -> None:
    assert find(VALUE, path) == found


@given(st.dictionaries(KEYS, TREES, min_size=1, max_size=3), st.data())
def test_every_value_is_at_its_path(tree: dict[str, Any], data: st.DataObject) -> None:
    """Down a random way, in either style, from either end of lists."""
    value: Any = tree
    dots, slashes = "", ""
    while isinstance(value, dict | list) and value and (value is tree or data.draw(st.booleans())):
        if isinstance(value, dict):
            step: Any = data.draw(st.sampled_from(sorted(value)))
            dots += f".{step}" if dots else step
        else:
            step = data.draw(st.integers(-len(value), len(value) - 1))
            dots += f"[{step}]"
        slashes += f"/{step}"
        value = value[step]
    assert find(tree, dots) == find(tree, slashes) == value
    for path in (f"{dots}.Q", f"{dots}[9]", f"{slashes}/Q", f"{slashes}/9"):
        assert find(tree, path) is MISSING
    if isinstance(value, list):
        assert find(tree, f"{dots}[*]") == find(tree, f"{slashes}/*") == value
