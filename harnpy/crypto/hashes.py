"""Digests and message authentication codes. Spec: 04 §16.2.

The standard library has all but BLAKE3, which is `blake3`'s, the implementation of its authors.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Protocol

    class _Hash(Protocol):
        def update(self, data: bytes, /) -> object: ...
        def hexdigest(self) -> str: ...


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
        from blake3 import blake3

        return blake3()
    # MD5 is for checksums here, which systems that forbid it for security allow.
    return hashlib.new(algorithm, usedforsecurity=False)
