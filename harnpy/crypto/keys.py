"""Ed25519 signatures and X25519 key agreement; keys are hexadecimal digits. Spec: 04 §16.3.

By `cryptography`: no other library of this kind has been reviewed as much.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.crypto.encodings import EncodingError, from_hex
from harnpy.faults import NamedFault

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

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
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(secret)


def _x25519(secret: bytes) -> X25519PrivateKey:
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
