"""Hashes and message authentication codes, of bytes or of the text of any other value. Spec: 04 §16.2."""

from __future__ import annotations

from harnpy.builtins.language.codecs.arguments import data_of, pieces
from harnpy.crypto import hashes
from harnpy.crypto.encodings import to_base64
from harnpy.vm.declare.builtin import builtin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


def _digest(vm: Vm, algorithm: str, value: Value) -> str:
    return hashes.digest(algorithm, pieces(vm, data_of(value)))


def _code(vm: Vm, key: Value, message: Value) -> bytes:
    return hashes.hmac_sha256(data_of(key), pieces(vm, data_of(message)))


@builtin('md5(value: any = "") -> string', family="crypto")
def md5(vm: Vm, value: Value) -> str:
    """The hexadecimal digest of the value's text, or of bytes, by MD5: for checksums only.

    Example:
        md5("hi")  // "49f68a5c8493ec2c0bf489821c21fc3b"
    """
    return _digest(vm, "md5", value)


@builtin('sha224(value: any = "") -> string', family="crypto")
def sha224(vm: Vm, value: Value) -> str:
    """The hexadecimal digest of the value's text, or of bytes, by SHA-224.

    Example:
        sha224("hi")  // "1a15bca3e4ed3ab82367c6c434f86c41040bdac577fa1c2de62c3be0"
    """
    return _digest(vm, "sha224", value)


@builtin('sha256(value: any = "") -> string', family="crypto")
def sha256(vm: Vm, value: Value) -> str:
    """The hexadecimal digest of the value's text, or of bytes, by SHA-256.

    Example:
        sha256("hi")  // "8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4"
    """
    return _digest(vm, "sha256", value)


@builtin('sha384(value: any = "") -> string', family="crypto")
def sha384(vm: Vm, value: Value) -> str:
    """The hexadecimal digest of the value's text, or of bytes, by SHA-384.

    Example:
        len(sha384("hi"))  // 96
    """
    return _digest(vm, "sha384", value)


@builtin('sha512(value: any = "") -> string', family="crypto")
def sha512(vm: Vm, value: Value) -> str:
    """The hexadecimal digest of the value's text, or of bytes, by SHA-512.

    Example:
        len(sha512("hi"))  // 128
    """
    return _digest(vm, "sha512", value)


@builtin('sha512_256(value: any = "") -> string', family="crypto")
def sha512_256(vm: Vm, value: Value) -> str:
    """The hexadecimal digest of the value's text, or of bytes, by SHA-512/256.

    Example:
        sha512_256("hi")  // "8ab98d4dbaa10dbf48a1ee02367c967e39987e5096b90a4067a242b470be755a"
    """
    return _digest(vm, "sha512_256", value)


@builtin('sha3_256(value: any = "") -> string', family="crypto")
def sha3_256(vm: Vm, value: Value) -> str:
    """The hexadecimal digest of the value's text, or of bytes, by SHA3-256.

    Example:
        sha3_256("hi")  // "b39c14c8da3b23811f6415b7e0b33526d7e07a46f2cf0484179435767e4a8804"
    """
    return _digest(vm, "sha3_256", value)


@builtin('sha3_512(value: any = "") -> string', family="crypto")
def sha3_512(vm: Vm, value: Value) -> str:
    """The hexadecimal digest of the value's text, or of bytes, by SHA3-512.

    Example:
        len(sha3_512("hi"))  // 128
    """
    return _digest(vm, "sha3_512", value)


@builtin('blake3(value: any = "") -> string', family="crypto")
def blake3(vm: Vm, value: Value) -> str:
    """The hexadecimal digest of the value's text, or of bytes, by BLAKE3, 256 bits.

    Example:
        blake3("hi")  // "85052e9aab1b67b6622d94a08441b09fd5b7aca61ee360416d70de5da67d86ca"
    """
    return _digest(vm, "blake3", value)


@builtin('hmac_sha256(key: any = "", message: any = "") -> string', family="crypto")
def hmac_sha256(vm: Vm, key: Value, message: Value) -> str:
    """The HMAC-SHA256 of the message under the key, hexadecimal; each is bytes, or any value's text.

    Example:
        hmac_sha256("key", "message")  // "6e9ef29b75fffc5b7abae527d58fdadb2fe42e7219011976917343065f58ed4a"
    """
    return _code(vm, key, message).hex()


@builtin('hmac_sha256_base64(key: any = "", message: any = "") -> string', family="crypto")
def hmac_sha256_base64(vm: Vm, key: Value, message: Value) -> str:
    """The HMAC-SHA256 of the message under the key, as padded base64; each is bytes, or any value's text.

    Example:
        hmac_sha256_base64("key", "message")  // "bp7ym3X//Ft6uuUn1Y/a2y/kLnIZARl2kXNDBl9Y7Uo="
    """
    return to_base64(_code(vm, key, message))


@builtin('constant_time_eq(a: any = "", b: any = "") -> bool', family="crypto")
def constant_time_eq(vm: Vm, a: Value, b: Value) -> bool:
    """Whether both texts, or bytes, are the same, in a time that doesn't say where they differ.

    Example:
        constant_time_eq("secret", "secreT")  // false
    """
    return hashes.equal_in_constant_time(data_of(a), data_of(b))
