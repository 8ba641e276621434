"""Cryptographic primitives: digests, message authentication codes, keys, and certificates for tests.

Keys and certificates are `cryptography`'s, an extra that is imported on first use.
Spec: 04 §16.2, §16.3, §21.5.
"""

from __future__ import annotations

import hashlib
import hmac
from datetime import UTC, datetime, timedelta
from importlib import import_module
from ipaddress import ip_address
from typing import TYPE_CHECKING, Protocol

from harnpy.faults import NamedFault, paced
from harnpy.formats.crypto.encodings import EncodingError, from_hex
from harnpy.version import install_command

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
    from cryptography.x509 import GeneralName

    class _Hash(Protocol):
        def update(self, data: bytes, /) -> object: ...
        def hexdigest(self) -> str: ...


def require(package: str) -> None:
    """Raise `NamedFault` unless a package of the extra `crypto` is installed."""
    try:
        import_module(package)
    except ImportError:
        raise NamedFault(f"needs the package '{package}': {install_command('crypto')}") from None


# Digests and message authentication codes. Spec: 04 §16.2.
#
# The standard library has all but BLAKE3, which is `blake3`'s, the implementation of its authors.


def digest(algorithm: str, pieces: Iterable[bytes]) -> str:
    """Return the hexadecimal digest of ``pieces``, put together; ``algorithm`` as `hashlib` calls it."""
    found = _new(algorithm)
    for piece in pieces:
        found.update(piece)
    return found.hexdigest()


def hmac_sha256(key: bytes, pieces: Iterable[bytes]) -> bytes:
    """Return the authentication code of the bytes that ``pieces`` make."""
    code = hmac.new(key, digestmod=hashlib.sha256)
    for piece in pieces:
        code.update(piece)
    return code.digest()


def equal_in_constant_time(a: bytes, b: bytes) -> bool:
    """Return whether both are the same, in a time that depends on nothing but their lengths."""
    return hmac.compare_digest(a, b)


def _new(algorithm: str) -> _Hash:
    if algorithm == "blake3":
        require("blake3")
        from blake3 import blake3

        return blake3()
    # MD5 is for checksums here, which systems that forbid it for security allow.
    return hashlib.new(algorithm, usedforsecurity=False)


# Ed25519 signatures and X25519 key agreement; keys are hexadecimal digits. Spec: 04 §16.3.
#
# By `cryptography`: no other library of this kind has been reviewed as much.


#: How many bytes a key has.
KEY_BYTES = 32


class KeyFault(NamedFault):
    """Something that is no key, or can't be used as one."""


def ed25519_pair(secret: bytes) -> dict[str, str]:
    """Return ``{private, public}`` of the `KEY_BYTES` bytes ``secret``."""
    return _pair(secret, _ed25519(secret))


def ed25519_signature(private: str, message: bytes) -> str:
    """Return 128 digits. Raises KeyFault."""
    return _ed25519(_key("private key", private)).sign(message).hex()


def ed25519_verifies(public: str, message: bytes, signature: str) -> bool:
    """Return whether ``signature`` is that of ``message``; False too for what is no key or no signature."""
    require("cryptography")
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        key = Ed25519PublicKey.from_public_bytes(from_hex(public))
        key.verify(from_hex(signature), message)
    except (EncodingError, ValueError, InvalidSignature):
        return False
    return True


def x25519_pair(secret: bytes) -> dict[str, str]:
    """Return ``{private, public}`` of the `KEY_BYTES` bytes ``secret``."""
    return _pair(secret, _x25519(secret))


def x25519_agreement(private: str, public: str) -> str:
    """Return the secret that the owners of both keys share, 64 digits. Raises KeyFault."""
    require("cryptography")
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

    peer = X25519PublicKey.from_public_bytes(_key("public key", public))
    try:
        return _x25519(_key("private key", private)).exchange(peer).hex()
    except ValueError:
        raise KeyFault(
            "the public key is a point of low order: anybody would know the shared secret"
        ) from None


def _pair(secret: bytes, key: Ed25519PrivateKey | X25519PrivateKey) -> dict[str, str]:
    return {"private": secret.hex(), "public": key.public_key().public_bytes_raw().hex()}


def _ed25519(secret: bytes) -> Ed25519PrivateKey:
    require("cryptography")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(secret)


def _x25519(secret: bytes) -> X25519PrivateKey:
    require("cryptography")
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    return X25519PrivateKey.from_private_bytes(secret)


def _key(what: str, text: str) -> bytes:
    try:
        data = from_hex(text)
    except EncodingError as error:
        raise KeyFault(f"the {what} is not hexadecimal: {error}") from None
    if len(data) != KEY_BYTES:
        raise KeyFault(f"the {what} must have {2 * KEY_BYTES} hexadecimal digits, got {len(text)}")
    return data


#: How many random bytes a certificate is made of: its number and its key.
SECRET_BYTES = 56
_SERIAL_BYTES = 16
_VALID = timedelta(days=30)


#: Names in a certificate.
_MOST_HOSTS = 1000


def self_signed(hosts: Sequence[str], secret: bytes, now: float) -> tuple[str, str]:
    """Return a certificate for names and addresses, valid for 30 days, and its key (P-256), both as PEM.

    ``secret`` are `SECRET_BYTES` random bytes, ``now`` are seconds since 1970. Raises ValueError for a name
    that can't be in a certificate.
    """
    if len(hosts) > _MOST_HOSTS:
        raise ValueError("too many names")
    require("cryptography")
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    serial, scalar = secret[:_SERIAL_BYTES], secret[_SERIAL_BYTES:]
    curve = ec.SECP256R1()
    # 320 random bits, reduced: as good as even over the group's 256 bits. Zero is no key.
    key = ec.derive_private_key(int.from_bytes(scalar, "big") % (curve.group_order - 1) + 1, curve)
    begin = datetime.fromtimestamp(now, UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "harnpy development")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(int.from_bytes(serial, "big") >> 1 | 1)
        .not_valid_before(begin - timedelta(hours=1))
        .not_valid_after(begin + _VALID)
        .add_extension(x509.SubjectAlternativeName([_name(host) for host in paced(hosts)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return certificate.public_bytes(pem).decode(), private.decode()


#: Characters that no host's name has, in whatever script.
_LONGEST_HOST = 1000


def _name(host: str) -> GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        if len(host) > _LONGEST_HOST:
            raise UnicodeError("the name is too long") from None
        return x509.DNSName(host.encode("idna").decode())
