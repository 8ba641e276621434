"""Locks, for what several threads share."""

from __future__ import annotations

from threading import Lock as Lock
from threading import RLock as RLock
