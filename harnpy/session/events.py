"""The facts a session's log is made of. Spec: 10 §A1.1, §C3, §C9.

An `Event` is what the log holds, an `EventDraft` what a caller builds. An event's id and time stamp are
made on first access: a conversation appends far more events than anyone ever reads.

Payloads are JSON values and never change. Those that refer to other events are in `payloads`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.world.clock import rfc3339

if TYPE_CHECKING:
    from harnpy.world import World

SESSION_CREATED = "session_created"
MESSAGE_ADDED = "message_added"
TRANSCRIPT_EVENT = "transcript_event"
HISTORY_REPLACED = "history_replaced"
COMPACTION_TRIGGERED = "compaction_triggered"
REGISTER_SET = "register_set"
TURN_STARTED = "turn_started"
STEP_COMPLETED = "step_completed"
TURN_COMPLETED = "turn_completed"

#: Metadata key of the events that change who is attached: ``{client_id: record, None once detached}``.
LIVE_CLIENTS = "live_clients"


_NOTHING: tuple[dict[str, Any], float] = ({}, 0.0)


class Payload:
    """A payload that refers to other events, by reference until somebody asks for ``data``."""

    __slots__ = ()

    def data(self, event: Event) -> dict[str, Any]:
        """Return it as JSON."""
        raise NotImplementedError


class EventDraft:
    """What to append. ``turn`` is the ``turn_started`` of the agent loop that the event belongs to."""

    __slots__ = ("cost", "data", "metadata", "turn", "type")

    def __init__(
        self,
        type: str,
        data: Any = None,
        metadata: dict[str, Any] | None = None,
        cost: float = 0.0,
        turn: Event | None = None,
    ) -> None:
        self.type = type
        self.data = data
        self.metadata = metadata
        self.cost = cost
        self.turn = turn


class Origin:
    """The session an event belongs to: what the event needs of it, without keeping all of it alive.

    ``parent`` is the origin of the session that this one was forked from.
    """

    __slots__ = ("_copies", "depth", "id", "parent", "world")

    def __init__(self, id: str, world: World, parent: Origin | None = None) -> None:
        self.id = id
        self.world = world
        self.parent = parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        self._copies: dict[int, Event] = {}

    def own(self, event: Event) -> Event:
        """Return an event of the stream as this session's: itself, or a copy with an id of its own."""
        if event.owner is self:
            return event
        copy = self._copies.get(event.seq)
        if copy is None:
            copy = self._copies[event.seq] = _Copy(self, event)
        return copy


class Event:
    """One fact. ``seq`` counts from 1 in its session; ``payload`` is the data as the session keeps it."""

    __slots__ = ("_id", "_rest", "owner", "payload", "seq", "time", "turn", "type")
    _id: str  # unset until first read
    _rest: tuple[dict[str, Any], float]  # metadata and cost, unset when there is neither
    size: int = 1  # as a part of a `window.Pack`

    def __init__(
        self, owner: Origin, seq: int, type: str, payload: Any, time: float, turn: Event | None = None
    ) -> None:
        self.owner = owner
        self.seq = seq
        self.type = type
        self.payload = payload
        self.time = time
        self.turn = turn

    @classmethod
    def drafted(cls, draft: EventDraft, owner: Origin, seq: int, time: float) -> Event:
        event = cls(owner, seq, draft.type, draft.data, time, draft.turn)
        if draft.metadata or draft.cost:
            event._rest = (draft.metadata or {}, draft.cost)
        return event

    @property
    def id(self) -> str:
        """UUIDv7 text."""
        try:
            return self._id
        except AttributeError:
            self._id = self.owner.world.ids.new()
            return self._id

    @property
    def metadata(self) -> dict[str, Any]:
        return getattr(self, "_rest", _NOTHING)[0]

    @property
    def cost(self) -> float:
        """USD."""
        return getattr(self, "_rest", _NOTHING)[1]

    @property
    def session_id(self) -> str:
        return self.owner.id

    @property
    def turn_id(self) -> str | None:
        """The turn's identity is the id of the event that started it."""
        return None if self.turn is None else self.turn.id

    @property
    def timestamp(self) -> str:
        """RFC 3339, UTC, microseconds."""
        return rfc3339(self.time, 6)

    @property
    def data(self) -> Any:
        """The payload as JSON."""
        payload = self.payload
        return payload.data(self) if isinstance(payload, Payload) else payload

    @property
    def first(self) -> Event:
        """The event as first written: itself, unless a fork copied it."""
        return self


class _Copy(Event):
    """An event that a fork took over: the same fact under a new id, with its origin in the metadata.

    ``first`` is the event as it was first written; copies in between are made on demand.
    """

    __slots__ = ("_first",)

    def __init__(self, owner: Origin, first: Event) -> None:
        super().__init__(owner, first.seq, first.type, first.payload, first.time, first.turn)
        self._first = first

    @property
    def first(self) -> Event:
        return self._first

    @property
    def metadata(self) -> dict[str, Any]:
        parent = self.owner.parent
        assert parent is not None, "only forks have copies"
        origin = {"session_id": parent.id, "event_id": parent.own(self._first).id}
        return {**self._first.metadata, "fork_origin": origin}

    @property
    def cost(self) -> float:
        return self._first.cost


class Summary(Event):
    """The message with which a compaction replaces ``archived``. Only the `Cut` holds it."""

    __slots__ = ("archived",)

    def __init__(self, owner: Origin, message: dict[str, Any], archived: list[Event], time: float) -> None:
        super().__init__(owner, 0, MESSAGE_ADDED, message, time)
        self.archived = archived
