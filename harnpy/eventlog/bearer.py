"""Bearer sessions: who is calling a service, and until when. Spec: 08 §16, 10 §C22.

A session is named by its token, which is given out once, by `create`, and never kept: the log has its
*handle*, a hash of it. What sessions there are is what the events of one topic say, so all processes on a
log agree. Nothing here is about conversations.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from harnpy.crypto.encodings import to_base64url
from harnpy.eventlog.bearer_events import CREATED, EXPIRED, TOUCHED, Fold, Known, handle_of
from harnpy.eventlog.bearer_records import (
    CreateSession,
    DurableSession,
    DurableSessionError,
    Token,
    TouchSession,
    checked_attributes,
    checked_id,
    checked_principal,
    utc,
    utc_text,
)
from harnpy.eventlog.log_events import LogEvent
from harnpy.world.clock import RealClock
from harnpy.world.entropy import RealEntropy

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.eventlog.contract import EventLog

__all__ = ["BearerSessions", "CreateSession", "DurableSession", "DurableSessionError", "TouchSession"]

TOPIC = "orchestrator.sessions"
_PREFIX = "hs_"
#: Bytes of chance in a token.
_STRENGTH = 32


def utc_now() -> datetime:
    return datetime.fromtimestamp(RealClock().now(), UTC)


class BearerSessions:
    """The sessions of a topic. Any thread may call; every call reads what others have written since.

    Raises `DurableSessionError` for what can't be a session, `LogError` when the log fails.
    """

    def __init__(
        self, event_log: EventLog, *, topic: str = TOPIC, clock: Callable[[], datetime] = utc_now
    ) -> None:
        self._log = event_log
        self._topic = topic
        self._clock = clock
        self._fold = Fold(event_log, topic)

    def create(self, request: CreateSession) -> DurableSession:
        """Begin a session. Its token is in the result, and nowhere else."""
        principal = checked_principal(request.principal)
        created = self._moment(request.created_at)
        expires = utc(request.expires_at)
        if expires <= created:
            raise DurableSessionError("session expires_at must be after created_at")
        attributes = checked_attributes(request.attributes)
        token = Token(checked_id(request.id) if request.id is not None else _new_token())
        handle = handle_of(token)
        found = self._fold.find(handle)
        if found is not None and found.is_live(created):
            raise DurableSessionError("session id already exists")
        known = Known(handle, principal, created, created, expires, attributes)
        id = self._append(CREATED, known.payload())
        found = self._fold.find(handle)
        if found is None or found.event_id != id:  # somebody else was quicker
            raise DurableSessionError("session id already exists")
        return found.session(token)

    def get(self, id: str, now: datetime | None = None) -> DurableSession | None:
        """Return the session of a token; None when there is none, or it is over at ``now``."""
        found = self._live(id, self._moment(now))
        return None if found is None else found.session(Token(id))

    def touch(self, request: TouchSession) -> DurableSession | None:
        """Note that the session was seen, and return it; None, and nothing noted, when there is none."""
        seen = self._moment(request.seen_at)
        found = self._live(request.id, seen)
        if found is None:
            return None
        moment = max(found.last_seen_at, seen)
        self._append(TOUCHED, {"handle": found.handle, "last_seen_at": utc_text(moment)})
        found = self._live(request.id, seen)
        return None if found is None else found.session(Token(request.id))

    def expire(self, id: str, at: datetime | None = None) -> bool:
        """End a session at once. Return False when there is none that could be ended."""
        moment = self._moment(at)
        found = self._live(id, moment)
        if found is None:
            return False
        payload = {"handle": found.handle, "at": utc_text(moment), "reason": "revoked"}
        event_id = self._append(EXPIRED, payload)
        ended = self._fold.find(found.handle)
        return ended is not None and ended.ended_by == event_id

    def _live(self, id: str, now: datetime) -> Known | None:
        found = self._fold.find(handle_of(id))
        return found if found is not None and found.is_live(now) else None

    def _append(self, kind: str, payload: dict[str, Any]) -> int:
        return self._log.append(self._topic, LogEvent(kind, payload))

    def _moment(self, given: datetime | None) -> datetime:
        return utc(self._clock() if given is None else given)


def _new_token() -> str:
    return _PREFIX + to_base64url(RealEntropy.bytes(_STRENGTH)).rstrip("=")
