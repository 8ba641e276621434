"""What a tool's schema allows is what its handler takes (07 §4.3, 02 §20)."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from harnpy import Vm
from harnpy.vm.errors import VmError
from tests.counts import COUNT

FIELDS = st.sampled_from(["a", "b", "c"])
SCALARS = ("string", "int", "bool", "nil")
WORDS = ("on", "off")


def _types(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    shape = st.dictionaries(FIELDS, st.tuples(st.sampled_from(["", "?"]), inner), max_size=3)
    return st.one_of(
        inner.map(lambda item: f"list<{item}>"),
        inner.map(lambda value: f"dict<string, {value}>"),
        shape.map(lambda fields: f"{{{', '.join(f'{k}{mark}: {t}' for k, (mark, t) in fields.items())}}}"),
    )


#: Alternatives exclude one another: of those that don't, `oneOf` and a check at run time think differently.
UNIONS = st.lists(st.sampled_from(SCALARS), min_size=2, max_size=3, unique=True).map(" | ".join)
TYPES = st.recursive(
    st.sampled_from([*SCALARS, "list", "dict", '"on"', '"on" | "off"', "1 | 2"]) | UNIONS,
    _types,
    max_leaves=5,
)
VALUES = st.recursive(
    st.sampled_from([None, True, 1, 2, 3, "x", *WORDS]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(FIELDS, inner, max_size=3),
    max_leaves=6,
)


def _accepts(vm: Vm, handler: Any, value: Any) -> bool:
    try:
        vm.call(handler, value)
    except VmError:
        return False
    return True


@settings(max_examples=COUNT.examples(20))
@given(TYPES, st.lists(VALUES, min_size=1, max_size=8))
def test_a_schema_allows_what_the_handler_takes(type_: str, values: list[Any]) -> None:
    vm = Vm()
    entry = vm.run_source(f"tool t(p: {type_}) {{ }}\nreturn t")["tools"][0]
    schema = Draft202012Validator(entry["parameters"]["p"])
    for value in values:
        assert schema.is_valid(value) == _accepts(vm, entry["handler"], value), value
