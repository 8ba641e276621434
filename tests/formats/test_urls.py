"""URLs and queries, back and forth. Spec: 04 §17."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from harnpy.formats.urls import Url, UrlError, build, parse, read_query, written_query

TEXT = st.text(
    st.sampled_from("aZ0/\\?#@:[]%&=+;,~ é日\t") | st.characters(exclude_categories=["Cs"]), max_size=8
)
PART = st.none() | TEXT


@given(TEXT.map("http://a".__add__) | TEXT.map("x:".__add__) | TEXT)
@example("http://a??")
@example("http://a##")
def test_what_is_parsed_is_built_again(text: str) -> None:
    try:
        parts = parse(text)
    except UrlError:
        assume(False)
    else:
        assert parse(build(parts)) == parts


@given(TEXT, PART, PART, PART, PART, st.none() | st.integers(0, 65535))
def test_no_part_spills_over_into_another(
    path: str,
    query: str | None,
    fragment: str | None,
    user: str | None,
    password: str | None,
    port: int | None,
) -> None:
    found = parse(build(Url("http", "host", port, path, query, fragment, user, password)))
    assert (found.scheme, found.host) == ("http", "host")
    assert found.port == (None if port == 80 else port)
    absent = [found.query is None, found.fragment is None, found.username is None, found.password is None]
    assert absent == [query is None, fragment is None, not user, not password]


@given(st.lists(st.tuples(TEXT, TEXT)))
def test_pythons_own_forms_agree_on_queries(pairs: list[tuple[str, str]]) -> None:
    assert read_query(written_query(pairs)) == pairs
    assert parse_qsl(written_query(pairs), keep_blank_values=True) == pairs
    assert read_query(urlencode(pairs)) == pairs


@pytest.mark.parametrize("host", ["a/b", "a?b", "a#b", "u@a", "a:1", "[::1", "a b", "a\\b"])
def test_a_host_is_nothing_but_a_host(host: str) -> None:
    with pytest.raises(UrlError, match="invalid host"):
        build(Url("http", host, None, "/", None, None, None, None))
