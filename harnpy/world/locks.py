"""Locks, for what several threads share."""

from __future__ import annotations

from threading import Lock, RLock

__all__ = ["Lock", "RLock"]
