"""Forms: what is written is read again, by others too, and no body is an exception of ours."""

from __future__ import annotations

from email import message_from_bytes
from email.policy import HTTP

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harnpy.net.header_grammar import Malformed, quoted, value_and_parameters
from harnpy.net.multipart import (
    Form,
    FormError,
    Limits,
    Part,
    chosen_boundary,
    encoded_form,
    form_content_type,
    read_form,
)
from tests.counts import COUNT

EXAMPLES = settings(max_examples=COUNT.examples(20), deadline=None)
LIMITS = Limits()
ONE_LINE = st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), max_size=8)
TRICKY = st.text(st.sampled_from('"\\;= \tab'), max_size=8)
CONTENTS = st.binary(max_size=12) | st.lists(
    st.sampled_from([b"\r", b"\n", b"--", b"b", b"\r\n--b", b"\r\n--b--\r\n", b": "]), max_size=6
).map(b"".join)
PARTS = st.builds(
    Part,
    name=(ONE_LINE | TRICKY).filter(bool),
    content=CONTENTS,
    filename=st.none() | ONE_LINE | TRICKY,
    content_type=st.none() | st.just("text/plain; charset=utf-8"),
    headers=st.just({}) | st.just({"X-One": "1", "x-two": "ü"}),
)


def form(body: bytes, boundary: str = "b", limits: Limits = LIMITS) -> Form:
    return read_form(body, form_content_type(boundary), limits)


@EXAMPLES
@given(st.lists(PARTS, max_size=4))
@example([Part("b", b"--b"), Part("c", b"\r\n--b--", "")])
def test_what_is_written_is_read(parts: list[Part]) -> None:
    boundary = chosen_boundary(["b"], [part.content for part in parts])
    found = form(encoded_form(parts, boundary), boundary)
    assert [(*field[:3], field.content) for field in found.fields] == [
        (part.name, part.filename, part.content_type, part.content) for part in parts
    ]
    for field, part in zip(found.fields, parts, strict=True):
        assert {key: field.headers[key] for key in map(str.lower, part.headers)} == {
            key.lower(): value for key, value in part.headers.items()
        }


@EXAMPLES
@given(st.lists(PARTS, min_size=1, max_size=4))
def test_a_boundary_of_ones_own_never_splits_a_content(parts: list[Part]) -> None:
    try:
        body = encoded_form(parts, "b")
    except FormError:
        assert any(b"\r\n--b" in b"\r\n" + part.content for part in parts)
        return
    assert [field.content for field in form(body).fields] == [part.content for part in parts]


@EXAMPLES
@given(st.lists(st.binary(max_size=8), min_size=1, max_size=3))
def test_others_read_what_is_written(contents: list[bytes]) -> None:
    boundary = chosen_boundary(["b"], contents)
    parts = [Part(f"n{i}", content, "a b.bin") for i, content in enumerate(contents)]
    head = f"Content-Type: {form_content_type(boundary)}\r\n\r\n".encode()
    message = message_from_bytes(head + encoded_form(parts, boundary), policy=HTTP)
    found = [part for part in message.walk() if not part.is_multipart()]
    assert [part.get_param("name", header="content-disposition") for part in found] == [p.name for p in parts]
    assert [part.get_filename() for part in found] == ["a b.bin"] * len(parts)


def test_a_boundary_that_contents_hold_gets_a_number() -> None:
    first = chosen_boundary(["x"], [])
    assert chosen_boundary(["x"], [first.encode()]) == f"{first}-1"
    assert chosen_boundary(["x"], [f"{first}-1".encode(), b"-2"]) == f"{first}-2"
    assert chosen_boundary(["x"], [b""]) == first != chosen_boundary(["y"], [])


DISPOSITION = b'Content-Disposition: form-data; name="a"'
PIECES = st.sampled_from(
    [
        *b'- : x ; = " \\ \xff b'.split(),
        b"\r",
        b"\n",
        b"--b",
        b"\r\n",
        b"\r\n\r\n",
        DISPOSITION,
        DISPOSITION + b"\r\n\r\n",
    ]
)


@EXAMPLES
@given(st.lists(PIECES, max_size=14).map(b"".join))
def test_any_body_is_a_form_or_refused(body: bytes) -> None:
    for data in (body, b"--b\r\n" + body + b"\r\n--b--"):
        try:
            found = form(data)
        except FormError:
            continue
        assert data.count(b"--b") >= len(found.fields) + 1


@EXAMPLES
@given(st.data(), st.lists(PARTS, min_size=1, max_size=3))
def test_a_body_that_was_cut_is_refused(data: st.DataObject, parts: list[Part]) -> None:
    boundary = chosen_boundary(["b"], [part.content for part in parts])
    body = encoded_form(parts, boundary)
    end = data.draw(st.integers(0, len(body) - len("--\r\n") - 1))
    with pytest.raises(FormError):
        form(body[:end], boundary)


@EXAMPLES
@given(ONE_LINE | TRICKY, TRICKY)
def test_parameters(value: str, tail: str) -> None:
    assert value_and_parameters(f"x ; Name={quoted(value)} ; b=c;") == ("x", {"name": value, "b": "c"})
    try:
        kind, parameters = value_and_parameters(f"x;a={tail}")
    except Malformed:
        return
    assert kind == "x"
    assert len(parameters) <= 1 + tail.count("=")


SIZE = 1 << 18
HOSTILE = {
    "boundaries": b"--b\r\n" * (SIZE // 5),
    "fields of no content": b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n' * (SIZE // 50)
    + b"--b--",
    "almost boundaries": b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n' + b"\r\n--" * (SIZE // 4),
    "empty lines": b"--b\r\n" + b"\r\n" * (SIZE // 2),
    "a long head": b"--b\r\n" + b"x: y\r\n" * (SIZE // 6),
    "an endless quote": b'--b\r\nContent-Disposition: form-data; name="'
    + b'\\"' * (SIZE // 2)
    + b"\r\n\r\n\r\n--b--",
    "many parameters": b"--b\r\nContent-Disposition: form-data"
    + b"; a=1" * (SIZE // 5)
    + b"\r\n\r\n\r\n--b--",
    "many semicolons": b"--b\r\nContent-Disposition: form-data" + b";" * SIZE + b"\r\n\r\n\r\n--b--",
    "blanks": b"--b\r\nContent-Disposition: form-data;" + b" " * SIZE + b"x\r\n\r\n\r\n--b--",
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_hostile_bodies_are_refused_in_linear_time(body: bytes) -> None:
    """What takes the square of this size never ends."""
    with pytest.raises(FormError):
        form(body)


def test_limits_are_looked_at_as_early_as_possible() -> None:
    field = b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n12345\r\n'
    body = field * 3 + b"damaged"
    with pytest.raises(FormError, match="total body size 175 exceeds max_total_bytes 174"):
        form(body, limits=LIMITS._replace(max_total_bytes=len(body) - 1))
    with pytest.raises(FormError, match="field count exceeds max_fields 1"):
        form(body, limits=LIMITS._replace(max_fields=1))
    with pytest.raises(FormError, match="field size 5 exceeds max_field_bytes 4"):
        form(body, limits=LIMITS._replace(max_field_bytes=4))
    assert len(form(field * 3 + b"--b--", limits=Limits(len(field) * 3 + 5, 5, 3)).fields) == 3
