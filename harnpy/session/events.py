"""Events: the facts that a session's log is made of, their kinds, ids and times. Spec: 10 §A1.1, §C3.

An event knows the log that it belongs to as an `Origin`, not as a session, so that a closed session can be
freed while its forks live on. Ids and times are computed when somebody asks for them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from msgspec import ValidationError, convert

from harnpy.session.arguments import checked
from harnpy.session.errors import EventDecodeError, InvalidArgument
from harnpy.world.clock import rfc3339_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from harnpy.world import World

# What an event is called and when it was: computed from its session, its position and its time.
#
# Nothing is minted, so an id is the same in memory, on disk and after a reload, and names its own position.
# Spec: 10 §C3.3.


MICROS = 1_000_000


def micros(seconds: float) -> int:
    """A clock's time in whole microseconds."""
    return round(seconds * MICROS)


def stamp(time_of_event: int) -> str:
    """Microseconds since 1970 as RFC 3339: UTC, six decimals."""
    return rfc3339_parts(*divmod(time_of_event, MICROS), 6)


def read_stamp(text: str) -> int:
    """Microseconds since 1970 of an RFC 3339 time stamp. Raises ValueError."""
    from datetime import UTC, datetime, timedelta

    try:
        moment = datetime.fromisoformat(text)
    except (ValueError, TypeError):
        raise ValueError(f"{text!r} is no RFC 3339 time stamp") from None
    if moment.tzinfo is None:
        raise ValueError(f"no offset in {text!r}")
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def event_id(session_id: str, seq: int, time_of_event: int) -> str:
    """The UUIDv7 of the event at ``seq``."""
    millis = time_of_event // 1000 & 0xFFFF_FFFF_FFFF
    digits = f"{millis << 40 | (0x7000 | seq >> 22 & 0xFFF) << 24 | 0x80_0000 | seq & 0x3F_FFFF:022x}"
    head = f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}"
    return f"{head}-{digits[20:]}{_tail(session_id)}"


def position(id: str, session_id: str) -> int | None:
    """The ``seq`` that an id of that session names; None for an id that isn't computed for it."""
    if len(id) != 36 or not id.endswith(_tail(session_id)) or id[14] != "7":
        return None
    try:
        low = int(id[19:23] + id[24:26], 16)
        high = int(id[15:18], 16)
    except ValueError:
        return None
    return (high << 22 | low & 0x3F_FFFF) if low >> 22 == 0b10 else None


@lru_cache(maxsize=512)
def _tail(session_id: str) -> str:
    """The first 40 bits of the SHA-256 of the session's id, as hex."""
    from hashlib import sha256

    return sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()[:10]


# Reading an event's data as what its type says. Spec: 10 §A1.1, §C3.


T = TypeVar("T")


class Typed(Protocol):
    """The part of an event that decoding needs."""

    type: str

    @property
    def id(self) -> str: ...

    @property
    def session_id(self) -> str: ...

    @property
    def data(self) -> Any: ...


def decoded(event: Typed, cls: type[T]) -> T | None:
    """Return the event's data as ``cls``, which says in ``TYPE`` which events it is for; None for another.
    Its ``data_of(event)``, if it has one, returns the data in the form that it reads.

    Raises `EventDecodeError` for data that doesn't fit, `InvalidArgument` for a class without ``TYPE``.
    """
    type = getattr(cls, "TYPE", None)
    if not isinstance(type, str):
        raise InvalidArgument(f"a payload's class names its event type in `TYPE`: {cls.__name__} has none")
    if event.type != type:
        return None
    shown = getattr(cls, "data_of", None)
    data = event.data if shown is None else shown(event)
    try:
        return convert(data, cls)
    except ValidationError as error:
        from harnpy.formats.mismatch import mismatch

        problem = mismatch(data, cls, "data")
        raise EventDecodeError(type, event.id, problem, event.session_id) from error


# The facts a session's log is made of. Spec: 10 §A1.1, §C3, §C3.3, §C9.
#
# An `Event` is what the log holds, an `EventDraft` what a caller builds. An event's id and time stamp are
# computed when they are read: a conversation appends far more events than anyone ever reads.
#
# Payloads are JSON values and never change. Those that refer to other events are in `payloads`.


# Types of events. Spec: 10 §A1.2, §C3.1; when each is written: §C16.1.

SESSION_CREATED = "session_created"
STATUS_CHANGED = "status_changed"
ACTION_EXECUTED = "action_executed"
STORE_REPAIRED = "store_repaired"
REGISTER_SET = "register_set"
TRANSCRIPT_EVENT = "transcript_event"

