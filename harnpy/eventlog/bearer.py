"""Bearer sessions: who is calling a service, and until when. Spec: 08 §16, 10 §C22.

A session is named by its token. `create` returns the token once; the log contains only the *handle*, a hash
of it, and no `repr` shows it. The sessions that exist are a fold of the events of one topic, so all processes
on a log agree. Nothing here is about conversations.

    session.created {handle, principal, created_at, last_seen_at, expires_at, attributes}
    session.touched {handle, last_seen_at}
    session.expired {handle, at, reason}
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.eventlog.contract import LogEvent
from harnpy.faults import Fault, shape_problem
from harnpy.formats.crypto.encodings import to_base64url
from harnpy.formats.crypto.primitives import equal_in_constant_time
from harnpy.world.clock import RealClock, is_rfc3339
from harnpy.world.ids import RealEntropy
from harnpy.world.threads import Lock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harnpy.eventlog.contract import EventLog

_SHORTEST, _FEWEST = 32, 10
_MOST_ATTRIBUTES = 16 * 1024


class DurableSessionError(Fault):
    """No session can be like that. Nothing has changed."""


class Token(str):
    """A token: text that its `repr` doesn't show."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


@dataclass(frozen=True, slots=True)
class CreateSession:
    """``id`` is a token of the caller's, None for a new one; ``created_at`` None for now.

    ``attributes`` is a JSON object of at most 16 KiB.
    """

    principal: str
    expires_at: datetime
    id: str | None = field(default=None, repr=False)
    created_at: datetime | None = None
    attributes: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class TouchSession:
    """``seen_at`` None: now."""

    id: str = field(repr=False)
    seen_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class DurableSession:
    """``id`` is the token; times are in UTC."""

    id: Token
    principal: str
    created_at: datetime
    last_seen_at: datetime
    expires_at: datetime
    attributes: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON, the token included."""
        return {"id": str(self.id), **_facts(self)}


def _facts(session: DurableSession | Known) -> dict[str, Any]:
    return {
        "principal": session.principal,
        "created_at": utc_text(session.created_at),
        "last_seen_at": utc_text(session.last_seen_at),
        "expires_at": utc_text(session.expires_at),
        "attributes": session.attributes,
    }


def utc(moment: datetime | str) -> datetime:
    """Return the moment, also one in RFC 3339, in UTC."""
    if isinstance(moment, str):
        moment = _parsed(moment)
    if not isinstance(moment, datetime) or moment.utcoffset() is None:
        raise DurableSessionError("session timestamps must be timezone-aware")
    return moment.astimezone(UTC)


def _parsed(text: str) -> datetime:
    try:
        if is_rfc3339(text):
            return datetime.fromisoformat(text.upper())
    except ValueError:  # a 31st of June
        pass
    raise DurableSessionError("session timestamps must be timezone-aware")


def utc_text(moment: datetime) -> str:
    """Return the moment, which is in UTC, in RFC 3339."""
    return moment.isoformat().replace("+00:00", "Z")


def checked_principal(principal: str) -> str:
    if not isinstance(principal, str) or not principal.strip():
        raise DurableSessionError("session principal must not be empty")
    return principal


def checked_id(id: str) -> str:
    if not isinstance(id, str) or len(id) < _SHORTEST or len(set(id)) < _FEWEST:
        raise DurableSessionError("session id has insufficient entropy")
    return id


def checked_attributes(attributes: dict[str, Any] | None) -> dict[str, Any]:
    """Return a copy of the attributes."""
    try:
        text = _compact({} if attributes is None else attributes)
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError):
        text, size = "null", 0
    if size > _MOST_ATTRIBUTES:
        raise DurableSessionError("session attributes are too large")
    copy = json.loads(text)
    if not isinstance(copy, dict):
        raise DurableSessionError("session attributes must be a JSON object")
    return copy


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


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
        return {"handle": self.handle, **_facts(self)}

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
        return self.find_all([handle])[0]

    def find_all(self, handles: Iterable[str]) -> list[Known | None]:
        """Return the newest session of each handle; the log is read once."""
        with self._lock:
            self._read()
            return [self._found(handle) for handle in handles]

    def find_at_once(self, handle: str) -> Known | None:
        """`find` where that takes no waiting: the log is near, and nothing has come since the last look."""
        if not self._log.is_near or self._log.wait(self._topic, self._cursor, 0) != self._cursor:
            return None
        return self._found(handle)

    def all(self) -> list[Known]:
        """Return all sessions, be they over or not."""
        with self._lock:
            self._read()
            return list(self._sessions.values())

    def _read(self) -> None:
        for id, event in self._log.read_range(self._topic, self._cursor):
            self._take(id, event)
            self._cursor = id

    def _found(self, handle: str) -> Known | None:
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
            raise DurableSessionError(f"{where} tells of no session: {shape_problem(error)}") from None


TOPIC = "orchestrator.sessions"
#: How long a session counts as seen once that was noted.
SEEN_EVERY = timedelta(minutes=1)
_PREFIX = "hs_"
#: Tokens that are kept with their sessions.
_MOST_RECENT = 1000
#: Bytes of chance in a token.
_STRENGTH = 32


def utc_now() -> datetime:
    return datetime.fromtimestamp(RealClock().now(), UTC)


class BearerSessions:
    """The sessions of a topic. Any thread may call; every call reads what others have written since.

    Raises `DurableSessionError` for what can't be a session, `LogError` when the log fails.
    """

    def __init__(
        self,
        event_log: EventLog,
        *,
        topic: str = TOPIC,
        clock: Callable[[], datetime] = utc_now,
        seen_every: timedelta = SEEN_EVERY,
    ) -> None:
        self._log = event_log
        self._seen_every = seen_every
        self._topic = topic
        self._clock = clock
        self._fold = Fold(event_log, topic)
        #: What `get_at_once` has returned, by token.
        self._recent: dict[str, tuple[Known, DurableSession]] = {}

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
        return self.get_all([id], now).get(id)

    def get_at_once(self, id: str, now: datetime) -> DurableSession | None:
        """Return the live session of a token if that takes no waiting; None: `get` knows it.

        As long as the log says nothing new of it, it is the same object.
        """
        known = self._fold.find_at_once(handle_of(id))
        if known is None or not known.is_live(now):
            return None
        recent = self._recent.get(id)
        if recent is None or recent[0] is not known:
            if len(self._recent) >= _MOST_RECENT:
                self._recent.clear()
            recent = self._recent[id] = known, known.session(Token(id))
        return recent[1]

    def now(self) -> datetime:
        return utc(self._clock())

    def get_all(self, ids: Iterable[str], now: datetime | None = None) -> dict[str, DurableSession]:
        """Return the sessions of those tokens that have one at ``now``; the log is read once."""
        tokens, moment = [*ids], self._moment(now)
        found = zip(tokens, self._fold.find_all(map(handle_of, tokens)), strict=True)
        return {id: known.session(Token(id)) for id, known in found if known and known.is_live(moment)}

    def live(self, now: datetime | None = None) -> list[Known]:
        """Return the sessions that are live at ``now``, without their tokens, the oldest first."""
        moment = self._moment(now)
        return [known for known in self._fold.all() if known.is_live(moment)]

    def is_due(self, session: DurableSession, now: datetime | None = None) -> bool:
        """Return whether it is time to note that the session was seen."""
        return (self.now() if now is None else now) - session.last_seen_at >= self._seen_every

    def note(self, ids: Iterable[str], now: datetime | None = None) -> None:
        """Note that sessions were seen, those of them for which that `is_due`, all at once."""
        moment = self._moment(now)
        due = [id for id, session in self.get_all(ids, moment).items() if self.is_due(session, moment)]
        if due:
            self._log.append_all(self._topic, [_touched(handle_of(id), moment) for id in due])

    def touch(self, request: TouchSession) -> DurableSession | None:
        """Note that the session was seen, and return it; None, and nothing noted, when there is none."""
        seen = self._moment(request.seen_at)
        found = self._live(request.id, seen)
        if found is None:
            return None
        self._log.append(self._topic, _touched(found.handle, max(found.last_seen_at, seen)))
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
        return self.now() if given is None else utc(given)


def _touched(handle: str, moment: datetime) -> LogEvent:
    return LogEvent(TOUCHED, {"handle": handle, "last_seen_at": utc_text(moment)})


def _new_token() -> str:
    return _PREFIX + to_base64url(RealEntropy.bytes(_STRENGTH)).rstrip("=")
