"""Sessions that no store has: making a fork of one, and storing one. Spec: 10 §C3.2, §A3.5."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.session import events as kinds
from harnpy.session.errors import InvalidArgument
from harnpy.session.events import Event, Origin
from harnpy.session.kept.codec import SessionCodec
from harnpy.session.kept.ids import validate_session_id
from harnpy.session.log import KIND, Session, why_forked
from harnpy.session.payloads import Created
from harnpy.session.views import replay
from harnpy.storage.memory import MemoryStore

if TYPE_CHECKING:
    from harnpy.world import World


def unsaved_session(
    id: str, world: World, facts: dict[str, Any] | None = None, parent: str | None = None
) -> Session:
    """Return a new session that no store has. ``facts`` are what is known of its agent; a ``parent`` is
    named, and shares nothing."""
    above = None if parent is None else Origin(parent, world)
    session = Session.__new__(Session)._attach(Origin(id, world, above), MemoryStore().stream(KIND, id))
    session.saves = None
    session.record(kinds.SESSION_CREATED, Created(above, facts=facts))
    return session


def unsaved_fork(session: Session, id: str | None = None, *, label: str = "", reason: str = "") -> Session:
    """Return a fork of ``session`` that no store has."""
    id = session.origin.world.ids.new() if id is None else id
    validate_session_id(id)
    if not session.is_kept:
        return session.fork(id, label=label, reason=reason)
    origin = Origin(id, session.origin.world, session.origin, session.version)
    point = session.event(session.version)
    created = Created(session.origin, point.seq, point, session.agent_facts() | why_forked(label, reason))
    first = Event(origin, 1, kinds.SESSION_CREATED, created, max(session.clock.now(), session.moment))
    events = [first, *session.stream.read(1, point.seq)]
    stream = MemoryStore().stream(KIND, id)
    stream.append(events, 0)
    fork = Session.__new__(Session)._attach(origin, stream, replay(events), point.moment)
    fork.saves = None
    return fork


def unsaved_copy(session: Session) -> Session:
    """Return a session of the same id and log that no store has: what is appended to it isn't stored."""
    was = session.origin
    origin = Origin(session.id, was.world, was.parent, was.shared)
    stream = MemoryStore().stream(KIND, session.id)
    events = log_of(session, origin)
    stream.append(events, 0)
    copy = Session.__new__(Session)._attach(origin, stream, replay(events), session.moment)
    copy.saves = None
    return copy


def origin_of(session: Session, world: World) -> Origin:
    """Return the origin that a session has once it is stored.

    Raises `InvalidArgument` for one that has been saved.
    """
    if session.saves is not None:
        raise InvalidArgument(f"session '{session.id}' is saved already: open it, or fork it", session.id)
    return Origin(session.id, world, session.origin.parent, session.origin.shared)


def log_of(session: Session, origin: Origin) -> list[Event]:
    """Return copies of a session's events, as ``origin``'s."""
    codec = SessionCodec(origin)
    return codec.decode(codec.encode(list(session.stream.read())))
