"""What Harn shows of JSON-like values can be read back: as Harn where it is unambiguous, as JSON always."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy import Vm
from harnpy.vm.values import display
from harnpy.vm.values.equality import equal
from tests.counts import COUNT

KEYS = st.from_regex(r"k_[a-z0-9_]{0,6}", fullmatch=True)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63) + 1, 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: abs(x) < 1e15),
)


def trees(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
        max_leaves=12,
    )


@settings(max_examples=COUNT.examples(20))
@given(trees(SCALARS))
def test_display_is_a_harn_literal_of_the_value(value: Any) -> None:
    assert equal(Vm().run_source(f"return {display(value)}"), value)


@settings(max_examples=COUNT.examples(20))
@given(trees(SCALARS | st.text(max_size=8)))
def test_json_text_reads_back_as_the_value(value: Any) -> None:
    vm = Vm()
    vm.set_global("given", value)
    back, text, shown = vm.run_source(
        "let text = json_stringify(given)\nreturn [json_parse(text), text, to_string(given)]"
    )
    # Whole floats lose their fraction in JSON text (04 §11.1); numbers compare across int and float.
    assert equal(back, value), text
    assert shown == display(value)
