"""Bytes that nobody can guess: what keys are made of."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Entropy(Protocol):
        def bytes(self, count: int) -> bytes:
            """``count`` bytes, fit for a private key."""


class RealEntropy:
    bytes = staticmethod(os.urandom)
