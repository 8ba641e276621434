"""What the events of a topic say about bearer sessions. Spec: 08 §16.

session.created {handle, principal, created_at, last_seen_at, expires_at, attributes}
session.touched {handle, last_seen_at}
session.expired {handle, at, reason}
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.crypto.hashes import equal_in_constant_time
from harnpy.eventlog.bearer_records import DurableSession, DurableSessionError, utc, utc_text
from harnpy.world.locks import Lock

if TYPE_CHECKING:
    from datetime import datetime

    from harnpy.eventlog.bearer_records import Token
    from harnpy.eventlog.contract import EventLog
    from harnpy.eventlog.log_events import LogEvent

CREATED, TOUCHED, EXPIRED = "session.created", "session.touched", "session.expired"


def handle_of(token: str) -> str:
    """Return what is kept in place of a token."""
    digest = sha256(b"harn.session.v1\0" + token.encode("utf-8", "surrogatepass"))
    return "sha256:" + digest.hexdigest()


class Known(NamedTuple):
    """A session as the log has it, without its token."""

    handle: str
    principal: str
    created_at: datetime
    last_seen_at: datetime
    expires_at: datetime
    attributes: dict[str, Any]
    #: The event that began it.
    event_id: int = 0
    #: The event that revoked it.
    ended_by: int | None = None

    @classmethod
    def begun(cls, id: int, payload: dict[str, Any]) -> Known:
        created, seen, expires = (utc(payload[name]) for name in ("created_at", "last_seen_at", "expires_at"))
        return cls(payload["handle"], payload["principal"], created, seen, expires, payload["attributes"], id)

    def payload(self) -> dict[str, Any]:
        return {
            "handle": self.handle,
            "principal": self.principal,
            "created_at": utc_text(self.created_at),
            "last_seen_at": utc_text(self.last_seen_at),
            "expires_at": utc_text(self.expires_at),
            "attributes": self.attributes,
        }

    def is_live(self, now: datetime) -> bool:
        return self.ended_by is None and now < self.expires_at

    def session(self, token: Token) -> DurableSession:
        return DurableSession(
            token, self.principal, self.created_at, self.last_seen_at, self.expires_at, self.attributes
        )


class Fold:
    """The sessions of a topic, brought up to date whenever one is looked for."""

    def __init__(self, log: EventLog, topic: str) -> None:
        self._log = log
        self._topic = topic
        self._cursor = 0
        self._sessions: dict[str, Known] = {}
        self._lock = Lock()

    def find(self, handle: str) -> Known | None:
        """Return the newest session with that handle, be it over or not."""
        with self._lock:
            for id, event in self._log.read_range(self._topic, self._cursor):
                self._take(id, event)
                self._cursor = id
            found = self._sessions.get(handle)
        if found is None or not equal_in_constant_time(found.handle.encode(), handle.encode()):
            return None
        return found

    def _take(self, id: int, event: LogEvent) -> None:
        if event.kind not in (CREATED, TOUCHED, EXPIRED):
            return
        try:
            payload = event.payload
            found = self._sessions.get(payload["handle"])
            if event.kind == CREATED:
                begun = Known.begun(id, payload)
                if found is None or not found.is_live(begun.created_at):
                    self._sessions[begun.handle] = begun
            elif found is not None and found.ended_by is None:
                if event.kind == EXPIRED:
                    found = found._replace(ended_by=id)
                else:
                    seen = max(found.last_seen_at, utc(payload["last_seen_at"]))
                    found = found._replace(last_seen_at=seen)
                self._sessions[found.handle] = found
        except (KeyError, TypeError, AttributeError, DurableSessionError) as error:
            where = f"event {id} of topic '{self._topic}'"
            raise DurableSessionError(f"{where} tells of no session: {error!r}") from None
