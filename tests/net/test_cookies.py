"""Cookies: what is written is read again, what a browser would do, and nothing from outside is an error."""

from __future__ import annotations

import base64
import hashlib
import hmac
import string
from email.utils import formatdate
from http.cookiejar import http2time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.net import cookies
from harnpy.net.cookies import (
    Attributes,
    CookieError,
    Pair,
    applied,
    cookie_date,
    cookie_header,
    read_cookies,
    set_cookie,
)
from tests.counts import COUNT

EXAMPLES = settings(max_examples=COUNT.examples(20), deadline=None)
ANYTHING = st.text(st.one_of(st.characters(), st.sampled_from(' \t;=",\\\n\0')), max_size=12)
NAMES = st.text(string.ascii_letters + string.digits + "!#$%&'*+-.^_`|~", min_size=1, max_size=6)
VALUES = st.text(max_size=8).filter(lambda value: not any(c in ' ;,\\"' or _is_control(c) for c in value))


def _is_control(character: str) -> bool:
    return ord(character) < 32 or 127 <= ord(character) < 160


@EXAMPLES
@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_what_is_written_is_read(cookies: dict[str, str]) -> None:
    headers = [
        set_cookie(name, value, Attributes(path="/", http_only=True)) for name, value in cookies.items()
    ]
    kept = applied({}, headers, now=0)
    assert kept == cookies
    found = read_cookies([cookie_header(kept)])
    assert (found.values(), found.invalid) == (cookies, [])


@EXAMPLES
@given(st.lists(ANYTHING, max_size=4))
def test_every_segment_is_a_cookie_or_invalid(headers: list[str]) -> None:
    found = read_cookies(headers)
    segments = [piece.strip(" \t") for header in headers for piece in header.split(";")]
    assert len(found.pairs) + len(found.invalid) == sum(map(bool, segments))
    assert found.values().keys() == {name for name, _ in found.pairs}
    for name, value in found.pairs:
        assert read_cookies([set_cookie(name, value, Attributes())]).pairs == [Pair(name, value)]


@EXAMPLES
@given(st.lists(ANYTHING, max_size=4), st.floats(0, 1e10))
def test_a_browser_takes_any_header(headers: list[str], now: float) -> None:
    assert list(applied({"a": "1"}, headers, now)) == sorted(applied({"a": "1"}, headers, now))


@EXAMPLES
@given(NAMES | ANYTHING, VALUES | ANYTHING, ANYTHING, ANYTHING)
def test_nothing_gets_out_of_its_place(name: str, value: str, path: str, domain: str) -> None:
    """A written cookie has one line and the parts that it was given, or isn't written."""
    try:
        header = set_cookie(name, value, Attributes(path=path, domain=domain))
    except CookieError:
        return
    assert header.split("; ") == [f"{name}={value}", f"Path={path}", f"Domain={domain}"]
    assert not any(map(_is_control, header))


@EXAMPLES
@given(st.integers(0, 4_000_000_000))
def test_dates_of_http_are_read(moment: int) -> None:
    text = formatdate(moment, usegmt=True)
    assert cookie_date(text) == moment
    assert cookie_date(text.replace(" GMT", "").replace(" ", "-")) == moment


@pytest.mark.parametrize(
    "text",
    [
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "06 Nov 1994 08:49:37",
        "1994 november 6 8:49:37",
    ],
)
def test_other_spellings_of_a_date(text: str) -> None:
    assert cookie_date(text) == http2time("Sun, 06 Nov 1994 08:49:37 GMT")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "0",
        "Sun, 31 Feb 1994 08:49:37",
        "06 Nov 1600 08:49:37",
        "06 Nov 1994 24:00:00",
        "9" * 5000,
    ],
)
def test_what_is_no_date(text: str) -> None:
    assert cookie_date(text) is None


def test_a_long_max_age_is_a_number_like_others() -> None:
    assert applied({}, [f"a=1; Max-Age={'9' * 5000}"], now=0) == {"a": "1"}
    assert applied({"a": "1"}, [f"a=1; Max-Age={'0' * 5000}"], now=0) == {}


@EXAMPLES
@given(VALUES, st.text(min_size=1))
def test_signatures_are_what_the_specification_says(value: str, secret: str) -> None:
    code = hmac.new(secret.encode(), value.encode(), hashlib.sha256).digest()
    assert (
        cookies.signed_value(value, secret)
        == f"{value}.{base64.urlsafe_b64encode(code).decode().rstrip('=')}"
    )
    assert cookies.verified_value(cookies.signed_value(value, secret), secret) == (value, None)


@EXAMPLES
@given(VALUES, st.text(min_size=1, max_size=4), st.text(max_size=60))
def test_what_was_not_signed_is_refused(value: str, secret: str, other: str) -> None:
    text = cookies.signed_value(value, secret)
    for forged in (text + "A", text[:-1], "x" + text, other):
        assert cookies.verified_value(forged, secret).error in ("malformed", "invalid_signature")
    assert cookies.verified_value(text, secret + "x").error == "invalid_signature"


@EXAMPLES
@given(st.text(max_size=20) | st.just("v1.") | st.just("v1.e30."), st.text(max_size=20))
def test_any_token_has_a_verdict(begin: str, end: str) -> None:
    assert cookies.session_payload(begin + end, "secret").error in ("malformed", "invalid_signature")
    signed = cookies.signed_value(base64.urlsafe_b64encode(end.encode()).decode().rstrip("="), "secret")
    assert cookies.session_payload(f"v1.{signed}", "secret").error in (None, "malformed", "malformed_payload")


@pytest.mark.parametrize("header", ["a" * (1 << 16), ";" * (1 << 20), 'a="' * (1 << 16), "a=1;" * (1 << 16)])
def test_a_huge_header(header: str) -> None:
    found = read_cookies([header])
    assert len(found.values()) <= 1
    assert len(found.duplicates()) <= 1
