"""JSON Web Tokens, signed and verified (RFC 7515, RFC 7519). Spec: 04 §16.3.

A token is verified with the algorithm that the caller names, never with the one that it names itself. Keys
and signatures are `cryptography`'s, an extra; ES256 is deterministic (RFC 6979), so that a run can be
repeated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.faults import NamedFault, NamedMisuse
from harnpy.formats.crypto.encodings import EncodingError, from_base64url, to_base64url
from harnpy.formats.crypto.primitives import equal_in_constant_time, hmac_sha256, require
from harnpy.formats.json import JsonError, parse_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes, PublicKeyTypes

    Key = TypeVar("Key")

#: Bytes of each of the two numbers of an ES256 signature.
_NUMBER = 32


class TokenRefused(NamedFault):
    """A token that isn't valid under the key, or a key that can't be used."""


class SigningError(NamedMisuse):
    """A token can't be signed as asked."""


def signed(algorithm: str, claims: str, private_key: str) -> str:
    """Return a token with the JSON text ``claims``. Raises SigningError.

    ``algorithm``: ES256 with a P-256 key, PKCS#8 PEM; RS256 with an RSA key, PKCS#8 or PKCS#1 PEM.
    """
    if algorithm not in ("ES256", "RS256"):
        raise SigningError(f"unsupported algorithm `{algorithm}`; expected ES256 or RS256")
    require("cryptography")
    key = _private_key(algorithm, private_key)
    content = f"{_part(_header(algorithm))}.{_part(claims)}"
    try:
        signature = _signature(key, content.encode())
    except ValueError:  # an RSA key of few bits
        raise SigningError("signing failed: the key is too short") from None
    return f"{content}.{to_base64url(signature)}"


def verified(algorithm: str, token: str, key: str) -> dict[str, Any]:
    """Return the claims of a token. Raises TokenRefused.

    ``key``: for HS256 the shared secret, for ES256 and RS256 a public key as PEM. Times in the claims aren't
    looked at.
    """
    if algorithm not in ("HS256", "ES256", "RS256"):
        raise TokenRefused(f"unsupported algorithm '{algorithm}'")
    content, _, last = token.rpartition(".")
    header, dot, claims = content.partition(".")
    if not dot or "." in claims:
        raise TokenRefused("a token has three parts, separated by dots")
    _check_header(_json("header", header), algorithm)
    _check_signature(algorithm, key, content.encode(), _bytes("signature", last))
    return _json("payload", claims)


def _header(algorithm: str) -> str:
    return f'{{"typ":"JWT","alg":"{algorithm}"}}'


def _part(text: str) -> str:
    return to_base64url(text.encode("utf-8", "surrogatepass"))


def _bytes(name: str, part: str) -> bytes:
    try:
        return from_base64url(part)
    except EncodingError as error:
        raise TokenRefused(f"the {name} is not base64url: {error}") from None


def _json(name: str, part: str) -> dict[str, Any]:
    try:
        value = parse_json(_bytes(name, part).decode())
    except (JsonError, UnicodeDecodeError):
        raise TokenRefused(f"the {name} is not JSON") from None
    if not isinstance(value, dict):
        raise TokenRefused(f"the {name} is not a JSON object")
    return value


def _check_header(header: dict[str, Any], algorithm: str) -> None:
    named = header.get("alg")
    if named != algorithm:
        raise TokenRefused(
            f"the token is signed with {named if named else 'no algorithm'}, not with {algorithm}"
        )
    if "crit" in header:
        raise TokenRefused("the header has critical extensions, and none is supported")


def _check_signature(algorithm: str, key: str, content: bytes, signature: bytes) -> None:
    if algorithm == "HS256":
        expected = hmac_sha256(_secret(key), [content])
        valid = equal_in_constant_time(expected, signature)
    else:
        require("cryptography")
        valid = _is_signature(_public_key(algorithm, key), content, signature)
    if not valid:
        raise TokenRefused("invalid signature")


def _secret(key: str) -> bytes:
    if not key:
        raise TokenRefused("the shared secret is empty")
    # Whoever has a public key could sign with it.
    if key.lstrip().startswith("-----BEGIN "):
        raise TokenRefused("a PEM key is no shared secret: HS256 needs the text that the signer used")
    return key.encode("utf-8", "surrogatepass")


def _signature(key: PrivateKeyTypes, content: bytes) -> bytes:
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
    from cryptography.hazmat.primitives.hashes import SHA256

    if isinstance(key, rsa.RSAPrivateKey):
        return key.sign(content, padding.PKCS1v15(), SHA256())
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    r, s = utils.decode_dss_signature(key.sign(content, ec.ECDSA(SHA256(), deterministic_signing=True)))
    return r.to_bytes(_NUMBER, "big") + s.to_bytes(_NUMBER, "big")


def _is_signature(key: PublicKeyTypes, content: bytes, signature: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
    from cryptography.hazmat.primitives.hashes import SHA256

    try:
        if isinstance(key, rsa.RSAPublicKey):
            key.verify(signature, content, padding.PKCS1v15(), SHA256())
            return True
        assert isinstance(key, ec.EllipticCurvePublicKey)
        if len(signature) != 2 * _NUMBER:
            return False
        numbers = (int.from_bytes(half, "big") for half in (signature[:_NUMBER], signature[_NUMBER:]))
        key.verify(utils.encode_dss_signature(*numbers), content, ec.ECDSA(SHA256()))
    except InvalidSignature:
        return False
    return True


def _private_key(algorithm: str, pem: str) -> PrivateKeyTypes:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = _loaded(load_pem_private_key, pem, password=None)
        _check_kind(algorithm, key)
    except _BadKey as error:
        raise SigningError(f"invalid {algorithm} PEM private key: {error}") from None
    return key


def _public_key(algorithm: str, pem: str) -> PublicKeyTypes:
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = _loaded(load_pem_public_key, pem)
        _check_kind(algorithm, key)
    except _BadKey as error:
        raise TokenRefused(f"invalid {algorithm} PEM public key: {error}") from None
    return key


class _BadKey(Exception):
    """A text is no key, or not one of the algorithm's; ``str()`` says why."""


def _loaded(load: Callable[..., Key], text: str, **options: Any) -> Key:
    """Return the key in a PEM text. Raises _BadKey."""
    if not text.isascii() or "-----BEGIN " not in text:
        raise _BadKey("the text has no `-----BEGIN …-----` line")
    try:
        return load(text.encode(), **options)
    except TypeError:
        raise _BadKey("the key is encrypted") from None
    except ValueError:
        raise _BadKey("there is no such key in the text") from None


def _check_kind(algorithm: str, key: PrivateKeyTypes | PublicKeyTypes) -> None:
    """Raise _BadKey when a key isn't one of the algorithm's."""
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    if algorithm == "RS256":
        fits = isinstance(key, rsa.RSAPrivateKey | rsa.RSAPublicKey)
    else:
        curves = ec.EllipticCurvePrivateKey | ec.EllipticCurvePublicKey
        fits = isinstance(key, curves) and isinstance(key.curve, ec.SECP256R1)
    if not fits:
        raise _BadKey(f"the key is not {'an RSA' if algorithm == 'RS256' else 'a P-256'} key")
