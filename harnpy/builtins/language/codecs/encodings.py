"""Text encodings: base64, base32, hexadecimal, percent-encoding. Spec: 04 §16.1.

Encoders take bytes as they are and the text of any other value; decoders return text.
"""

from __future__ import annotations

from harnpy.builtins.language.codecs.arguments import data_of, text_of
from harnpy.crypto import encodings
from harnpy.vm.declare.builtin import builtin
from harnpy.vm.errors import RuntimeFault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


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
    """The value's text, or bytes, as base64 in the standard alphabet, padded.

    Example:
        base64_encode("hi")  // "aGk="
    """
    return _encoded(vm, value, encodings.to_base64, 4 / 3)


@builtin("base64_decode(s: string) -> string", family="crypto")
def base64_decode(vm: Vm, s: str) -> str:
    """The text of padded base64 in the standard alphabet. `bytes_from_base64` returns bytes.

    Example:
        base64_decode("aGk=")  // "hi"
    """
    return _decoded(s, encodings.from_base64, "base64")


@builtin('base64url_encode(value: any = "") -> string', family="crypto")
def base64url_encode(vm: Vm, value: Value) -> str:
    """The value's text, or bytes, as base64 in the alphabet for URLs, without padding.

    Example:
        base64url_encode("hi?")  // "aGk_"
    """
    return _encoded(vm, value, encodings.to_base64url, 4 / 3)


@builtin("base64url_decode(s: string) -> string", family="crypto")
def base64url_decode(vm: Vm, s: str) -> str:
    """The text of base64 in the alphabet for URLs, without padding.

    Example:
        base64url_decode("aGk_")  // "hi?"
    """
    return _decoded(s, encodings.from_base64url, "base64url")


@builtin('base32_encode(value: any = "") -> string', family="crypto")
def base32_encode(vm: Vm, value: Value) -> str:
    """The value's text, or bytes, as base32 in upper case, padded (RFC 4648).

    Example:
        base32_encode("hi")  // "NBUQ===="
    """
    return _encoded(vm, value, encodings.to_base32, 8 / 5)


@builtin("base32_decode(s: string) -> string", family="crypto")
def base32_decode(vm: Vm, s: str) -> str:
    """The text of padded base32 in upper case (RFC 4648).

    Example:
        base32_decode("NBUQ====")  // "hi"
    """
    return _decoded(s, encodings.from_base32, "base32")


@builtin('hex_encode(value: any = "") -> string', family="crypto")
def hex_encode(vm: Vm, value: Value) -> str:
    """The value's text, or bytes, as hexadecimal digits in lower case.

    Example:
        hex_encode("hi")  // "6869"
    """
    return _encoded(vm, value, bytes.hex, 2)


@builtin("hex_decode(s: string) -> string", family="crypto")
def hex_decode(vm: Vm, s: str) -> str:
    """The text of hexadecimal digits. `bytes_from_hex` returns bytes.

    Example:
        hex_decode("6869")  // "hi"
    """
    return _decoded(s, encodings.from_hex, "hex")


@builtin('url_encode(value: any = "") -> string', family="crypto")
def url_encode(vm: Vm, value: Value) -> str:
    """The value's text, or bytes, with everything but `A-Z a-z 0-9 - _ . ~` as `%XX`.

    Example:
        url_encode("a b/é")  // "a%20b%2F%C3%A9"
    """
    return _encoded(vm, value, encodings.percent_encoded, 3)


@builtin("url_decode(s: string) -> string", family="crypto")
def url_decode(vm: Vm, s: str) -> str:
    """The text with `%XX` and `+` (a space) decoded; malformed escapes are kept.

    Example:
        url_decode("a%20b+c")  // "a b c"
    """
    return encodings.percent_decoded(s)
