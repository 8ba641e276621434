"""Bytes that nobody can guess, and new ids.

Ids are UUIDs of version 7: each new one differs from all others, and later ones sort after earlier ones.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Entropy(Protocol):
        def bytes(self, count: int) -> bytes:
            """``count`` bytes, fit for a private key."""

    class Ids(Protocol):
        def new(self) -> str:
            """A new UUID, version 7, as 36 characters."""


class RealEntropy:
    bytes = staticmethod(os.urandom)


class RealIds:
    def new(self) -> str:
        # Imported late: `uuid6` costs more than all of a short program.
        from uuid6 import uuid7

        return str(uuid7())
