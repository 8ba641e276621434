"""Bearer sessions under the names of 08 §16. Spec: 08 §16.

`SessionStore` is `BearerSessions`; it has nothing to do with conversations. The functions are its methods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.eventlog.bearer import (
    BearerSessions,
    CreateSession,
    DurableSession,
    DurableSessionError,
    TouchSession,
)

if TYPE_CHECKING:
    from datetime import datetime

SessionStore = BearerSessions

__all__ = [
    "CreateSession",
    "DurableSession",
    "DurableSessionError",
    "SessionStore",
    "TouchSession",
    "create",
    "expire",
    "get",
    "touch",
]


def create(store: BearerSessions, request: CreateSession) -> DurableSession:
    return store.create(request)


def get(store: BearerSessions, id: str, now: datetime | None = None) -> DurableSession | None:
    return store.get(id, now)


def touch(store: BearerSessions, request: TouchSession) -> DurableSession | None:
    return store.touch(request)


def expire(store: BearerSessions, id: str, at: datetime | None = None) -> bool:
    return store.expire(id, at)
