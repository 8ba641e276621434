"""`Txn`: the session as hooks and actions see it; what they write is visible to them at once and stored at
the end.

Spec: 10 §C7.
"""

from __future__ import annotations

from collections import deque
from functools import partial, wraps
from itertools import chain, islice, takewhile
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from harnpy.formats.json import compact_json
from harnpy.session import events as kinds
from harnpy.session.codec import store_key
from harnpy.session.errors import SessionConflict, SessionError, SessionNotFound, SessionReadOnly
from harnpy.session.events import Event, EventDraft, Origin, check_all
from harnpy.session.history import ANY
from harnpy.session.lifecycle import ToolStarted
from harnpy.session.log import Session
from harnpy.session.past import PastStream
from harnpy.session.resize import Resizing
from harnpy.session.turns import end_open_turns
from harnpy.session.watch import BUFFER
from harnpy.storage.errors import StorageError, VersionConflict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Concatenate, ParamSpec, TypeVar

    from harnpy.session.calling import Caller
    from harnpy.session.info import SessionInfo
    from harnpy.session.live import LiveSession
    from harnpy.session.past import Until
    from harnpy.session.prompt import Stable
    from harnpy.session.resize_policy import ResizeReport
    from harnpy.session.view import View
    from harnpy.session.watch import Watch
    from harnpy.storage.contract import Stream
    from harnpy.storage.leases import Lease

    P = ParamSpec("P")
    R = TypeVar("R")

# A stream with events behind it that no store has yet.


