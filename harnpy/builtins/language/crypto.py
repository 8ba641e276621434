"""Hashes, message authentication codes, signatures, key agreement and JSON Web Tokens.

Spec: 04 §16.2, §16.3.
"""

from __future__ import annotations

from harnpy.builtins.language.arguments import PIECE, data_of
from harnpy.faults import pieces
from harnpy.formats.crypto import jwt, primitives
from harnpy.formats.crypto.encodings import to_base64
from harnpy.formats.json import to_json
from harnpy.vm.declare import ABSENT, builtin
from harnpy.vm.errors import RuntimeFault, Thrown
from harnpy.vm.values import type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

# Hashes and message authentication codes, of bytes or of the text of any other value. Spec: 04 §16.2.


def _code(vm: Vm, key: Value, message: Value) -> bytes:
    return primitives.hmac_sha256(data_of(key), pieces(data_of(message), PIECE))


def digest_builtin(signature: str, algorithm: str, word: str, example: str) -> Callable[..., str]:
    """Declare a hash function."""

    def digest(vm: Vm, value: Value) -> str:
        return primitives.digest(algorithm, pieces(data_of(value), PIECE))

    summary = f"Return the hexadecimal digest of the value's text, or of bytes, by {word}."
    digest.__doc__ = f"{summary}\n\nExample: {example}"
    return builtin(signature, family="crypto")(digest)


md5 = digest_builtin(
    'md5(value: any = "") -> string',
    "md5",
    "MD5: for checksums only",
    'md5("hi")  // "49f68a5c8493ec2c0bf489821c21fc3b"',
)
sha224 = digest_builtin(
    'sha224(value: any = "") -> string',
    "sha224",
    "SHA-224",
    'sha224("hi")  // "1a15bca3e4ed3ab82367c6c434f86c41040bdac577fa1c2de62c3be0"',
)
sha256 = digest_builtin(
    'sha256(value: any = "") -> string',
    "sha256",
    "SHA-256",
    'sha256("hi")  // "8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4"',
)
sha384 = digest_builtin('sha384(value: any = "") -> string', "sha384", "SHA-384", 'len(sha384("hi"))  // 96')
sha512 = digest_builtin('sha512(value: any = "") -> string', "sha512", "SHA-512", 'len(sha512("hi"))  // 128')
sha512_256 = digest_builtin(
    'sha512_256(value: any = "") -> string',
    "sha512_256",
    "SHA-512/256",
    'sha512_256("hi")  // "8ab98d4dbaa10dbf48a1ee02367c967e39987e5096b90a4067a242b470be755a"',
)
sha3_256 = digest_builtin(
    'sha3_256(value: any = "") -> string',
    "sha3_256",
    "SHA3-256",
    'sha3_256("hi")  // "b39c14c8da3b23811f6415b7e0b33526d7e07a46f2cf0484179435767e4a8804"',
)
sha3_512 = digest_builtin(
    'sha3_512(value: any = "") -> string', "sha3_512", "SHA3-512", 'len(sha3_512("hi"))  // 128'
)
blake3 = digest_builtin(
    'blake3(value: any = "") -> string',
    "blake3",
    "BLAKE3, 256 bits",
    'blake3("hi")  // "85052e9aab1b67b6622d94a08441b09fd5b7aca61ee360416d70de5da67d86ca"',
)


@builtin('hmac_sha256(key: any = "", message: any = "") -> string', family="crypto")
def hmac_sha256(vm: Vm, key: Value, message: Value) -> str:
    """Return the HMAC-SHA256 of a message under a key in hexadecimal; each is bytes, or any value's text.

    Example:
        hmac_sha256("key", "message")  // "6e9ef29b75fffc5b7abae527d58fdadb2fe42e7219011976917343065f58ed4a"
    """
    return _code(vm, key, message).hex()


@builtin('hmac_sha256_base64(key: any = "", message: any = "") -> string', family="crypto")
def hmac_sha256_base64(vm: Vm, key: Value, message: Value) -> str:
    """Return the HMAC-SHA256 of a message under a key, as padded base64; each is bytes, or any value's text.

    Example: hmac_sha256_base64("key", "message")  // "bp7ym3X//Ft6uuUn1Y/a2y/kLnIZARl2kXNDBl9Y7Uo="
    """
    return to_base64(_code(vm, key, message))


@builtin('constant_time_eq(a: any = "", b: any = "") -> bool', family="crypto")
def constant_time_eq(vm: Vm, a: Value, b: Value) -> bool:
    """Return true if both texts, or bytes, are equal, in a time that doesn't reveal where they differ.

    Example: constant_time_eq("secret", "secreT")  // false
    """
    return primitives.equal_in_constant_time(data_of(a), data_of(b))


# Ed25519 signatures and X25519 key agreement. Spec: 04 §16.3.


