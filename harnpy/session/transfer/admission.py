"""Writing a session that comes from elsewhere: all of it in one append, or nothing. Spec: 10 §C17."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.session.errors import SessionExists, TransferError
from harnpy.session.events import SESSION_CREATED, TURN_STARTED, Event, EventDraft, Origin, TurnRef
from harnpy.session.identity import MICROS
from harnpy.session.kept.codec import SessionCodec
from harnpy.session.kept.ids import validate_session_id
from harnpy.session.kept.info import Digest
from harnpy.session.kept.stored import StoredSession
from harnpy.session.log import KIND
from harnpy.session.payloads import Created
from harnpy.session.views import replay
from harnpy.storage.errors import VersionConflict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harnpy.storage import Store
    from harnpy.world import World


def admit(events: Sequence[Event], origin: Origin, store: Store) -> StoredSession:
    """Store a whole log as the session that ``origin`` names. Raises `InvalidSessionId`, `SessionExists`, and
    `TransferError` for events that don't fit together."""
    validate_session_id(origin.id, strict=store.strict_ids)
    stream = store.stream(KIND, origin.id, SessionCodec(origin))
    digest = Digest(origin.shared)
    try:
        digest.add(events)
        digest.rewound(replay(events).execution)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise TransferError(f"the events are no session's: {error!r}") from error
    try:
        stream.append(events, 0, head=digest.head())
    except VersionConflict as conflict:
        raise SessionExists(origin.id, conflict.found) from conflict
    session = StoredSession.load(origin.id, store, origin.world)
    assert session is not None, "it has just been written"
    # A store in memory has kept the events as they were read.
    for each in (origin, origin.parent):
        if each is not None:
            each.find = session.origin.find
    return session


class NewLog:
    """A log under construction, for formats that hold no events. Times are in microseconds since 1970."""

    def __init__(
        self,
        id: str,
        world: World,
        facts: dict[str, Any],
        time: int | None = None,
        parent: str | None = None,
    ) -> None:
        """``time``: when the session was created; None: now. ``parent`` is named, and shares nothing."""
        above = None if parent is None else Origin(parent, world)
        self._origin = Origin(id, world, above)
        self._created = Created(above, facts=facts)
        self._drafts: list[tuple[EventDraft, int]] = []
        self._turn: TurnRef | None = None
        self._time = round(world.clock.now() * MICROS) if time is None else time
        self.add(EventDraft(SESSION_CREATED, self._created))

    def add(self, *drafts: EventDraft, time: int | None = None) -> None:
        """Add events of one time; None, or one that is over: that of the event before.

        Raises `EventRejected` for what isn't JSON.
        """
        self._time = max(self._time, time or 0)
        for draft in drafts:
            draft.check()
            draft.turn = self._turn
            self._drafts.append((draft, self._time))

    def begin_turn(self) -> None:
        """Begin a turn, which the messages from here on belong to; it stays open."""
        self.add(EventDraft(TURN_STARTED, {"agent_id": self._created.facts.get("agent_name", "")}))
        self._turn = TurnRef(self._origin, self.version)

    @property
    def version(self) -> int:
        """The number of the last event."""
        return len(self._drafts)

    def store(self, store: Store) -> StoredSession:
        """Store the session. Raises `SessionExists`."""
        count = len(self._drafts)
        events = [
            Event.drafted(draft, self._origin, seq, time / MICROS, count - seq)
            for seq, (draft, time) in enumerate(self._drafts, 1)
        ]
        return admit(events, self._origin, store)
