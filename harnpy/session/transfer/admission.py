"""Writing a session that comes from elsewhere in one append, and what of one a file can't hold.

Spec: 10 §C17.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.faults import shape_problem
from harnpy.session import events as kinds
from harnpy.session.cuts import Created
from harnpy.session.errors import SessionError, TransferError
from harnpy.session.events import MICROS, SESSION_CREATED, TURN_STARTED, Event, EventDraft, Origin, TurnRef
from harnpy.session.stored import StoredSession
from harnpy.storage import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from harnpy.session.log import Session
    from harnpy.storage import Store
    from harnpy.world import World

# What of a session a file can't hold. Spec: 10 §C17.


#: Kinds of losses.
ARTIFACTS, BRANCHES, CHILDREN, CUTS, LOG = "artifacts", "branches", "children", "cuts", "log"
MEMO, PINS, REGISTERS, SETTINGS, STATUSES, TOOLS = (
    "memo",
    "pins",
    "registers",
    "settings",
    "statuses",
    "tools",
)
HISTORY = "messages before the history"
NAME, TORN_LINE, UNREADABLE = "name", "torn line", "unreadable messages"


class Loss(NamedTuple):
    """One kind of loss of one session; ``detail`` says how much."""

    session_id: str
    kind: str
    detail: str

    def __str__(self) -> str:
        return f"{self.session_id}: {self.kind}: {self.detail}"


def lost(
    session: Session, kept: Iterable[str], registers: Sequence[str] = (), types: Sequence[str] = ()
) -> list[Loss]:
    """Return what is lost by a format that keeps those kinds, those registers, events of those types, and
    messages always."""
    kinds_kept = frozenset(kept)
    counts = Counter(
        kind
        for event in session.events()
        if not (event.type == kinds.REGISTER_SET and event.body["key"] in registers)
        and event.type not in types
        and (kind := _kind(event)) is not None
    )
    found = [(kind, count, "event") for kind, count in counts.items() if kind not in kinds_kept]
    # Of cuts, only what they did is a loss.
    dropped = len(session.every_message()) - len(session.history())
    if dropped and not kinds_kept & {LOG, HISTORY}:
        found.append((HISTORY, dropped, "message"))
    gone = len(session.history()) - len(session.messages())
    if CUTS not in kinds_kept and session.messages() != session.history():
        found.append((CUTS, max(gone, 0), "message"))
    return [Loss(session.id, kind, counted(count, noun)) for kind, count, noun in sorted(found)]


def refuse(losses: Iterable[Loss]) -> None:
    """Raise `TransferError` for the first loss, if there is one."""
    for loss in losses:
        raise TransferError(f"this format can't hold everything of it: {loss}", loss.session_id)


def counted(count: int, noun: str) -> str:
    """Return a number with what it counts."""
    return f"1 {noun}" if count == 1 else f"{count} {noun}s"


def _kind(event: Event) -> str | None:
    """Return the kind of loss that an event is; None for what no format has to hold."""
    if event.type == kinds.REGISTER_SET:
        return _register(event.body)
    if event.type == kinds.SESSION_CREATED:
        return BRANCHES if event.body.parent is not None else None
    return _KINDS.get(event.type, LOG)


def _register(register: dict[str, Any]) -> str:
    key: str = register["key"]
    if key.startswith("settings."):
        return SETTINGS
    return {"memo": MEMO, "pins": PINS}.get(key, REGISTERS)


_KINDS: dict[str, str | None] = {
    kinds.MESSAGE_ADDED: None,
    kinds.PROJECTION_SNAPSHOTTED: None,
    kinds.STATUS_CHANGED: STATUSES,
    kinds.HISTORY_REPLACED: None,
    kinds.COMPACTION_STARTED: None,
    kinds.COMPACTION_TRIGGERED: None,
    kinds.LEAF_MOVED: BRANCHES,
    kinds.BRANCH_SUMMARY: BRANCHES,
    kinds.TOOL_STARTED: TOOLS,
    kinds.TOOL_OUTPUT_DELTA: TOOLS,
    kinds.TOOL_COMPLETED: TOOLS,
    kinds.ARTIFACT_RECORDED: ARTIFACTS,
    **dict.fromkeys((
        kinds.CHILD_REQUESTED, kinds.CHILD_STARTED, kinds.CHILD_PROGRESSED, kinds.CHILD_BLOCKED,
        kinds.CHILD_COMPLETED, kinds.CHILD_FAILED, kinds.CHILD_CANCELED, kinds.CHILD_MERGED,
    ), CHILDREN),
}  # fmt: skip


# Writing a session that comes from elsewhere: all of it in one append, or nothing. Spec: 10 §C17.


def admit(events: Sequence[Event], origin: Origin, store: Store) -> StoredSession:
    """Store a whole log as the session that ``origin`` names. Raises `InvalidSessionId`, `SessionExists`, and
    `TransferError` for events that don't fit together."""
    with _fitting():
        return StoredSession.admit(events, origin, store)


@contextmanager
def _fitting() -> Iterator[None]:
    """Raise `TransferError` for events that don't fit together."""
    try:
        yield
    except (SessionError, StorageError):
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise TransferError(f"the events are no session's: {shape_problem(error)}") from error


def as_append(events: list[Event]) -> list[Event]:
    """Return events as those of one append."""
    for left, event in enumerate(reversed(events)):
        event.more = left
    return events


def admit_appends(appends: Iterator[list[Event]], origin: Origin, store: Store) -> str:
    """Store a log that may be too long to be held, append by append; return the id that ``origin`` names.

    Raises what `admit` does; nothing is stored then.
    """
    first = next(appends)
    second = next(appends, None)
    if second is None:
        return admit(first, origin, store).id
    created, *rest = first
    with _fitting():
        StoredSession.gather(chain((as_append([created]), as_append(rest), second), appends), origin, store)
    return origin.id


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
        drafts, times = zip(*self._drafts, strict=True)
        events = Event.drafted(drafts, self._origin, 0, 0.0)
        for event, time in zip(events, times, strict=True):
            event.moment = time / MICROS
        return admit(events, self._origin, store)
