"""Bytes as values, and text encodings: base64, base32, hexadecimal, percent-encoding. Spec: 04 §15, §16.1."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.language.arguments import data_of, expect, text_of
from harnpy.formats.crypto import encodings
from harnpy.formats.crypto.encodings import EncodingError, from_base64, from_hex, to_base64, utf8_fault
from harnpy.formats.crypto.primitives import equal_in_constant_time
from harnpy.vm.declare import ABSENT, builtin
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import RuntimeFault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

bytes_builtin = partial(declare, family="bytes", counted=True)


@bytes_builtin("bytes_from_string(s: string) -> bytes")
def bytes_from_string(vm: Vm, s: Value = ABSENT) -> bytes:
    """Return a string as UTF-8 bytes.

    Example: bytes_len(bytes_from_string("é"))  // 2
    """
    expect("bytes_from_string", s, 1, str)
    return s.encode("utf-8", "surrogatepass")  # type: ignore[no-any-return]


@bytes_builtin("bytes_to_string(b: bytes) -> string")
def bytes_to_string(vm: Vm, b: Value = ABSENT) -> str:
    """Return the string that the bytes encode in UTF-8; anything else is an error that says where.

    Example: bytes_to_string(bytes_from_hex("6869"))  // "hi"
    """
    expect("bytes_to_string", b, 1, bytes)
    try:
        return b.decode()  # type: ignore[no-any-return]
    except UnicodeDecodeError as error:
        raise RuntimeFault(f"bytes_to_string: {utf8_fault(error)}") from None


@bytes_builtin("bytes_to_string_lossy(b: bytes) -> string")
def bytes_to_string_lossy(vm: Vm, b: Value = ABSENT) -> str:
    """Return the string that the bytes encode in UTF-8, with U+FFFD for invalid bytes.

    Example: bytes_to_string_lossy(bytes_from_hex("68ff"))  // "h�"
    """
    expect("bytes_to_string_lossy", b, 1, bytes)
    return text_of(b)


@bytes_builtin("bytes_to_hex(b: bytes) -> string")
def bytes_to_hex(vm: Vm, b: Value = ABSENT) -> str:
    """Return the bytes as hexadecimal digits in lower case.

    Example: bytes_to_hex(bytes_from_string("hi"))  // "6869"
    """
    expect("bytes_to_hex", b, 1, bytes)
    vm.sizes.check_text(2 * len(b))
    return b.hex()  # type: ignore[no-any-return]


@bytes_builtin("bytes_from_hex(s: string) -> bytes")
def bytes_from_hex(vm: Vm, s: Value = ABSENT) -> bytes:
    r"""Return the bytes of hexadecimal digits in either case, without spaces.

    Example: to_string(bytes_from_hex("6869"))  // "b\"6869\""
    """
    expect("bytes_from_hex", s, 1, str)
    try:
        return from_hex(s)
    except EncodingError as error:
        raise RuntimeFault(f"bytes_from_hex: {error}") from None


@bytes_builtin("bytes_to_base64(b: bytes) -> string")
def bytes_to_base64(vm: Vm, b: Value = ABSENT) -> str:
    """Return the bytes as base64 in the standard alphabet, padded.

    Example: bytes_to_base64(bytes_from_string("hi"))  // "aGk="
    """
    expect("bytes_to_base64", b, 1, bytes)
    vm.sizes.check_text(len(b) * 4 // 3)
    return to_base64(b)


@bytes_builtin("bytes_from_base64(s: string) -> bytes")
def bytes_from_base64(vm: Vm, s: Value = ABSENT) -> bytes:
    """Return the bytes of padded base64 in the standard alphabet.

    Example: bytes_to_string(bytes_from_base64("aGk="))  // "hi"
    """
    expect("bytes_from_base64", s, 1, str)
    try:
        return from_base64(s)
    except EncodingError as error:
        raise RuntimeFault(f"bytes_from_base64: {error}") from None


@bytes_builtin("bytes_len(b: bytes) -> int")
def bytes_len(vm: Vm, b: Value = ABSENT) -> int:
    """Return the number of bytes.

    Example: bytes_len(bytes_from_hex("00ff"))  // 2
    """
    expect("bytes_len", b, 1, bytes)
    return len(b)


@bytes_builtin("bytes_concat(a: bytes, b: bytes) -> bytes")
def bytes_concat(vm: Vm, a: Value = ABSENT, b: Value = ABSENT) -> bytes:
    """Return the bytes of `a`, then those of `b`.

    Example: bytes_concat(bytes_from_hex("00"), bytes_from_hex("ff"))  // bytes_from_hex("00ff")
    """
    expect("bytes_concat", a, 1, bytes)
    expect("bytes_concat", b, 2, bytes)
    vm.sizes.check_bytes(len(a) + len(b))
    return a + b  # type: ignore[no-any-return]


@bytes_builtin("bytes_slice(b: bytes, start: int, end: int) -> bytes")
def bytes_slice(vm: Vm, b: Value = ABSENT, start: Value = ABSENT, end: Value = ABSENT) -> bytes:
    """Return the bytes from `start` to before `end`, both limited to what is there; negative counts as 0.

    Example: bytes_to_hex(bytes_slice(bytes_from_hex("00112233"), 1, 3))  // "1122"
    """
    expect("bytes_slice", b, 1, bytes)
    expect("bytes_slice", start, 2, int)
    expect("bytes_slice", end, 3, int)
    return b[max(start, 0) : max(end, 0)]  # type: ignore[no-any-return]


@bytes_builtin("bytes_eq(a: bytes, b: bytes) -> bool")
def bytes_eq(vm: Vm, a: Value = ABSENT, b: Value = ABSENT) -> bool:
    """Return true if both are equal, in a time that doesn't reveal where they differ.

    Example: bytes_eq(bytes_from_string("a"), bytes_from_hex("61"))  // true
    """
    expect("bytes_eq", a, 1, bytes)
    expect("bytes_eq", b, 2, bytes)
    return equal_in_constant_time(a, b)


# Text encodings: base64, base32, hexadecimal, percent-encoding. Spec: 04 §16.1.
#
# Encoders take bytes as they are and the text of any other value; decoders return text.


def _encoded(vm: Vm, value: Value, encode: Callable[[bytes], str], growth: float) -> str:
    """Return the text of a value's bytes; each becomes ``growth`` characters."""
    data = data_of(value)
    vm.sizes.check_text(int(len(data) * growth))
    return encode(data)


