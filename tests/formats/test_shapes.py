"""A shape is declared once, as the type of what is read by it (08 §5.1, §6.1, §8.1)."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any, NotRequired, TypedDict, is_typeddict

import pytest

from harnpy.faults import MisuseError
from harnpy.formats.dicts import Dict
from harnpy.formats.shapes import Field, fields_of, made, read, read_strictly

MODULES = ("artifacts", "evaluation", "graph_shapes", "records.record_shapes")
DECLARED = [
    kind
    for module in MODULES
    for kind in vars(import_module(f"harnpy.workflow.{module}")).values()
    if is_typeddict(kind)
]


class Inner(TypedDict):
    size: Annotated[int, 3]


class Outer(TypedDict):
    name: str
    note: str | None
    count: int
    share: float
    known: bool
    data: Any
    texts: list[str]
    more: Dict
    always: Inner
    maybe: Inner | None
    several: list[Inner]
    later: Annotated[list[Inner], Field("list of dicts")]
    extra: NotRequired[int]


BLANK: Outer = {
    "name": "",
    "note": None,
    "count": 0,
    "share": 0.0,
    "known": False,
    "data": None,
    "texts": [],
    "more": {},
    "always": {"size": 3},
    "maybe": None,
    "several": [],
    "later": None,  # type: ignore[typeddict-item]
}


def test_every_field_has_its_default() -> None:
    assert made(Outer, {}) == read(Outer, {}) == read(Outer, dict.fromkeys(BLANK)) == BLANK
    assert list(read(Outer, {})) == list(BLANK)


def test_parts_are_read_by_their_own_shapes() -> None:
    given = {"always": {}, "maybe": {"size": 1}, "several": [{"size": 2}, {}], "later": [{"x": 1}]}
    known = read(Outer, {**given, "extra": 4, "unknown": 5})
    parts = {"always": {"size": 3}, "maybe": {"size": 1}, "several": [{"size": 2}, {"size": 3}]}
    assert known == {**BLANK, **parts, "later": [{"x": 1}], "extra": 4}


def test_defaults_are_not_shared() -> None:
    one, other = made(Outer, {}), made(Outer, {})
    one["texts"].append("x")
    one["always"]["size"] = 4
    assert other == BLANK


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"name": 1}, "name: expected string, got int"),
        ({"count": True}, "count: expected int, got bool"),
        ({"always": {"size": "x"}}, "always.size: expected int, got string"),
        ({"several": [{}, {"size": "x"}]}, "several[1].size: expected int, got string"),
        ({"several": [1]}, "several[0]: expected dict, got int"),
        ({"later": [1]}, "later: expected list of dicts, got list"),
        ({"extra": "x"}, "extra: expected int, got string"),
    ],
)
def test_a_wrong_type_is_named_by_its_place(given: Dict, problem: str) -> None:
    for reader in (read, read_strictly):
        with pytest.raises(MisuseError) as caught:
            reader(Outer, given)
        assert problem in caught.value.message


def test_unknown_keys_are_errors_for_strict_readers() -> None:
    assert read(Outer, {"maybe": {"x": 1}})["maybe"] == {"size": 3}
    for given, place in (({"x": 1}, "payload: "), ({"maybe": {"x": 1}}, "maybe: ")):
        with pytest.raises(MisuseError) as caught:
            read_strictly(Outer, given)
        assert f"{place}unknown key 'x'" in caught.value.message
    assert read_strictly(Outer, {"x": 1}, others=("x",)) == BLANK


def test_a_part_has_no_other_fields() -> None:
    with pytest.raises(TypeError, match="no such field: x"):
        made(Inner, {"x": 1})


@pytest.mark.parametrize("kind", DECLARED, ids=lambda kind: kind.__name__)
def test_every_declared_shape_has_fields(kind: Any) -> None:
    fields = fields_of(kind)
    assert fields.always.keys() | fields.optional.keys() == kind.__annotations__.keys()


def test_every_part_of_a_graph_and_a_record_is_declared() -> None:
    names = {kind.__name__ for kind in DECLARED}
    assert names >= {
        "Graph",
        "Node",
        "Edge",
        "RunRecord",
        "StageRecord",
        "Transition",
        "Artifact",
        "EvalPack",
    }
