"""What is different for a live session that a store keeps. Spec: 10 §C9.

A session in memory ends when it is closed; of one that is kept, only the live object goes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

from harnpy.session import events as kinds
from harnpy.session.errors import InvalidArgument, SessionExists, SessionLeased
from harnpy.session.kept.ids import validate_session_id
from harnpy.session.log import KIND
from harnpy.session.statuses import COMPLETED, can_become

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.session.events import Event
    from harnpy.session.kept.stored import StoredSession
    from harnpy.session.log import Session
    from harnpy.session.resident import Resident
    from harnpy.storage.contract import Store
    from harnpy.storage.memory import MemoryStore
    from harnpy.world import World

_WHAT_TO_DO = ": a loop of another process runs on it; wait until that has ended, or end it"
#: Seconds between two looks at a lease that somebody else has.
_LOOK = 0.25


def is_kept(session: Session) -> TypeGuard[StoredSession]:
    """Whether a store keeps the session."""
    return session.is_kept


def kept_session(id: str, store: Store, world: World) -> StoredSession:
    """Return the session that ``store`` has under that id, created if need be."""
    from harnpy.session.kept.stored import StoredSession

    validate_session_id(id)
    while True:
        found = StoredSession.load(id, store, world)
        if found is not None:
            return found
        try:
            return StoredSession.begin(id, store, world)
        except SessionExists:
            continue  # another process was faster


def check_store(session: Session, store: Store) -> None:
    """Raise `InvalidArgument` unless that store keeps the session."""
    if not is_kept(session):
        raise InvalidArgument(f"session '{session.id}' is open without a store: close it first", session.id)
    if session.store is not store:
        raise InvalidArgument(
            f"session '{session.id}' is open on {session.store.url}: close it first", session.id
        )


def admitted(resident: Resident) -> None:
    """Prepare a session that has become live: who descends from it, and who hears what others write."""
    session = resident.session
    if not is_kept(session):
        return

    def heard(events: Sequence[Event]) -> None:
        for event in events:
            for follower in list(resident.followers):
                if event.type == kinds.MESSAGE_ADDED:
                    follower.arrive(event.body)
                elif event.type in (kinds.HISTORY_REPLACED, kinds.COMPACTION_TRIGGERED):
                    follower.overtaken()

    session.heard = heard
    for id in session.children():
        resident.child_ids[id] = None


def close_log(session: Session, note: dict[str, Any]) -> None:
    """Write that a session is closed. Only the live object of one that is kept shows it, to those who are
    told; its log says that it is completed, if it is.
    """
    if not is_kept(session):
        session.record(kinds.TRANSCRIPT_EVENT, note)
        return
    status = note["metadata"]["status"] or {}
    if COMPLETED in (status.get("status"), status.get("reason")) and can_become(session.status, COMPLETED):
        session.set_status(COMPLETED)
    session.show(kinds.TRANSCRIPT_EVENT, note)


def discard(session: Session, memory: MemoryStore) -> None:
    """Delete a session that nobody has seen yet."""
    store: Any = session.store if is_kept(session) else memory
    store.delete(KIND, session.id)


def take_hold(resident: Resident, wait: float) -> None:
    """Take the session's lease for a loop, which others of this process may share.

    Raises `SessionLeased` when another process has it and hasn't let it go within ``wait`` seconds.
    """
    session = resident.session
    if not is_kept(session) or resident.hold is not None:
        return
    from harnpy.session.kept.hold import Hold
    from harnpy.storage.errors import LeaseHeld
    from harnpy.storage.renewal import KeptLease

    while True:
        look = min(_LOOK, wait)
        try:
            lease = session.store.lease(f"{KIND}:{session.id}", wait=look)
        except LeaseHeld as held:
            wait -= look
            if wait <= 0:
                raise SessionLeased(f"{held.message}{_WHAT_TO_DO}", session.id) from held
        else:
            break
    resident.hold = Hold(session, KeptLease(lease))
    session.refresh()
