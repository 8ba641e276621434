"""A session: an append-only event log, and the view of it kept up to date.

`append` is the only way to change one. It writes to the stream first and updates the view after; a
failed write leaves no trace. It costs the same at any length; a cut costs what it keeps. Not thread-safe:
a session belongs to one VM, and a VM to one thread. Spec: 10 §C1, §C3.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import ref

from harnpy.session import events as kinds
from harnpy.session.artifacts.recording import Recording
from harnpy.session.cuts import Cut
from harnpy.session.drafting.ambient import AMBIENT, surrounded
from harnpy.session.drafting.fields import check_drafts
from harnpy.session.drafting.placing import asked_for, place
from harnpy.session.errors import (
    SessionConflict,
    SessionError,
    SessionExists,
)
from harnpy.session.events import Event, EventDraft, Origin, Summary
from harnpy.session.facts import Facts
from harnpy.session.kept.ids import validate_session_id
from harnpy.session.live.watched import Watched
from harnpy.session.parts import arguments
from harnpy.session.parts.branches import Branches
from harnpy.session.parts.history import ANY as ANY
from harnpy.session.parts.history import History
from harnpy.session.parts.questions import Questions
from harnpy.session.parts.reductions import Reduction
from harnpy.session.parts.showing import Showing
from harnpy.session.parts.waits import Waits
from harnpy.session.payloads import AGENT_FACTS, Created
from harnpy.session.resize.resizable import Resizable, Resizing
from harnpy.session.saves import Saves
from harnpy.session.settings.keys import REGISTERS as SETTINGS
from harnpy.session.settings.keys import name_of
from harnpy.session.shown.choices import Choices
from harnpy.session.transcript import MESSAGE_KINDS
from harnpy.session.turns.artifacts import recorded
from harnpy.session.views import View
from harnpy.session.window import Window
from harnpy.storage.errors import StreamExists, VersionConflict
from harnpy.storage.memory import MemoryStore, MemoryStream
from harnpy.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Self

    from harnpy.session.kept.past import Until
    from harnpy.session.live.audience import Audience
    from harnpy.session.resize.compaction import Compaction
    from harnpy.storage.contract import Stream

    Message = dict[str, Any]
    Messages = Message | Iterable[Message]

#: What a store calls a stream of ours.
KIND = "session"


class Session(Facts, Choices, Branches, Showing, Resizable, History, Questions, Waits, Recording, Watched):
    """One log. ``version`` is the number of its last event; ``view`` says what the log means."""

    __slots__ = (
        "audience", "clock", "id", "moment", "origin", "reduction", "resizing", "saves", "stream", "strict",
        "version", "view"
    )  # fmt: skip
    #: None: it isn't saved anywhere.
    saves: Saves | None
    #: Whether messages must be as a model takes them (10 §A1.4); else they are stored as they are.
    strict: bool

    def __init__(
        self, id: str | None = None, *, auto_resize: bool = True, settings: Mapping[str, Any] | None = None
    ) -> None:
        """A session by itself, in a memory store of its own. Without an ``id`` it gets a new one.

        ``settings`` become its registers ``settings.<key>``. It needs no runtime, file or event loop; nobody
        has saved it, so its revision stays 0. Raises `InvalidSessionId`. Spec: 10 §C3.2.
        """
        world = World()
        id = world.ids.new() if id is None else id
        validate_session_id(id)
        self._attach(Origin(id, world), MemoryStore().stream(KIND, id))
        self.saves = None
        self.record(kinds.SESSION_CREATED, Created(facts=None if auto_resize else {"auto_resize": False}))
        for key, value in (settings or {}).items():
            self.set(f"{SETTINGS}{name_of(key)}", value)

    def _attach(self, origin: Origin, stream: Stream, view: View | None = None, moment: float = 0) -> Self:
        """Become the session that ``stream`` is of. ``moment`` is that of its last event."""
        self.id = origin.id
        self.audience = None
        self.reduction: Reduction | None = None
        self.strict = False
        self.origin = origin
        self.clock = origin.world.clock
        self.stream = stream
        self.version = stream.version
        self.view = view or View()
        self.view.log = partial(stream.read, 0)
        self.moment = moment
        self.saves = Saves(origin.shared)
        self.resizing: Resizing | None = None
        origin.find = _finder(stream)
        return self

    #: Whether a store keeps it.
    is_kept = False

    @classmethod
    def create(cls, id: str, store: MemoryStore, world: World) -> Session:
        """A new, empty session."""
        session = cls.__new__(cls)._attach(Origin(id, world), store.stream(KIND, id))
        session.record(kinds.SESSION_CREATED, Created())
        return session

    def fork(
        self,
        id: str | None = None,
        store: MemoryStore | None = None,
        *,
        at: Until | None = None,
        label: str = "",
        reason: str = "",
    ) -> Session:
        """Create a session with this one's past, up to event ``at`` (None: the last): a number, an id, or a
        moment.

        It shares the events, at constant cost. Without an ``id`` it gets a new one, without a ``store`` it
        lives in this one's. Raises `EventNotFound` for an ``at`` that isn't there, `SessionExists`.
        """
        id = self.origin.world.ids.new() if id is None else id
        seq, why = self._fork_point(at), why_forked(label, reason)
        origin = Origin(id, self.origin.world, self.origin, seq)
        point: Event = next(self.stream.read(seq - 1, seq))
        view = self.view.branch() if seq == self.version else self.view.at(seq)
        created = Created(self.origin, seq, point, self.agent_facts() | why)
        first = Event(origin, 1, kinds.SESSION_CREATED, created, self._now())
        try:
            stream = (store or self._memory()).branch(self.stream, id, first, until=seq)
        except StreamExists as exists:
            raise SessionExists(id, 0) from exists
        session = Session.__new__(Session)._attach(origin, stream, view, point.moment)
        if self.saves is None:
            session.saves = None
        session.resizing = self.resizing
        session.view.apply(first)
        return session

    def agent_facts(self) -> dict[str, Any]:
        """Return what ``session_created`` says of the agent; its forks say the same."""
        created: Created = next(self.stream.read(0, 1)).body
        return {key: value for key, value in created.facts.items() if key in AGENT_FACTS}

    def _fork_point(self, at: Until | None) -> int:
        """Return the number of the event to fork at. Raises `EventNotFound`."""
        if at is None:
            return self.version
        from harnpy.session.kept.past import number_of

        return number_of(self.stream, at, self.origin)

    def _memory(self) -> MemoryStore:
        assert isinstance(self.stream, MemoryStream), "sessions on a store fork there"
        return self.stream.store

    def settle(self) -> None:
        """Copy a fork's share of its parent's past, so that the parent can be freed. Costs a list copy."""
        self.stream.settle()
        self.view.window.settle()

    # Writing.

    def resize_by(self, resizing: Resizing) -> None:
        self.resizing = resizing

    def record(self, type: str, payload: Any, turn: Event | None = None) -> Event:
        """Append one event that needs no check."""
        if self.audience is not None or AMBIENT.get() is not None:
            return self.write(EventDraft(type, payload, turn=turn))[0]
        seen = self.version
        now = self.clock.now()
        if now < self.moment:
            now = self.moment
        event = Event(self.origin, seen + 1, type, payload, now, turn)
        self.stream.append((event,), seen)
        self.version = seen + 1
        self.moment = now
        self.view.apply(event)
        return event

    def append(self, *drafts: EventDraft, expected_version: int | None = None) -> list[Event]:
        """Append all drafts or none.

        Raises `EventRejected` for what isn't JSON or no event of its type, in a strict session also for
        messages that no model takes (10 §A1.4), and `SessionConflict` when ``expected_version`` (None:
        whatever this object has seen; `ANY`: wherever the end is) isn't the log's version.
        """
        check_drafts(drafts)
        return self._append(drafts, expected_version)

    def check(self, *drafts: EventDraft) -> None:
        """Raise what `append` would raise for these drafts."""
        from harnpy.session.drafting.checks import admitted

        check_drafts(drafts)
        admitted(self, drafts)

    def _append(self, drafts: Sequence[EventDraft], expected_version: int | None) -> list[Event]:
        """Append drafts that are JSON."""
        if not self.strict and all(map(_is_plain, drafts)):
            return self.write(*drafts, expected_version=expected_version)
        from harnpy.session.drafting.checks import admitted

        with_moves = admitted(self, drafts)
        events = self.write(*with_moves, expected_version=expected_version)
        return events if len(events) == len(drafts) else asked_for(with_moves, events)

    def write(self, *drafts: EventDraft, expected_version: int | None = None) -> list[Event]:
        """Append drafts that need no check."""
        if not drafts:
            return []
        if self.audience is not None:
            self.audience.check()
        seen = self.version if expected_version in (None, ANY) else expected_version
        events = self.drafted(drafts, seen)
        try:
            self.stream.append(events, seen)
        except VersionConflict as conflict:
            raise SessionConflict(self.id, conflict.expected, conflict.found) from conflict
        self.version = seen + len(events)
        self.moment = events[-1].moment
        self.view.extend(events)
        if self.audience is not None:
            self.audience.appended(events)
        return events

    def drafted(self, drafts: Sequence[EventDraft], seen: int) -> list[Event]:
        """Return the events of one append behind number ``seen``."""
        ambient = AMBIENT.get()
        if ambient is not None:
            drafts = surrounded(drafts, ambient)
        origin, now, left = self.origin, self._now(), len(drafts)
        events, say_more = [], False
        for seq, draft in enumerate(drafts, seen + 1):
            left -= 1
            events.append(Event.drafted(draft, origin, seq, now, left))
            if draft.place is not None or draft.turn.__class__ is str:
                say_more = True
        if say_more:
            place(drafts, events, self.view, self.moment)
        return events

    def _now(self) -> float:
        """The time of an event that is appended now: never before the last one's."""
        return max(self.clock.now(), self.moment)

    def replace(self, reason: str, window: Window, branched_at: int | None = None) -> Event:
        """Restart the history with ``window``. The log keeps what was."""
        cut = Cut(reason, window, self.view.window, branched_at)
        return self.record(kinds.HISTORY_REPLACED, cut)

    def bring(self, parent_id: str, view: View) -> None:
        """Replace everything with what ``view`` shows of the session ``parent_id``: a fork onto this one."""
        self.record(kinds.HISTORY_REPLACED, Cut.fork(parent_id, view.window, view.registers))

    def shrink(self, strategy: str, window: Window) -> None:
        """Replace the window with a smaller one. The history behind it stays readable."""
        self.record(
            kinds.COMPACTION_TRIGGERED, Cut(strategy, window, self.view.window, cutoff=self.stream.last())
        )

    def snapshot(
        self,
        *,
        if_needed: bool = False,
        max_events: int = 50,
        max_age: float | None = None,
        trigger: str = "manual",
    ) -> bool:
        """Write down what the view shows, so that a load need not read what is before it (10 §C5).

        ``if_needed``: only if ``max_events`` events or ``max_age`` seconds have passed since the last one.
        Return False if none was taken: while a turn is open, or if no store keeps the session.
        """
        return False

    def compact(
        self, compaction: Compaction, note: dict[str, Any] | None, turn: Event | None = None
    ) -> list[Event]:
        """Replace older messages with a summary; ``note`` is what its transcript event says of it, if it has
        one.

        The messages stay readable behind it (`history`). Return the event, if transcripts show it.
        """
        cut = self.compaction_cut(compaction, note)
        event = self.record(kinds.COMPACTION_TRIGGERED, cut, turn)
        cut.identify(event)
        return [] if note is None else [event]

    def compaction_cut(self, compaction: Compaction, note: dict[str, Any] | None = None) -> Cut:
        """Return the cut that carries out a compaction of the window."""
        former = self.view.window
        archived = former.entries.items()[compaction.start : compaction.split]
        summary = Summary(self.origin, compaction.message, archived)
        window = former.compacted(compaction.start, compaction.split, summary)
        cut = Cut(compaction.strategy, window, former, cutoff=self.stream.last(), note=note)
        window.summary = cut.merged(former, compaction.text)
        return cut

    def show_summary(self) -> None:
        """Put the summary before the messages, unless they show it (08 §1.11)."""
        former = self.view.window
        if former.shows_summary():
            return
        summary = Summary(self.origin, {"role": "user", "content": former.summary}, [])
        cut = Cut("summary", former.compacted(0, 0, summary), former, cutoff=self.stream.last())
        summary.made_by(self.record(kinds.COMPACTION_TRIGGERED, cut))

    def restore(self, transcript: dict[str, Any]) -> None:
        """Replace the window's contents with the transcript's. Earlier lifecycle events stay, before its own;
        metadata and assets stay unless it brings some (08 §1.11)."""
        for message in transcript.get("messages", []):
            if not isinstance(message, dict) or not isinstance(message.get("role"), str):
                raise SessionError("a transcript's messages must be dicts with a string `role`", self.id)
        former = self.view.window
        messages = [EventDraft(kinds.MESSAGE_ADDED, message) for message in transcript.get("messages", [])]
        known = {event["id"] for event in former.events()}
        news = [
            EventDraft(kinds.TRANSCRIPT_EVENT, event)
            for event in transcript.get("events", [])
            if event.get("kind") not in MESSAGE_KINDS and event.get("id") not in known
        ]
        assets = [asset for asset in transcript.get("assets") or () if asset not in former.assets]
        kept = [EventDraft(type, payload) for type, payload in recorded(assets, self.id)]
        events = self.write(*messages, *news, *kept)
        window = former.with_entries(events[: len(messages)])
        window.summary = transcript.get("summary")
        window.state = transcript.get("state")
        window.metadata = transcript.get("metadata", former.metadata)
        window.assets = transcript.get("assets") or former.assets
        window.past = None
        self.replace("set", window)

    def attach_reducer(self, fn: Callable[[Any, Event], Any]) -> Callable[[], Any]:
        """Return what gives the state that ``fn(state, event)`` makes of all events so far, beginning with an
        empty dict; `state` gives it, too."""
        self.reduction = Reduction(fn, self.read)
        return self.reduction

    def _listened(self) -> Audience:
        if self.audience is None:
            from harnpy.session.live.audience import Audience

            self.audience = Audience(self.id)
        return self.audience

    # Reading.

    def refresh(self) -> None:
        """Take notice of what others have appended: nobody has, to a session in memory."""

    @property
    def seq(self) -> int:
        """The number of the last event, `version` by its other name."""
        return self.version

    @property
    def revision(self) -> int:
        """How many times the session was saved (10 §C3.3); 0: no store has it."""
        return 0 if self.saves is None else self.saves.upto(self.stream)


def _is_plain(draft: EventDraft) -> bool:
    """Whether there is nothing to look at in a draft for a session that isn't strict."""
    if draft.place is not None:
        return False
    if draft.type == kinds.MESSAGE_ADDED:
        message = draft.data
        return message.__class__ is dict and message.get("role").__class__ is str
    return draft.type not in kinds.READ_TYPES


def why_forked(label: str, reason: str) -> dict[str, Any]:
    """Return what a fork's ``session_created`` says of its making."""
    given = {"branch_label": arguments.text("label", label), "fork_reason": arguments.text("reason", reason)}
    return {key: text for key, text in given.items() if text}


def _finder(stream: Stream) -> Callable[[int], Event | None]:
    """Return what finds an event of ``stream``.

    It keeps no stream in memory alive: the events of a closed session would keep all the others.
    """
    where = ref(stream) if isinstance(stream, MemoryStream) else (lambda: stream)

    def find(seq: int) -> Event | None:
        known = where()
        return None if known is None or seq < 1 else next(known.read(seq - 1, seq), None)

    return find
