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
    """The hexadecimal digest of the value's text, or of bytes, by MD5: for checksums only."""
    return _digest(vm, "md5", value)


@builtin('sha224(value: any = "") -> string', family="crypto")
def sha224(vm: Vm, value: Value) -> str:
    """The hexadecimal digest of the value's text, or of bytes, by SHA-224."""
    return _digest(vm, "sha224", value)


@builtin('sha256(value: any = "") -> string', family="crypto")
def sha256(vm: Vm, value: Value) -> str:
    """The hexadecimal digest of the value's text, or of bytes, by SHA-256."""
    return _digest(vm, "sha256", value)


@builtin('sha384(value: any = "") -> string', family="crypto")
def sha384(vm: Vm, value: Value) -> str:
    """The hexadecimal digest of the value's text, or of bytes, by SHA-384."""
    return _digest(vm, "sha384", value)


@builtin('sha512(value: any = "") -> string', family="crypto")
def sha512(vm: Vm, value: Value) -> str:
    """The hexadecimal digest of the value's text, or of bytes, by SHA-512."""
    return _digest(vm, "sha512", value)


@builtin('sha512_256(value: any = "") -> string', family="crypto")
def sha512_256(vm: Vm, value: Value) -> str:
    """The hexadecimal digest of the value's text, or of bytes, by SHA-512/256."""
    return _digest(vm, "sha512_256", value)


@builtin('sha3_256(value: any = "") -> string', family="crypto")
def sha3_256(vm: Vm, value: Value) -> str:
    """The hexadecimal digest of the value's text, or of bytes, by SHA3-256."""
    return _digest(vm, "sha3_256", value)


@builtin('sha3_512(value: any = "") -> string', family="crypto")
def sha3_512(vm: Vm, value: Value) -> str:
    """The hexadecimal digest of the value's text, or of bytes, by SHA3-512."""
    return _digest(vm, "sha3_512", value)


@builtin('blake3(value: any = "") -> string', family="crypto")
def blake3(vm: Vm, value: Value) -> str:
    """The hexadecimal digest of the value's text, or of bytes, by BLAKE3, 256 bits."""
    return _digest(vm, "blake3", value)


@builtin('hmac_sha256(key: any = "", message: any = "") -> string', family="crypto")
def hmac_sha256(vm: Vm, key: Value, message: Value) -> str:
    """The HMAC-SHA256 of the message under the key, hexadecimal; each is bytes, or any value's text."""
    return _code(vm, key, message).hex()


@builtin('hmac_sha256_base64(key: any = "", message: any = "") -> string', family="crypto")
def hmac_sha256_base64(vm: Vm, key: Value, message: Value) -> str:
    """The HMAC-SHA256 of the message under the key, as padded base64; each is bytes, or any value's text."""
    return to_base64(_code(vm, key, message))


@builtin('constant_time_eq(a: any = "", b: any = "") -> bool', family="crypto")
def constant_time_eq(vm: Vm, a: Value, b: Value) -> bool:
    """Whether both texts, or bytes, are the same, in a time that doesn't say where they differ."""
    return hashes.equal_in_constant_time(data_of(a), data_of(b))