MESSAGE_ADDED = "message_added"
CONTEXT_ADDED = "context_added"
HISTORY_REPLACED = "history_replaced"
COMPACTION_STARTED = "compaction_started"
COMPACTION_TRIGGERED = "compaction_triggered"
PROJECTION_SNAPSHOTTED = "projection_snapshotted"
LEAF_MOVED = "leaf_moved"
BRANCH_SUMMARY = "branch_summary"

TURN_STARTED = "turn_started"
STEP_STARTED = "step_started"
STEP_COMPLETED = "step_completed"
TOOL_STARTED = "tool_started"
TOOL_OUTPUT_DELTA = "tool_output_delta"
TOOL_COMPLETED = "tool_completed"
ESCALATION_RETRIED = "escalation_retried"
TURN_COMPLETED = "turn_completed"

APPROVAL_REQUESTED = "approval_requested"
APPROVAL_RESOLVED = "approval_resolved"
APPROVAL_CANCELED = "approval_canceled"
EXTERNAL_INPUT = "external_input"
WAIT_STARTED = "wait_started"
WAIT_RESOLVED = "wait_resolved"

HANDOFF = "handoff"
CHILD_REQUESTED = "child_requested"
CHILD_STARTED = "child_started"
CHILD_PROGRESSED = "child_progressed"
CHILD_BLOCKED = "child_blocked"
CHILD_COMPLETED = "child_completed"
CHILD_FAILED = "child_failed"
CHILD_CANCELED = "child_canceled"
CHILD_MERGED = "child_merged"
ARTIFACT_RECORDED = "artifact_recorded"

# Read from other systems' logs as registers of that name; never written.
MODEL_CHANGED = "model_changed"
THINKING_CHANGED = "thinking_changed"
TOOLS_CHANGED = "tools_changed"

#: What the log knows of a call is in events of these types.
TOOL_TYPES = frozenset({TOOL_STARTED, TOOL_COMPLETED})
#: The same, and what may take it back.
CALL_TYPES = TOOL_TYPES | {LEAF_MOVED}

#: Types whose data views read, which is looked at before it is written: the constants above but two. Messages
#: are checked by themselves, and what a `transcript_event` holds is free.
READ_TYPES = frozenset(
    value for name, value in [*globals().items()] if name.isupper() and value == name.lower()
) - {MESSAGE_ADDED, TRANSCRIPT_EVENT}

#: Metadata key of the events that change who is attached: ``{client_id: record, None once detached}``.
LIVE_CLIENTS = "live_clients"


_NOTHING: dict[str, Any] = {}


class Payload:
    """A payload that refers to other events, by reference until somebody asks for ``data``."""

    __slots__ = ()

    def data(self, event: Event) -> dict[str, Any]:
        """Return it as JSON, with the ids of the events that it refers to."""
        raise NotImplementedError

    def stored(self, event: Event) -> dict[str, Any]:
        """Return it as a store keeps it: it refers to other events by their ``seq``."""
        raise NotImplementedError


class TurnRef:
    """A turn that isn't at hand: known by the number of the event that began it, or by its caller's name."""

    __slots__ = ("_name", "owner", "seq")

    def __init__(self, owner: Origin, seq: int = 0, name: str | None = None) -> None:
        self.owner = owner
        self.seq = seq
        self._name = name

    @property
    def id(self) -> str:
        if self._name is None:
            begin = self.owner.find(self.seq)
            named = None if begin is None else begin.turn_name
            self._name = self.owner.id_of(self.seq) if named is None else named
        return self._name


class Place(NamedTuple):
    """The place of an imported event: the one before it, its time and its number."""

    parent_id: str | None
    timestamp: str | None
    seq: int | None


class EventDraft:
    """An event that is to be appended.

    ``turn`` is the ``turn_started`` of the agent loop that the event belongs to, the draft of that while it
    isn't written, or the name of a turn. ``event`` is the one that was made of the draft last. An import
    brings what it has of its own: ``id``, ``timestamp`` (RFC 3339), ``seq`` (which must be the next), and
    ``parent_id``, the event behind which it stands.
    """

    __slots__ = ("cost", "data", "event", "id", "metadata", "place", "turn", "type")
    #: What an import says of where the event stands.
    place: Place | None

    def __init__(
        self,
        type: str,
        data: Any = None,
        metadata: dict[str, Any] | None = None,
        cost: float = 0.0,
        turn: Event | TurnRef | EventDraft | str | None = None,
        id: str | None = None,
        *,
        parent_id: str | None = None,
        timestamp: str | None = None,
        seq: int | None = None,
    ) -> None:
        self.id = id
        self.type = type
        self.data = data
        self.metadata = metadata
        self.cost = cost
        self.turn = turn
        self.event: Event | None = None
        self.place = None
        if parent_id is not None or timestamp is not None or seq is not None:
            self.place = Place(parent_id, timestamp, seq)

    def copy(self, **changes: Any) -> EventDraft:
        """Return a draft of the same, but for the attributes that ``changes`` gives."""
        copy = EventDraft.__new__(EventDraft)
        for name in self.__slots__:
            setattr(copy, name, changes[name] if name in changes else getattr(self, name))
        return copy

    def check(self) -> None:
        """Make sure that it can be stored anywhere. Raises `EventRejected`."""
        if not isinstance(self.data, Payload):
            self.data = checked(self.data)
        if self.metadata is not None:
            self.metadata = checked(self.metadata, "metadata")