@builtin("ed25519_keypair() -> dict", family="crypto")
def ed25519_keypair(vm: Vm) -> dict[str, str]:
    """Return a new signing key pair: `{private, public}`, each 64 hexadecimal digits.

    Example: len(ed25519_keypair().private)  // 64
    """
    return primitives.ed25519_pair(vm.world.entropy.bytes(primitives.KEY_BYTES))


@builtin('ed25519_sign(private_hex: string, message: any = "") -> string', family="crypto")
def ed25519_sign(vm: Vm, private_hex: str, message: Value) -> str:
    """Sign the message's text, or bytes: 128 hexadecimal digits. Throws for an invalid key.

    Example:
        let key = ed25519_keypair()
        ed25519_verify(key.public, "pay 5", ed25519_sign(key.private, "pay 5"))  // true
    """
    return primitives.ed25519_signature(private_hex, data_of(message))


@builtin(
    'ed25519_verify(public_hex: string, message: any = "", signature_hex: string) -> bool', family="crypto"
)
def ed25519_verify(vm: Vm, public_hex: str, message: Value, signature_hex: str) -> bool:
    """Return true if the signature is that of the message's text, or bytes; false for an invalid key.

    Example:
        let key = ed25519_keypair()
        ed25519_verify(key.public, "pay 9", ed25519_sign(key.private, "pay 5"))  // false
    """
    return primitives.ed25519_verifies(public_hex, data_of(message), signature_hex)


@builtin("x25519_keypair() -> dict", family="crypto")
def x25519_keypair(vm: Vm) -> dict[str, str]:
    """Return a new key pair for agreeing on a secret: `{private, public}`, each 64 hexadecimal digits.

    Example: len(x25519_keypair().public)  // 64
    """
    return primitives.x25519_pair(vm.world.entropy.bytes(primitives.KEY_BYTES))


@builtin("x25519_agree(private_hex: string, peer_public_hex: string) -> string", family="crypto")
def x25519_agree(vm: Vm, private_hex: str, peer_public_hex: str) -> str:
    """Return the secret that both key owners compute: 64 hexadecimal digits. Throws for an invalid key.

    Example:
        let a = x25519_keypair()
        let b = x25519_keypair()
        x25519_agree(a.private, b.public) == x25519_agree(b.private, a.public)  // true
    """
    return primitives.x25519_agreement(private_hex, peer_public_hex)


# JSON Web Tokens. Spec: 04 §16.3.


@builtin("jwt_sign(alg: string, claims: dict, private_key: string) -> string", family="crypto", counted=True)
def jwt_sign(
    vm: Vm, alg: Value = ABSENT, claims: Value = ABSENT, private_key: Value = ABSENT, *surplus: Value
) -> str:
    r"""Return a token with the claims, signed by `ES256` or `RS256` with a private key in PEM.

    Example:
        // harnpy: allow literal-secret
        let lines = [
          "-----BEGIN PRIVATE KEY-----",
          "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgya+p2EW6dRZrXCFX",
          "Z7HWk05Qw9s26JsSe4piKxIPZyGhRANCAARg/tS6JVqdMclh63TGNW1owEm4kjth",
          "+mzmaWIuYPKftnkD/hAIuLyZpBrp6VYovGTy8bIMLX6fUXejwpTURiKZ",
          "-----END PRIVATE KEY-----",
        ]
        let token = jwt_sign("ES256", {sub: "ada"}, lines.join("\n"))
        base64url_decode(token.split(".")[1])  // "{\"sub\":\"ada\"}"
    """
    if private_key is ABSENT or surplus:
        raise RuntimeFault("jwt_sign: requires 3 arguments: alg, claims, private_key")
    _expect("alg", alg, str, "a string")
    _expect("claims", claims, dict, "a dict")
    _expect("private_key", private_key, str, "a PEM string")
    return jwt.signed(alg, to_json(claims), private_key)


@builtin("jwt_verify(alg: string, token: string, key: string) -> dict", family="crypto", counted=True)
def jwt_verify(vm: Vm, alg: Value = ABSENT, token: Value = ABSENT, key: Value = ABSENT) -> dict[str, Value]:
    r"""Return `{valid: true, claims}` of a token; throw if it isn't valid under the key.

    `key`: a shared secret for `HS256`, a public key in PEM for `ES256` and `RS256`. Times in the claims
    (`exp`, `nbf`) aren't looked at.

    Example:
        let content = base64url_encode("{\"alg\":\"HS256\"}") + "." + base64url_encode("{\"sub\":\"ada\"}")
        let mac = base64url_encode(bytes_from_hex(hmac_sha256("secret", content)))
        jwt_verify("HS256", content + "." + mac, "secret").claims  // {sub: "ada"}
    """
    if not all(type(argument) is str for argument in (alg, token, key)):
        raise Thrown("jwt_verify: expected (alg, token, key)")
    return {"valid": True, "claims": jwt.verified(alg, token, key)}


def _expect(name: str, value: Value, kind: type, words: str) -> None:
    if type(value) is not kind:
        raise RuntimeFault(f"jwt_sign: {name} must be {words}, got {type_name(value)}")