class OverlayStream:
    """The first ``start`` events of ``whole``, and behind them those that are ``pending``."""

    def __init__(self, whole: Stream, start: int) -> None:
        self.whole = whole
        self.name = whole.name
        self.start = start
        self.pending: list[Event] = []

    @property
    def base(self) -> PastStream:
        """The first events, as a stream."""
        return PastStream(self.whole, self.start)

    def find(self, seq: int) -> Event | None:
        """Return the event with that number; None when there is none."""
        return None if seq < 1 else next(self.read(seq - 1, seq), None)

    @property
    def version(self) -> int:
        return self.start + len(self.pending)

    def append(
        self,
        records: Sequence[Event],
        expected_version: int,
        *,
        head: dict[str, Any] | None = None,
        fence: Lease | None = None,
    ) -> None:
        if expected_version != self.version:
            raise VersionConflict(self.name, expected_version, self.version)
        self.pending += records

    def read(
        self,
        after: int = 0,
        until: int | None = None,
        *,
        types: frozenset[str] | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Iterator[Event]:
        def older(after: int, until: int) -> Iterator[Event]:
            return self.base.read(after, until, types=types, reverse=reverse)

        return iter(self.merged(older, after, until, types=types, reverse=reverse, limit=limit))

    def merged(
        self,
        older: Callable[[int, int], Iterator[Event]],
        after: int,
        until: int | None,
        *,
        types: frozenset[str] | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> list[Event]:
        """Return what ``older`` gives of the stream's own events, and the pending ones."""
        newer = [
            event for event in self.pending_between(after, until) if types is None or event.type in types
        ]
        found = self.joined(older, newer[::-1] if reverse else newer, after, until, reverse=reverse)
        return list(islice(found, limit))

    def pending_between(self, after: int, until: int | None) -> list[Event]:
        """Return the pending events numbered ``after + 1`` … ``until``."""
        end = self.version if until is None else until
        return self.pending[max(0, after - self.start) : max(0, end - self.start)]

    def joined(
        self,
        older: Callable[[int, int], Iterator[Event]],
        newer: list[Event],
        after: int,
        until: int | None,
        *,
        reverse: bool = False,
    ) -> Iterator[Event]:
        """Return what ``older`` gives of the stream's own events, and ``newer``."""
        end = self.start if until is None else min(until, self.start)
        stored = older(after, end) if after < end else iter(())
        return chain(newer, stored) if reverse else chain(stored, newer)

    def last(self) -> Event | None:
        return next(self.read(self.version - 1), None)

    def find_key(self, key: str) -> Event | None:
        """The newest event with that key."""
        for event in reversed(self.pending):
            if store_key(event) == key:
                return event
        return self.base.find_key(key)

    def find_id(self, id: str) -> int | None:
        return self.base.find_id(id)

    def refresh(self) -> int:
        return self.version

    def settle(self) -> None:
        """Do nothing: the events are still the stream's."""

    def drop(self, until: int) -> int:
        raise NotImplementedError("a session forgets nothing")


# What others may append while a turn runs. Spec: 10 §C7.


_COMMUTING: Final = frozenset({
    kinds.APPROVAL_RESOLVED, kinds.APPROVAL_CANCELED, kinds.WAIT_RESOLVED, kinds.EXTERNAL_INPUT,
    kinds.REGISTER_SET, kinds.CHILD_REQUESTED, kinds.CHILD_STARTED, kinds.CHILD_PROGRESSED,
    kinds.CHILD_BLOCKED, kinds.CHILD_COMPLETED, kinds.CHILD_FAILED, kinds.CHILD_CANCELED,
    kinds.CHILD_MERGED, kinds.ARTIFACT_RECORDED, kinds.TRANSCRIPT_EVENT,
})  # fmt: skip


def commutes(event: Event) -> bool:
    """Return whether a turn goes on behind an event of others: it stands where it was appended."""
    if event.type == kinds.MESSAGE_ADDED:
        return event.turn is None
    return event.type in _COMMUTING


# The session as hooks and actions see it: what they write is visible at once, and stored in the end.
#
# A `Txn` is a session whose log goes on behind the live one's with events that no store has yet. An atomic
# action's events are stored together with what hooks wrote, in one append; those of a stream action as they
# come, all but the end of its turn. Spec: 10 §C7.


#: What changes the history.
HISTORY: Final = frozenset({kinds.MESSAGE_ADDED, kinds.CONTEXT_ADDED, kinds.HISTORY_REPLACED})
#: What changes neither registers nor the status.
_CONVERSATION: Final = frozenset({
    kinds.TURN_STARTED, kinds.TURN_COMPLETED, kinds.MESSAGE_ADDED, kinds.CONTEXT_ADDED, kinds.STEP_STARTED,
    kinds.STEP_COMPLETED, kinds.TOOL_STARTED, kinds.TOOL_COMPLETED, kinds.WAIT_STARTED, kinds.ACTION_EXECUTED,
})  # fmt: skip
#: What holds only right behind what its writer has seen.
_BOUND: Final = frozenset({kinds.HISTORY_REPLACED, kinds.COMPACTION_TRIGGERED, kinds.LEAF_MOVED})


def _retried(method: Callable[Concatenate[Session, P], R]) -> Callable[Concatenate[Txn, P], R]:
    """Return a method that cuts as one that is carried out again when somebody else wrote first, as long as
    that commutes: children of the turn do."""

    @wraps(method)
    def retried(txn: Txn, /, *args: P.args, **kwargs: P.kwargs) -> R:
        while True:
            try:
                return method(txn, *args, **kwargs)
            except SessionConflict:
                if not txn.can_retry:
                    raise

    return retried


class Txn(Session):
    """A live session, and on top of it what one action writes. ``action`` is that one's name, ``caller``
    what calls its functions."""

    __slots__ = (
        "_ahead",
        "_config",
        "_imported",
        "_has_changed_history",
        "_has_streamed",
        "_is_settled",
        "_is_view_borrowed",
        "_conflict",
        "_resized",
        "_revision",
        "_saved",
        "_overlay",
        "_streams",
        "_view",
        "action",
        "caller",
        "has_hooks",
        "keeps_answer",
        "live",
        "on_appended",
        "key",
        "resizes",
        "stays_open",
    )

    def __init__(self, live: LiveSession, action: str, caller: Caller, key: str | None = None) -> None:
        self.action = action
        self.caller = caller
        #: The action's idempotency key.
        self.key = key
        #: The session that the action works on, as all others see it.
        self.live, self._config = live, live.config
        self._streams = self._has_streamed = self._saved = self._has_changed_history = False
        self.resizes: list[ResizeReport] = []  # what there is to tell of, once it is stored
        #: Called with what others have appended meanwhile, if it commutes.
        self.on_appended: Callable[[Sequence[Event]], None] | None = None
        #: Whether an error leaves the turn as it is, for who enters it again.
        self.stays_open = False
        #: Whether hooks work on it, too.
        self.has_hooks = False
        #: Whether what the turn has come to is stored although its end isn't: somebody has paid for it.
        self.keeps_answer = False
        self._conflict: SessionConflict | None = None  # by something else
        #: Which of the pending events are those of the resize at the end, and which its report.
        self._resized = (0, 0, 0)
        self._imported = 0  # how many of the pending events were appended elsewhere
        self._restart(live)

    def _restart(self, live: LiveSession) -> None:
        """Stand right behind what the live session has."""
        with live.lock:
            self._revision = live.revision
            self._start_at(live.version, None, live.moment)
            self._borrow_view()

    def _start_at(self, version: int, view: View | None, moment: float) -> None:
        """Stand right behind event number ``version``, of that moment; ``view`` is the one there."""
        live = self.live
        origin = live.origin
        self.id = live.id
        self.observers = self.reduction = self.resizing = None
        self.strict, self.saves, self.clock = live.strict, live.saves, live.clock
        self.origin = Origin(live.id, origin.world, origin.parent, origin.shared)
        self.stream = self._overlay = OverlayStream(live.stream, version)
        self.origin.find = self._overlay.find
        self.version, self.moment = version, moment
        self._ahead: list[list[Event]] = []
        self._is_settled = True  # nothing of that changes registers or status
        self._view: View | None = None
        self._is_view_borrowed = False
        if view is not None:
            self.view = view

    # While all that it has written is stored, it has the live session's view: that stays as it is until this
    # one appends again, and what others append meanwhile goes to a copy. What isn't stored yet is in a view
    # of its own, which is made when somebody looks: in most turns nobody does.

    @property
    def view(self) -> View:
        view = self._view
        if view is None:  # all is over
            live = self.live
            return live.view if live.version == self.version else live.view.at(self.version)
        if self._ahead:
            view = self._own_view(view)
            for events in self._ahead:
                view.extend(events)
            self._ahead, self._is_settled = [], True
        return view

    @view.setter
    def view(self, view: View) -> None:
        """Have a view of its own, for events that no store has yet."""
        self._view, self._is_view_borrowed = view, False
        view.log = partial(self._overlay.read, 0)

    def _borrow_view(self) -> None:
        self._view, self._is_view_borrowed = self.live.lend_view(self), True
        self._ahead, self._is_settled = [], True

    def _own_view(self, view: View) -> View:
        """Return the view, or a copy of one that is borrowed."""
        if self._is_view_borrowed:
            view = self.view = view.branch()
            self.live.take_view_back(self)
        return view

    def _leave_view(self) -> None:
        """Show from now on what the log has."""
        self.live.take_view_back(self)
        self._view, self._is_view_borrowed = None, False
        self._ahead, self._is_settled = [], True

    @property
    def settled_view(self) -> View:
        view = self._view
        return view if self._is_settled and view is not None else self.view

    def agent_facts(self) -> dict[str, Any]:
        return self.live.agent_facts() if self.live.version else super().agent_facts()

    @property
    def definition(self) -> Any:
        return self.live.definition if self.live.version else super().definition

    # Writing.

    def write(self, *drafts: EventDraft, expected_version: int | None = None) -> list[Event]:
        """Append all drafts or none; to the store only once they are saved, unless the action streams."""
        if self._saved:
            raise SessionReadOnly.saved(self.id)
        check_all(drafts)
        at_once = self._streams
        for draft in drafts:
            if draft.type in HISTORY:
                self._has_changed_history = True
            elif draft.type == kinds.TURN_COMPLETED:
                at_once = False
        pending = self._overlay.pending
        if at_once and pending and any(event.type == kinds.TURN_COMPLETED for event in pending):
            at_once = False
        return self._written(drafts, expected_version, at_once=at_once)

    def _written(
        self, drafts: Sequence[EventDraft], expected_version: int | None, *, at_once: bool = False
    ) -> list[Event]:
        """Append drafts that were checked; if ``at_once``, to the store."""
        seen = self.version if expected_version in (None, ANY) else expected_version
        if seen != self.version:
            raise SessionConflict(self.id, seen, self.version)
        if not drafts:
            return []
        events = self.drafted(drafts, seen)
        self._overlay.pending += events
        self.version, self.moment = seen + len(events), events[-1].moment
        self._ahead.append(events)
        if self._is_settled:
            for event in events:
                if event.type not in _CONVERSATION:
                    self._is_settled = False
        if at_once:
            self._has_streamed = True
            try:
                self._store(may_rebase=expected_version is None)
            except BaseException:
                self._catch_up()
                raise
        return events

    def adopt_log(self, events: list[Event]) -> None:
        """Begin with the log of a session that isn't saved. One with turns keeps its appends."""
        self.view = self._own_view(self.view)
        self._overlay.append(events, 0)
        self.version, self.moment = len(events), events[-1].moment
        self._imported = len(events) if any(event.type == kinds.TURN_STARTED for event in events) else 0
        self.view.read(events)

    def record(self, type: str, payload: Any, turn: Event | None = None) -> Event:
        return self.write(EventDraft(type, payload, turn=turn))[0]

    def fork(
        self,
        id: str | None = None,
        store: Any = None,
        *,
        at: Until | None = None,
        label: str = "",
        reason: str = "",
    ) -> LiveSession:
        """Create a session in the same store with what this one has stored, up to event ``at``."""
        return self.live.fork(id, at=self._overlay.start if at is None else at, label=label, reason=reason)

    def _now(self) -> float:
        return self.moment if self._overlay.pending else max(self.clock.now(), self.moment)  # one an append

    def history_changed(self) -> None:
        """Do nothing: the session is resized once, at the end."""

    def resize_with(self, call: Callable[..., Any]) -> None:
        """Resize as the live session would; ``call(fn, *args)`` calls handlers."""
        known = self.live.resizing
        if known is not None:
            tell = self.resizes.append
            self.resizing = Resizing(known.policy, known.levels, tell, call, known.agent, known.unbound)

    def resize_if_due(self, turn: Event | None = None) -> ResizeReport | None:
        """Resize as any session does, but not again once it was of no use."""
        if self.resizes and not self.resizes[-1].shrunk:
            return None
        return super().resize_if_due(turn)

    def resize_at_end(self) -> None:
        """Do what the policy says, if the action or a hook has changed the history."""
        if self.resizing is None or not self._has_changed_history or not self.resizes_itself:
            return
        if not self.view.open_turns:
            begin, told = len(self._overlay.pending), len(self.resizes)
            self.resize_if_due()
            self._resized = begin, len(self._overlay.pending), told

    @property
    def may_wait(self) -> bool:
        """Return whether what a turn begins with may be stored with its first step: it is all that there is,
        and others would change nothing about it."""
        return not (self._overlay.pending or self.is_replaying or self.on_appended is not None)

    @property
    def is_followed(self) -> bool:
        """Return whether hooks or a resize work on what the action has written, before the save."""
        return self.has_hooks or self.resizes_itself

    def begin_streaming(self) -> None:
        """From now on store at once what is written, but for the append that ends the turn."""
        self._streams = True

    def end_streaming(self) -> None:
        """From now on store what is written with the save."""
        self._streams = False

    def save(self, *drafts: EventDraft) -> None:
        """Store what isn't stored yet, and these drafts, in one append. Afterwards nothing can be written.

        Raises `SessionConflict` when somebody else wrote first, unless the action streamed and only what
        commutes was written.
        """
        self._written(drafts, None)
        self._store(may_rebase=self._has_streamed)
        self._leave_view()
        self._saved = True

    @property
    def can_retry(self) -> bool:
        """Return whether what others wrote is something that a stream action can stand behind."""
        return self._streams and self._conflict is None

    def refresh_if_behind(self) -> None:
        """`refresh`, if this process has appended something beside the action: children may have."""
        if self.live.version != self._overlay.start:
            self.refresh()

    set_history = _retried(Session.set_history)
    reset = _retried(Session.reset)
    clean_window = _retried(Session.clean_window)
    trim = _retried(Session.trim)
    rewind = _retried(Session.rewind)
    redo = _retried(Session.redo)
    move_leaf = _retried(Session.move_leaf)

    def refresh(self) -> None:
        """Take notice of what others have appended, in a stream action. Raises `SessionConflict` where the
        action can't go on behind that."""
        if self._conflict is not None:
            raise self._conflict
        if not self._has_streamed or self._saved or self._overlay.pending:
            return
        with self.live.lock:
            self.live.refresh()
            if self.live.version != self._overlay.start:
                self._catch_up()
        if self._conflict is not None:
            raise self._conflict

    def _catch_up(self) -> None:
        """Leave what isn't stored, and stand behind what others have appended."""
        seen, resizing = self._overlay.start, self.resizing
        self._restart(self.live)
        self.resizing = resizing
        news = self.live.read(after=seen) if self.live.version > seen else []
        if all(map(commutes, news)):
            self._tell(news)
        else:
            self._conflict = SessionConflict(self.id, seen, self.live.version)

    def _tell(self, news: Sequence[Event]) -> None:
        if self.on_appended is not None and news:
            self.on_appended(news)

    def _store(self, *, may_rebase: bool) -> None:
        live, overlay = self.live, self._overlay
        with live.lock:
            while True:
                try:
                    if live.version != overlay.start:
                        raise SessionConflict(self.id, overlay.start, live.version)
                    live.take_view_back(self)
                    live.commit(overlay.pending, self._imported)
                    break
                except SessionConflict:
                    live.refresh()
                    if not (may_rebase and self._rebase()):
                        raise
            overlay.start, overlay.pending = live.version, []
            self.version, self._revision = live.version, live.revision
            if self._streams:
                self._borrow_view()

    def _rebase(self) -> bool:
        """Put the pending events behind what others wrote meanwhile. Return False where that can't be."""
        live, overlay = self.live, self._overlay
        news = live.read(after=overlay.start)
        pending = self._rebasable()
        if pending is None or not all(map(commutes, news)):
            return False
        overlay.start, overlay.pending = live.version, pending
        self.moment = max(self.moment, live.moment)
        self.view = live.view.branch()
        self._ahead, self._is_settled = [], True
        for seq, event in enumerate(pending, overlay.start + 1):
            event.renumber(seq, self.moment)
            if event.type == kinds.REGISTER_SET:
                event.body = {**event.body, "version": self._next(event.body["key"])}
            self.view.extend((event,))
        self.version = overlay.version
        self._tell(news)
        return True

    def _rebasable(self) -> list[Event] | None:
        """Return the pending events that may stand behind others; None where a cut is among them. That of the
        resize at the end is left out: the next change makes it."""
        pending = self._overlay.pending
        if not any(event.type in _BOUND for event in pending):
            return pending
        begin, end, told = self._resized
        rest = [*pending[:begin], *pending[end:]]
        if any(event.type in _BOUND for event in rest):
            return None
        self._resized = (0, 0, 0)
        del self.resizes[told:]
        return rest

    def _next(self, key: str) -> int:
        known = self.view.registers.get(key)
        return 1 if known is None else known.version + 1

    def rollback(self, error: BaseException, reason: str) -> None:
        """Leave what isn't stored, but for an answer. End the turns that a stream action leaves open."""
        pending, self._overlay.pending = self._overlay.pending, []
        self.version = self._overlay.start
        self._leave_view()
        if not self._has_streamed or self._saved or self.stays_open:
            return
        try:
            with self.live.lock:
                answer = [*takewhile(lambda event: event.type != kinds.TURN_COMPLETED, pending)]
                if answer and self.keeps_answer and self.live.version == self._overlay.start:
                    self.live.commit(answer)
                end_open_turns(self.live, reason, str(error) or type(error).__name__)
        except (SessionError, StorageError) as second:
            error.add_note(f"the turn has no end in the log: {second}")

    def find_call(self, key: str) -> Event | None:
        """Return the newest event of the call of a tool with that key; None if it wasn't begun."""
        return self._overlay.find_key(key)

    def recorded_call(self, type: str, **names: Any) -> RecordedCall | None:
        """Return what an earlier run of the turn left of a call that was just begun with an event of that
        type and those names in its data. Spec: 10 §C16.5."""
        return None  # there was none

    @property
    def is_replaying(self) -> bool:
        """Return whether the log has what comes next of the turn, from an earlier run of it."""
        return False

    @property
    def agents(self) -> Any:
        """Return the factory that runs the definitions of this runtime's sessions."""
        return None if self._config is None else self._config.agents

    # What is watched and observed is what is stored.

    def watch(
        self,
        *,
        buffer: int = BUFFER,
        after: int | None = None,
        types: Iterable[str] | None = None,
        lossy: bool = True,
    ) -> Watch:
        return self.live.watch(buffer=buffer, after=after, types=types, lossy=lossy)

    def observe(self, fn: Callable[[Event], Any]) -> Callable[[], None]:
        return self.live.observe(fn)

    # Reading.

    @property
    def revision(self) -> int:
        """Return the revision of the session as it is stored."""
        return self._revision

    @property
    def next_revision(self) -> int:
        """The revision that the save will make."""
        return self._revision + 1

    @property
    def info(self) -> SessionInfo:
        """The session as lists show it: as it is stored. Raises `SessionNotFound` before it is."""
        if not self.live.version:
            raise SessionNotFound(self.id)
        return self.live.info

    def read(
        self,
        after: int = 0,
        until: int | None = None,
        *,
        types: frozenset[str] | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> list[Event]:
        def older(after: int, until: int) -> Iterator[Event]:
            return iter(self.live.read(after, until, types=types, reverse=reverse))

        return self._overlay.merged(older, after, until, types=types, reverse=reverse, limit=limit)

    def window(self) -> list[dict[str, Any]]:
        with self.live.lock:
            return super().window()

    # The live session has what it showed the last action, so what is stored is read there.

    def stable(self, convert: Callable[[dict[str, Any]], Any]) -> Stable:
        with self.live.lock:
            return self.live.stable(convert) if self._is_stored() else super().stable(convert)

    def messages(self) -> list[dict[str, Any]]:
        with self.live.lock:
            return self.live.messages() if self._is_stored() else super().messages()

    def total(self, measure: Callable[[dict[str, Any]], int]) -> int:
        with self.live.lock:
            return self.live.total(measure) if self._is_stored() else super().total(measure)

    def _is_stored(self) -> bool:
        return not self._overlay.pending and self.live.version == self.version


# What the log has of a turn that is resumed, and whether its new run does the same. Spec: 10 §C16.5.
#
# Pure: drafts are compared with the recorded events, in order. What only happens inside of a call (of a
# model, a tool, a person) stands where it stood, and so do others' events.


#: What makes an event of a type the one that is written, beside its type; None: all its data.
_SAME_BY: Final[dict[str, tuple[str, ...] | None]] = {
    kinds.MESSAGE_ADDED: None,
    kinds.CONTEXT_ADDED: None,
    kinds.TURN_STARTED: ("agent_id", "key"),
    kinds.REGISTER_SET: ("key", "value"),
    kinds.TOOL_STARTED: ("tool", "id", "args"),
    kinds.TOOL_COMPLETED: ("tool", "id"),
    kinds.APPROVAL_REQUESTED: ("tool", "args"),
    kinds.EXTERNAL_INPUT: ("prompt", "status"),
}
#: What else a turn has in its log for a call that is answered from there.
_INSIDE: Final = frozenset({
    kinds.TRANSCRIPT_EVENT, kinds.ESCALATION_RETRIED, kinds.TOOL_OUTPUT_DELTA, kinds.APPROVAL_REQUESTED,
    kinds.APPROVAL_RESOLVED, kinds.APPROVAL_CANCELED, kinds.EXTERNAL_INPUT, kinds.WAIT_STARTED,
    kinds.WAIT_RESOLVED, kinds.HANDOFF, kinds.ARTIFACT_RECORDED, kinds.CHILD_REQUESTED, kinds.CHILD_STARTED,
    kinds.CHILD_PROGRESSED, kinds.CHILD_BLOCKED, kinds.CHILD_COMPLETED, kinds.CHILD_FAILED,
    kinds.CHILD_CANCELED, kinds.CHILD_MERGED,
})  # fmt: skip
#: What ends what begins with an event of a type, and what both name it by.
_ENDS: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    kinds.STEP_STARTED: ((kinds.STEP_COMPLETED,), ()),
    kinds.TOOL_STARTED: ((kinds.TOOL_COMPLETED,), ("tool", "id")),
    kinds.APPROVAL_REQUESTED: ((kinds.APPROVAL_RESOLVED, kinds.APPROVAL_CANCELED), ("id",)),
    kinds.EXTERNAL_INPUT: ((kinds.EXTERNAL_INPUT,), ("prompt",)),
}
#: What may come in another order, where an agent does several things at once.
_SIDE_BY_SIDE: Final = kinds.TOOL_TYPES | {
    kinds.APPROVAL_REQUESTED, kinds.APPROVAL_RESOLVED, kinds.APPROVAL_CANCELED,
}  # fmt: skip
#: What comes of all the calls before it.
_SAID: Final = frozenset({
    kinds.MESSAGE_ADDED, kinds.STEP_STARTED, kinds.STEP_COMPLETED, kinds.TURN_COMPLETED,
})  # fmt: skip


class Diverged(BaseException):
    """The new run of a turn does something else than event number ``seq``. Agents don't handle it."""

    def __init__(self, turn: Event, seq: int) -> None:
        super().__init__(f"diverged at {seq}")
        self.turn = turn
        self.seq = seq


class RecordedCall(NamedTuple):
    """A call that an earlier run of the turn has begun, and its end, if it came to one."""

    begin: Event
    end: Event | None


class RecordedTurn:
    """The events of the log from the append on that began ``turn``. Each is taken once."""

    def __init__(self, turn: Event, events: Iterable[Event]) -> None:
        self._turn = turn
        self._ahead = deque(events)
        self._last = max(event.seq for event in self._ahead if self.is_own(event))
        self._skipped: list[Event] = []  # what may still be taken behind others
        self._begun: list[RecordedCall] = []
        self._ended: set[int] = set()

    @property
    def has_more(self) -> bool:
        """Return whether the log has more than was taken."""
        return bool(self._ahead)

    def is_own(self, event: Event) -> bool:
        """Return whether it is one of the turn, its beginning included."""
        return event.seq == self._turn.seq or (event.turn is not None and event.turn.seq == self._turn.seq)

    def take(self, draft: EventDraft, taken: list[Event]) -> Event | None:
        """Return the event that a draft is; None where the log ends before it. What the log moves on by is
        added to ``taken``. Raises `Diverged`."""
        if draft.turn is not None and draft.type in _SAID:
            self._check_calls()
        for event in self._skipped:
            if _is_same(event, draft):
                self._skipped.remove(event)
                self._note_begin(event)
                return event
        while self._ahead:
            event = self._ahead[0]
            is_same = _is_same(event, draft)
            if not (is_same or self._may_skip(event, draft)):
                raise Diverged(self._turn, event.seq)
            taken.append(self._ahead.popleft())
            if is_same:
                self._note_begin(event)
                return event
            if event.type in _SIDE_BY_SIDE:
                self._skipped.append(event)
        return None

    def is_unmatched(self, event: Event) -> bool:
        """Return whether an event that the log has moved on by wasn't taken itself."""
        return any(left.seq == event.seq for left in self._skipped)

    def take_messages(self) -> list[Event]:
        """Return the messages of others that come next."""
        taken = []
        while self._ahead and self._ahead[0].type == kinds.MESSAGE_ADDED and self._ahead[0].turn is None:
            taken.append(self._ahead.popleft())
        return taken

    def recorded_call(self, type: str, **names: Any) -> RecordedCall | None:
        """Return the next call of that type and those names which was begun before; None for a new one."""
        for known in self._begun:
            if known.begin.type == type and all(_get(known.begin, key) == names[key] for key in names):
                self._begun.remove(known)
                return known
        return None

    def _check_calls(self) -> None:
        """Raise `Diverged` where a call was left out, before what comes of all calls."""
        for event in self._skipped:
            if event.type in kinds.TOOL_TYPES:
                raise Diverged(self._turn, event.seq)

    def _may_skip(self, event: Event, draft: EventDraft) -> bool:
        """Return whether an event may stand before a draft that it isn't."""
        if self.is_own(event):
            if event.type in kinds.TOOL_TYPES:
                return draft.type in _SIDE_BY_SIDE
            return event.type in _INSIDE
        # While the turn ran, nobody else could write what it couldn't go on behind.
        return event.seq < self._last or event.type == kinds.STORE_REPAIRED or commutes(event)

    def _note_begin(self, event: Event) -> None:
        if event.type not in _ENDS or _is_answer(event):
            return
        types, keys = _ENDS[event.type]
        ends = (
            end
            for end in (*self._skipped, *self._ahead)
            if end.type in types
            and end.seq > event.seq
            and end.seq not in self._ended
            and (end.type != kinds.EXTERNAL_INPUT or _is_answer(end))
            and all(_get(end, key) == _get(event, key) for key in keys)
        )
        end = next(ends, None)
        if end is not None:
            self._ended.add(end.seq)
        self._begun.append(RecordedCall(event, end))


def _is_same(event: Event, draft: EventDraft) -> bool:
    if event.type != draft.type or (event.turn is None) != (draft.turn is None):
        return False
    keys = _SAME_BY.get(event.type, ())
    if keys is None:
        return bool(event.body == draft.data)
    return all(_get(event, key) == _get(draft, key) for key in keys)


def _is_answer(event: Event) -> bool:
    return event.type == kinds.EXTERNAL_INPUT and event.body["status"] == "received"


def _get(what: Event | EventDraft, key: str) -> Any:
    body = what.body if isinstance(what, Event) else what.data
    if isinstance(body, ToolStarted):
        return compact_json(body.arguments) if key == "args" else getattr(body, key)
    return body.get(key)