def check_all(drafts: Sequence[EventDraft]) -> None:
    """Make sure that they can be stored anywhere. Raises `EventRejected`."""
    for draft in drafts:
        if not isinstance(draft.data, Payload):
            draft.data = checked(draft.data)
        if draft.metadata is not None:
            draft.metadata = checked(draft.metadata, "metadata")


class Origin:
    """The session an event belongs to: what the event needs of it, without keeping all of it alive.

    ``parent`` is the origin of the session that this one was forked from, and ``shared`` how many events it
    has from there; ``find`` returns the event of that number, None when it isn't there any more.
    """

    __slots__ = ("_copies", "depth", "find", "id", "parent", "shared", "world")

    def __init__(self, id: str, world: World, parent: Origin | None = None, shared: int = 0) -> None:
        self.id = id
        self.world = world
        self.parent = parent
        self.shared = shared
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.find: Callable[[int], Event | None] = _nothing
        self._copies: dict[int, Event] | None = None

    def own(self, event: Event) -> Event:
        """Return an event of the stream as this session's: itself, or a copy with an id of its own."""
        if event.owner is self or event.seq == 1 or event.seq > self.shared:
            return event
        if not event.is_logged:  # it has the number of the cut that holds it
            return event if event.foreign_id is not None else _Copy(self, event)
        if self._copies is None:
            self._copies = {}
        copy = self._copies.get(event.seq)
        if copy is None:
            copy = self._copies[event.seq] = _Copy(self, event)
        return copy

    def writer(self, seq: int) -> Origin:
        """Return the origin of the session that wrote the event with that number."""
        origin = self
        while origin.parent is not None and 1 < seq <= origin.shared:
            origin = origin.parent
        return origin

    def id_of(self, seq: int) -> str:
        """Return the id of the event with that number; empty when it isn't there any more."""
        found = self.find(seq)
        return "" if found is None else self.own(found).id


def _nothing(seq: int) -> Event | None:
    return None


