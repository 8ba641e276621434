"""Encodings against the standard library, and what they refuse."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harnpy.formats.crypto import encodings
from harnpy.formats.crypto.encodings import EncodingError

Encode = Callable[[bytes], str]
Decode = Callable[[str], bytes]

#: Ours, and the standard library's.
ENCODINGS: list[Any] = [
    pytest.param(
        encodings.to_base64, encodings.from_base64, lambda data: base64.b64encode(data).decode(), id="base64"
    ),
    pytest.param(
        encodings.to_base64url,
        encodings.from_base64url,
        lambda data: base64.urlsafe_b64encode(data).decode().rstrip("="),
        id="base64url",
    ),
    pytest.param(
        encodings.to_base32, encodings.from_base32, lambda data: base64.b32encode(data).decode(), id="base32"
    ),
    pytest.param(
        bytes.hex, encodings.from_hex, lambda data: base64.b16encode(data).decode().lower(), id="hex"
    ),
]


@pytest.mark.parametrize(("encode", "decode", "judge"), ENCODINGS)
@given(data=st.binary(max_size=80))
def test_encoded_as_the_standard_library_does_and_back(
    encode: Encode, decode: Decode, judge: Encode, data: bytes
) -> None:
    assert encode(data) == judge(data)
    assert decode(encode(data)) == data


@pytest.mark.parametrize(("encode", "decode", "judge"), ENCODINGS)
@given(text=st.one_of(st.text(max_size=12), st.text("AQgw2z7_-+/=ab ", max_size=12)))
@example("")
@example("====")
@example("A===")
@example("YR==")
@example("YQ==\n")
def test_no_two_texts_are_the_same_bytes(encode: Encode, decode: Decode, judge: Encode, text: str) -> None:
    try:
        data = decode(text)
    except EncodingError as error:
        assert str(error)  # noqa: PT017
    else:
        assert judge(data) == (text.lower() if decode is encodings.from_hex else text)


@pytest.mark.parametrize(
    ("decode", "text", "message"),
    [
        (encodings.from_base64, "YQ", "Invalid padding"),
        (encodings.from_base64, "YQ===", "Invalid padding"),
        (encodings.from_base64, "Y=Q=", "Invalid character '=' at position 1"),
        (encodings.from_base64, "Y-Q=", "Invalid character '-' at position 1"),
        (encodings.from_base64, "Y Q=", "Invalid character ' ' at position 1"),
        (encodings.from_base64, "YWFhY===", "Invalid length: no bytes have 5 characters"),
        (encodings.from_base64, "YR==", "Invalid last character 'R': it has bits of no byte"),
        (encodings.from_base64url, "YQ==", "Invalid character '=' at position 2"),
        (encodings.from_base64url, "a+b", "Invalid character '+' at position 1"),
        (encodings.from_base64url, "YWFhY", "Invalid length: no bytes have 5 characters"),
        (encodings.from_base32, "me======", "Invalid character 'm' at position 0"),
        (encodings.from_base32, "ME", "Invalid padding"),
        (encodings.from_base32, "MEE=====", "Invalid length: no bytes have 3 characters"),
        (encodings.from_base32, "MF======", "Invalid last character 'F': it has bits of no byte"),
        (encodings.from_hex, "abc", "Odd number of digits"),
        (encodings.from_hex, "a ", "Invalid character ' ' at position 1"),
        (encodings.from_hex, "é0", "Invalid character 'é' at position 0"),
        (encodings.from_hex, "1٢", "Invalid character '٢' at position 1"),
    ],
)
def test_what_is_wrong_is_said(decode: Decode, text: str, message: str) -> None:
    with pytest.raises(EncodingError, match=f"^{re.escape(message)}$"):
        decode(text)


@given(st.text(max_size=20))
def test_percent_encoding_is_that_of_the_rfc(text: str) -> None:
    unreserved = re.compile(r"[A-Za-z0-9._~-]")
    expected = "".join(c if unreserved.fullmatch(c) else _escapes(c) for c in text)
    assert encodings.percent_encoded(text.encode()) == expected
    assert encodings.percent_decoded(expected) == text


def _escapes(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode())


@pytest.mark.parametrize(
    ("text", "decoded"),
    [("a+b%20c", "a b c"), ("%", "%"), ("%z1", "%z1"), ("%4", "%4"), ("%41%c3%a4", "Aä"), ("%ff", "\ufffd")],
)
def test_percent_decoding_keeps_what_is_malformed(text: str, decoded: str) -> None:
    assert encodings.percent_decoded(text) == decoded


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a\xff", "invalid utf-8 sequence of 1 bytes from index 1"),
        (b"\xc3(", "invalid utf-8 sequence of 1 bytes from index 0"),
        (b"\xe2\x82(", "invalid utf-8 sequence of 2 bytes from index 0"),
        (b"\xf0\x9f\x98(", "invalid utf-8 sequence of 3 bytes from index 0"),
        (b"\xed\xa0\x80", "invalid utf-8 sequence of 1 bytes from index 0"),
        (b"\xc0\x80", "invalid utf-8 sequence of 1 bytes from index 0"),
        (b"ab\xe2\x82", "incomplete utf-8 byte sequence from index 2"),
        (b"\xf0\x9f\x98", "incomplete utf-8 byte sequence from index 0"),
    ],
)
def test_where_bytes_are_no_utf8(data: bytes, message: str) -> None:
    with pytest.raises(UnicodeDecodeError) as caught:
        data.decode()
    assert str(encodings.utf8_fault(caught.value)) == message
