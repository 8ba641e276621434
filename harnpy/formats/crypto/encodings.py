"""Bytes as text: base64, base32, hexadecimal digits, percent-encoding. Spec: 04 §15, §16.1.

Decoders are strict: every sequence of bytes has one text in each encoding (two in hexadecimal, whose digits
may have any case), so no signature or key has a second spelling.
"""

from __future__ import annotations

import base64
import re
from binascii import Error as Malformed
from codecs import getincrementaldecoder
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import quote

from harnpy.faults import Fault, look, pieces


class EncodingError(Fault):
    """A text that encodes no bytes; the message doesn't name the encoding."""


#: What is encoded at once: a multiple of all units, of bytes and of characters.
_PIECE = 120 << 7


class _Encoding(NamedTuple):
    """``unit``: characters that belong together, filled up with `=`."""

    other: re.Pattern[str]
    unit: int
    encode: Callable[[bytes], bytes]
    decode: Callable[[str], bytes]

    def encoded(self, data: bytes) -> str:
        return b"".join(map(self.encode, pieces(data, _PIECE))).decode()

    def decoded(self, text: str) -> bytes:
        """Return the bytes of a padded text."""
        digits = text.rstrip("=")
        _refuse_others(self.other, digits)
        filled = self._filled(digits)
        if filled != text:
            raise EncodingError("Invalid padding")
        try:
            data = b"".join(map(self.decode, pieces(filled, _PIECE)))
        except Malformed:
            raise EncodingError(f"Invalid length: no bytes have {len(digits)} characters") from None
        if self.encoded(data) != filled:
            raise EncodingError(f"Invalid last character {digits[-1]!r}: it has bits of no byte")
        return data

    def decoded_unpadded(self, text: str) -> bytes:
        """Return the bytes of a text without padding."""
        _refuse_others(self.other, text)
        return self.decoded(self._filled(text))

    def _filled(self, digits: str) -> str:
        return digits + "=" * (-len(digits) % self.unit)


_BASE64 = _Encoding(re.compile("[^A-Za-z0-9+/]"), 4, base64.b64encode, base64.b64decode)
_BASE64URL = _Encoding(re.compile("[^A-Za-z0-9_-]"), 4, base64.urlsafe_b64encode, base64.urlsafe_b64decode)
_BASE32 = _Encoding(re.compile("[^A-Z2-7]"), 8, base64.b32encode, base64.b32decode)
_ESCAPES = re.compile("(?:%[0-9A-Fa-f]{2})+")
#: What reading some escapes costs, in items.
_ESCAPE_ITEMS = 8
_NO_HEX = re.compile("[^0-9A-Fa-f]")


def to_base64(data: bytes) -> str:
    return _BASE64.encoded(data)


def from_base64(text: str) -> bytes:
    """Return the bytes of a padded text in the standard alphabet. Raises EncodingError."""
    return _BASE64.decoded(text)


def to_base64url(data: bytes) -> str:
    return _BASE64URL.encoded(data).rstrip("=")


def from_base64url(text: str) -> bytes:
    """Return the bytes of an unpadded text in the alphabet for URLs. Raises EncodingError."""
    return _BASE64URL.decoded_unpadded(text)


def to_base32(data: bytes) -> str:
    return _BASE32.encoded(data)


def from_base32(text: str) -> bytes:
    """Return the bytes of a padded text in upper case. Raises EncodingError."""
    return _BASE32.decoded(text)


def from_hex(text: str) -> bytes:
    """Return the bytes of hexadecimal digits in any case. Raises EncodingError."""
    if len(text) % 2:
        raise EncodingError("Odd number of digits")
    _refuse_others(_NO_HEX, text)
    return bytes.fromhex(text)


def percent_encoded(data: bytes) -> str:
    """Return everything but `A-Z a-z 0-9 - . _ ~` as `%XX`."""
    return "".join([quote(each, safe="") for each in pieces(data, _PIECE)])


def percent_decoded(text: str) -> str:
    """Return the text of `%XX` and `+`; what is malformed is kept, bytes that are no text become U+FFFD."""
    return _ESCAPES.sub(_unescaped, text.replace("+", " "))


def _unescaped(escapes: re.Match[str]) -> str:
    look(_ESCAPE_ITEMS)
    return bytes.fromhex(escapes[0].replace("%", "")).decode("utf-8", "replace")


def utf8_fault(error: UnicodeDecodeError) -> EncodingError:
    """Return what ``error`` says of bytes that are no UTF-8."""
    if error.end == len(error.object) and _is_begun(error.object[error.start :]):
        return EncodingError(f"incomplete utf-8 byte sequence from index {error.start}")
    return EncodingError(
        f"invalid utf-8 sequence of {error.end - error.start} bytes from index {error.start}"
    )


def _is_begun(content: bytes) -> bool:
    """Return whether a character of UTF-8 begins so."""
    try:
        getincrementaldecoder("utf-8")().decode(content)
    except UnicodeDecodeError:
        return False
    return True


def _refuse_others(others: re.Pattern[str], text: str) -> None:
    found = others.search(text)
    if found:
        raise EncodingError(f"Invalid character '{found[0]}' at position {found.start()}")