class Event:
    """One fact. ``seq`` counts from 1 in its session; ``body`` is the data as the session keeps it.

    ``moment`` is its time in seconds since 1970, as the clock gave it.
    """

    __slots__ = (
        "_id", "_metadata", "_parent", "body", "cost", "moment", "more", "owner", "seq", "turn", "type"
    )  # fmt: skip
    _id: str  # unset until first read
    _metadata: dict[str, Any]  # unset when there is none
    _parent: str  # unset when it is the event before on the branch
    cost: float  # USD
    more: int  # of the events of the same append, those that follow
    size: int = 1  # as a part of a `lifecycle.Pack`
    is_logged: bool = True  # is in the log itself, not in a cut

    def __init__(
        self,
        owner: Origin,
        seq: int,
        type: str,
        body: Any,
        moment: float,
        turn: Event | TurnRef | None = None,
    ) -> None:
        self.owner = owner
        self.seq = seq
        self.type = type
        self.body = body
        self.moment = moment
        self.turn = turn
        self.cost = 0.0
        self.more = 0

    @classmethod
    def drafted(cls, drafts: Sequence[EventDraft], owner: Origin, seen: int, moment: float) -> list[Event]:
        """Return the events of one append behind number ``seen``."""
        events, more = [], len(drafts)
        for seq, draft in enumerate(drafts, seen + 1):
            more -= 1
            turn: Any = draft.turn
            if turn.__class__ is EventDraft:
                turn = turn.event
            elif turn.__class__ is str:
                turn = TurnRef(owner, name=turn)
            event = draft.event = cls.__new__(cls)
            event.owner, event.seq, event.type, event.body = owner, seq, draft.type, draft.data
            event.moment, event.turn, event.more, event.cost = moment, turn, more, draft.cost
            if draft.metadata:
                event._metadata = draft.metadata
            if draft.id is not None:
                event._id = draft.id
            events.append(event)
        return events

    def supplement(
        self,
        *,
        metadata: dict[str, Any] | None = None,
        cost: float = 0.0,
        more: int = 0,
        id: str | None = None,
        parent: str | None = None,
    ) -> None:
        """Set what few events have, of an event that was read."""
        if metadata:
            self._metadata = metadata
        if cost:
            self.cost = cost
        if more:
            self.more = more
        if id is not None:
            self._id = id
        if parent is not None:
            self._parent = parent

    def renumber(self, seq: int, moment: float) -> None:
        """Move it to another place of a log that it isn't in yet."""
        if self.foreign_id is None and hasattr(self, "_id"):
            del self._id
        self.seq, self.moment = seq, moment

    @property
    def id(self) -> str:
        """UUIDv7 text, or what an import brought."""
        try:
            return self._id
        except AttributeError:
            self._id = event_id(self.owner.id, self.seq, self.time)
            return self._id

    @property
    def foreign_id(self) -> str | None:
        """The id, if it isn't the computed one."""
        id = getattr(self, "_id", None)
        return None if id is None or id == event_id(self.owner.id, self.seq, self.time) else id

    @property
    def metadata(self) -> dict[str, Any]:
        return getattr(self, "_metadata", _NOTHING)

    @property
    def session_id(self) -> str:
        return self.owner.id

    @property
    def turn_id(self) -> str | None:
        """The turn's identity is the id of the event that started it, unless its caller named it."""
        turn = self.turn
        if turn is None:
            return None
        named = turn.turn_name if isinstance(turn, Event) else None
        return turn.id if named is None else named

    @property
    def turn_name(self) -> str | None:
        """Of an event that starts a turn: the name that its caller gave the turn."""
        turn = self.turn
        return turn.id if isinstance(turn, TurnRef) and not turn.seq else None

    def payload(self, cls: type[T]) -> T | None:
        """Return the data as a payload of a type (`payload_types`); None for an event of another one.

        Raises `EventDecodeError` for data that isn't what the type says.
        """

        return decoded(self, cls)

    @property
    def fork_origin(self) -> dict[str, str] | None:
        """Of an event that a fork took over: ``session_id`` and ``event_id`` in the direct parent."""
        found: dict[str, str] | None = self.metadata.get("fork_origin")
        return found

    @property
    def foreign_parent(self) -> str | None:
        """The id of the event before, if an import said which one it is."""
        return getattr(self, "_parent", None)

    @property
    def parent_id(self) -> str | None:
        """The id of the event before on the active branch; None for the first."""
        if self.foreign_parent is not None or self.seq <= 1:
            return self.foreign_parent
        before = self.owner.find(self.seq - 1)
        while before is not None and before.type == LEAF_MOVED:
            before = self.owner.find(before.stored().get("target_seq", 0))
        return None if before is None else self.owner.own(before).id

    def stored(self) -> Any:
        """The payload as a store keeps it."""
        body = self.body
        return body.stored(self) if isinstance(body, Payload) else body

    @property
    def time(self) -> int:
        """Microseconds since 1970."""
        return micros(self.moment)

    @property
    def timestamp(self) -> str:
        """RFC 3339, UTC, microseconds."""
        return stamp(self.time)

    @property
    def data(self) -> Any:
        """The payload as JSON."""
        body = self.body
        return body.data(self) if isinstance(body, Payload) else body

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
        super().__init__(owner, first.seq, first.type, first.body, first.moment, first.turn)
        self._first, self.cost, self.more = first, first.cost, first.more

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
    def turn_id(self) -> str | None:
        turn = self.turn
        if turn is None or not turn.seq:
            return super().turn_id
        begin = self.owner.find(turn.seq)
        if begin is None:
            return turn.id
        return begin.turn_name or self.owner.own(begin).id


class Summary(Event):
    """The message with which a cut replaces ``archived``. Only the `Cut` holds it; its id is the cut's."""

    __slots__ = ("archived",)
    is_logged = False

    def __init__(self, owner: Origin, message: dict[str, Any], archived: Iterable[Event]) -> None:
        super().__init__(owner, 0, MESSAGE_ADDED, message, 0)
        self.archived = archived

    def made_by(self, cut: Event) -> None:
        """Take the identity of the event that carries it."""
        self.seq, self.moment = cut.seq, cut.moment

    def named(self, id: str) -> None:
        """Take the id that it has in the log it was brought from."""
        self._id = id


class ForeignEvent(Event):
    """An event that a fork onto a session brought from another log, under the id that it has there."""

    __slots__ = ()
    is_logged = False

    def __init__(self, cut: Event, type: str, payload: dict[str, Any], id: str) -> None:
        super().__init__(cut.owner, cut.seq, type, payload, cut.moment)
        self._id = id