def _decoded(text: str, decode: Callable[[str], bytes], encoding: str) -> str:
    try:
        return text_of(decode(text))
    except encodings.EncodingError as error:
        raise RuntimeFault(f"{encoding} decode error: {error}") from None


@builtin('base64_encode(value: any = "") -> string', family="crypto")
def base64_encode(vm: Vm, value: Value) -> str:
    """Return the value's text, or bytes, as base64 in the standard alphabet, padded.

    Example: base64_encode("hi")  // "aGk="
    """
    return _encoded(vm, value, encodings.to_base64, 4 / 3)


@builtin("base64_decode(s: string) -> string", family="crypto")
def base64_decode(vm: Vm, s: str) -> str:
    """Return the text of padded base64 in the standard alphabet. `bytes_from_base64` returns bytes.

    Example: base64_decode("aGk=")  // "hi"
    """
    return _decoded(s, encodings.from_base64, "base64")


@builtin('base64url_encode(value: any = "") -> string', family="crypto")
def base64url_encode(vm: Vm, value: Value) -> str:
    """Return the value's text, or bytes, as base64 in the alphabet for URLs, without padding.

    Example: base64url_encode("hi?")  // "aGk_"
    """
    return _encoded(vm, value, encodings.to_base64url, 4 / 3)


@builtin("base64url_decode(s: string) -> string", family="crypto")
def base64url_decode(vm: Vm, s: str) -> str:
    """Return the text of base64 in the alphabet for URLs, without padding.

    Example: base64url_decode("aGk_")  // "hi?"
    """
    return _decoded(s, encodings.from_base64url, "base64url")


@builtin('base32_encode(value: any = "") -> string', family="crypto")
def base32_encode(vm: Vm, value: Value) -> str:
    """Return the value's text, or bytes, as base32 in upper case, padded (RFC 4648).

    Example: base32_encode("hi")  // "NBUQ===="
    """
    return _encoded(vm, value, encodings.to_base32, 8 / 5)


@builtin("base32_decode(s: string) -> string", family="crypto")
def base32_decode(vm: Vm, s: str) -> str:
    """Return the text of padded base32 in upper case (RFC 4648).

    Example: base32_decode("NBUQ====")  // "hi"
    """
    return _decoded(s, encodings.from_base32, "base32")


@builtin('hex_encode(value: any = "") -> string', family="crypto")
def hex_encode(vm: Vm, value: Value) -> str:
    """Return the value's text, or bytes, as hexadecimal digits in lower case.

    Example: hex_encode("hi")  // "6869"
    """
    return _encoded(vm, value, bytes.hex, 2)


@builtin("hex_decode(s: string) -> string", family="crypto")
def hex_decode(vm: Vm, s: str) -> str:
    """Return the text of hexadecimal digits. `bytes_from_hex` returns bytes.

    Example: hex_decode("6869")  // "hi"
    """
    return _decoded(s, encodings.from_hex, "hex")


@builtin('url_encode(value: any = "") -> string', family="crypto")
def url_encode(vm: Vm, value: Value) -> str:
    """Return the value's text, or bytes, with everything but `A-Z a-z 0-9 - _ . ~` as `%XX`.

    Example: url_encode("a b/é")  // "a%20b%2F%C3%A9"
    """
    return _encoded(vm, value, encodings.percent_encoded, 3)


@builtin("url_decode(s: string) -> string", family="crypto")
def url_decode(vm: Vm, s: str) -> str:
    """Return the text with `%XX` and `+` (a space) decoded; malformed escapes are kept.

    Example: url_decode("a%20b+c")  // "a b c"
    """
    return encodings.percent_decoded(s)
