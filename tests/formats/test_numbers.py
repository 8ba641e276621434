"""Numbers as people write them. Spec: 04 §4.2, §10."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy.formats.numbers import decimal_text, rounded, spec_of

NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(-1e15, 1e15, allow_nan=False)


@given(NUMBERS, st.integers(-12, 12))
def test_the_nearest_number_of_so_many_places(number: float, places: int) -> None:
    found, step = Fraction(Decimal(repr(rounded(number, places)))), Fraction(10) ** -places
    exact = Fraction(Decimal(repr(number)))
    assert abs(found - exact) <= step / 2 + abs(exact) * Fraction(2) ** -52
    assert type(rounded(number, places)) is type(number)
    assert rounded(-number, places) == -rounded(number, places)


@given(NUMBERS, st.integers(0, 9), st.sampled_from([",", " ", "."]))
def test_text_reads_back(number: float, places: int, thousands: str) -> None:
    text = decimal_text(number, places, thousands, "'")
    whole, _, rest = text.partition("'")
    assert len(rest) == places
    assert all(len(group) == 3 for group in whole.split(thousands)[1:])
    plain = Decimal(f"{whole.replace(thousands, '')}.{rest}0")
    assert plain == Decimal(repr(number)).quantize(Decimal(10) ** -places, ROUND_HALF_UP)
    assert not text.startswith("-") or plain < 0


@given(
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from(["d", ",d", "+d", "x", "b", "o", "08d", "^20,d", "*<9x"]),
)
def test_ints_as_python_writes_them(number: int, text: str) -> None:
    spec = spec_of(text)
    assert spec is not None
    assert spec.text(number, str(number)) == format(number, text)


@given(st.floats(-1e6, 1e6), st.sampled_from([".3f", ",.2f", "+.1f", "012.3f", ">12.2f", ".1%", "_^14.0f"]))
def test_floats_as_python_writes_their_decimals(number: float, text: str) -> None:
    spec = spec_of(text)
    assert spec is not None
    exact = Decimal(repr(abs(number)))
    wanted = exact.quantize(
        Decimal(10) ** -(spec.places or 0) / (100 if spec.kind == "%" else 1), ROUND_HALF_UP
    )
    signed = wanted.copy_sign(Decimal(repr(number))) if wanted else wanted
    assert spec.text(number, repr(number)) == format(signed, text)


def test_what_has_no_places() -> None:
    assert [decimal_text(each, 2) for each in (math.inf, -math.inf)] == ["inf", "-inf"]
    assert math.isnan(rounded(math.nan, 2))
    assert decimal_text(1e300, None) == "1" + 300 * "0"
    assert decimal_text(5e-324, None).endswith("5")


@pytest.mark.parametrize("text", ["", "zz", ".f", "99999999d", ".500f", "<<<", "10.2.3f"])
def test_what_is_no_specification(text: str) -> None:
    assert spec_of(text) is None
