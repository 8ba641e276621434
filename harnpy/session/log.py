"""`Session`: an append-only event log, and the view of it kept up to date. Spec: 10 §C1, §C3.

`append` is the only way to change one. It writes to the stream first and updates the view after; a
failed write leaves no trace. It costs the same at any length; a cut costs what it keeps. Not thread-safe:
a session belongs to one VM, and a VM to one thread.
"""

from __future__ import annotations

from copy import copy
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from weakref import ref

from harnpy.formats.dicts import detached
from harnpy.session import arguments
from harnpy.session import events as kinds
from harnpy.session.arguments import count, validate_session_id
from harnpy.session.artifacts import Recording, recorded
from harnpy.session.choices import Choices
from harnpy.session.cuts import AGENT_FACTS, Created, Cut
from harnpy.session.drafting import AMBIENT, asked_for, check_drafts, place, surrounded
from harnpy.session.errors import InvalidArgument, SessionConflict, SessionError, SessionExists
from harnpy.session.events import Event, EventDraft, Origin, Summary
from harnpy.session.facts import Facts
from harnpy.session.forks import Branches
from harnpy.session.messages import as_dict
from harnpy.session.prompt import FILES_LIMIT
from harnpy.session.reading import Reading
from harnpy.session.registers import REGISTERS as SETTINGS
from harnpy.session.registers import name_of
from harnpy.session.resize import Resizable, Resizing
from harnpy.session.revisions import Saves
from harnpy.session.transcript import MESSAGE_KINDS
from harnpy.session.view import View
from harnpy.session.waits import Waits
from harnpy.session.watch import Watched
from harnpy.session.window import Window
from harnpy.storage.errors import StreamExists, VersionConflict
from harnpy.storage.memory import MemoryStore, MemoryStream
from harnpy.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Self

    from harnpy.session.compaction import Compaction
    from harnpy.session.info import SessionInfo, TurnInfo
    from harnpy.session.past import Until
    from harnpy.session.prompt import HistoryEntry, Stable
    from harnpy.session.watch import Audience
    from harnpy.storage.contract import Stream

    Message = dict[str, Any]
    Messages = Message | Iterable[Message]

# States that functions make of a session's log. Spec: 10 §A1.6, §C3.


class Reduction:
    """The state that ``fn(state, event)`` makes of all events, beginning with an empty dict.

    Calling it gives a shallow copy. The events since the last call are read when it is called, so it costs an
    append nothing.
    """

    def __init__(self, fn: Callable[[Any, Event], Any], read: Callable[[int], list[Event]]) -> None:
        self._fn = fn
        self._read = read
        #: The number of the last event taken in, and the state there.
        self._reached: tuple[int, Any] = 0, {}

    def __call__(self) -> Any:
        seq, state = self._reached
        for event in self._read(seq):
            seq, state = event.seq, self._fn(state, event)
        self._reached = seq, state
        return copy(state)


# What a session shows: its window, raw and as a model gets it, and its history. Spec: 10 §C5.


class Showing(Reading):
    """The part of a `Session` that returns messages."""

    __slots__ = ()

    view: View

    @property
    def length(self) -> int:
        """The number of messages in the window."""
        return len(self.view.window)

    def messages(self) -> list[dict[str, Any]]:
        """The window's messages, in a new list; the messages themselves are shared."""
        return list(self.view.window.messages())

    def total(self, measure: Callable[[dict[str, Any]], int]) -> int:
        """The sum of ``measure(message)`` in the window. Cached by function: pass the same one each time."""
        return self.view.window.total(measure)

    def window(self) -> list[dict[str, Any]]:
        """The window as a model gets it: valid for every provider (10 §C5)."""
        return list(self.stable(_as_it_is).messages)

    def entries(self, files_limit: int = FILES_LIMIT) -> list[HistoryEntry]:
        """The messages of `window` with their events, context marks and what the log knows of calls.

        ``files_limit``: how many files of each sort the working set names.
        """
        return self.view.entries(self._read_tools, annotate=True, files_limit=files_limit)

    def stable(self, convert: Callable[[dict[str, Any]], Any]) -> Stable:
        """The messages of `window` as a request sends them, each as ``convert`` makes it (10 §C16.2)."""
        return self.view.stable(convert, self._read_tools)

    def _read_tools(self, after: int, before: int | None) -> Iterator[Event]:
        until = None if before is None else before - 1
        return self.stream.read(after, until, types=kinds.CALL_TYPES)

    def history(self, include_reset: bool = False) -> list[dict[str, Any]]:
        """The messages behind the window since the last reset, as they were written; with
        ``include_reset`` those of the whole log."""
        if include_reset:
            return self.every_message()
        return [entry.body for entry in self.view.window.history()]

    @property
    def context_window(self) -> list[dict[str, Any]]:
        """`messages` by its name in Agently."""
        return self.messages()

    @property
    def full_context(self) -> list[dict[str, Any]]:
        """`history` by its name in Agently."""
        return self.history()

    def every_message(self) -> list[dict[str, Any]]:
        """Return the messages of the whole log, including those before a reset. A fork onto this session
        counts as the messages that it brought."""
        found: list[dict[str, Any]] = []
        for event in self.read():
            if event.type == kinds.MESSAGE_ADDED:
                found.append(event.body)
            elif isinstance(event.body, Cut) and event.body.parent_id is not None:
                found += [entry.body for entry in event.body.window.history()]
        return found

    def prompt_state(self) -> tuple[list[dict[str, Any]], str | None]:
        """Return what a loop starts from: the messages, led by the summary unless they show it, and the
        summary (08 §1.11)."""
        window = self.view.window
        opening = [] if window.shows_summary() else [{"role": "user", "content": window.summary}]
        return opening + self.messages(), window.summary


def _as_it_is(message: dict[str, Any]) -> dict[str, Any]:
    return message


# What a model is shown of a session, naming so many files. Spec: 10 §A1.8, §C5.


class Rebuilder:
    """``files_limit`` is how many files of each sort a working set names."""

    def __init__(self, files_limit: int = FILES_LIMIT) -> None:
        self.files_limit = files_limit

    def entries(self, session: Session) -> list[HistoryEntry]:
        """Return the messages with their events, context marks and what the log knows of calls."""
        return session.entries(self.files_limit)

    def messages(self, session: Session) -> list[dict[str, Any]]:
        """Return the messages alone."""
        return [entry.message for entry in self.entries(session)]


# What a session's log tells whoever asks. Spec: 10 §A1.6, §C3.


State = TypeVar("State")

_WAITS = frozenset({kinds.WAIT_STARTED, kinds.APPROVAL_REQUESTED})
_GOES_ON = frozenset({kinds.WAIT_RESOLVED, kinds.APPROVAL_RESOLVED, kinds.APPROVAL_CANCELED})
_MESSAGES = frozenset({kinds.MESSAGE_ADDED})


class ModelSettings(NamedTuple):
    """What later turns use. ``model`` None is the default one, ``tools`` None those that nobody chose."""

    model: Any = None
    thinking: str = "off"
    tools: list[str] | None = None


class Questions(Reading):
    """The part of a `Session` that answers."""

    __slots__ = ()

    view: View
    reduction: Reduction | None

    @property
    def revision(self) -> int:
        raise NotImplementedError

    def get(self, key: str, default: Any = None) -> Any:
        raise NotImplementedError

    @property
    def info(self) -> SessionInfo:
        """The session as lists show it."""
        from harnpy.session.info import info_of_log

        return info_of_log(self.origin, self.read(), self.revision)

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for an approval or for something outside."""
        last = next(self.stream.read(types=_WAITS | _GOES_ON, reverse=True, limit=1), None)
        return last is not None and last.type in _WAITS

    @property
    def total_cost(self) -> float:
        """What all events have cost, in USD."""
        return float(sum(event.cost for event in self.stream.read()))

    @property
    def model_settings(self) -> ModelSettings:
        """The model, how much it thinks, and its tools, as they were chosen last."""
        return ModelSettings(self.get("model"), self.get("thinking", "off"), self.get("tools"))

    def last_event(self) -> Event | None:
        """Return the last event, as this session's."""
        last = self.stream.last()
        return None if last is None else self.event(last.seq)

    def last_message(self) -> Message | None:
        """Return the last message that was ever added."""
        return next(self._newest(), None)

    def last_assistant_message(self) -> Message | None:
        """Return the last message of an assistant that says something and calls no tool."""
        return next((message for message in self._newest() if _answers(message)), None)

    def reduce(self, fn: Callable[[State, Event], State], init: State) -> State:
        """Return the state that ``fn(state, event)`` makes of all events, beginning with ``init``."""
        return reduce(fn, self.read(), init)

    @property
    def state(self) -> Any:
        """What the reducer makes of the log that was attached last; an empty dict without any."""
        return {} if self.reduction is None else self.reduction()

    def turns(self) -> list[TurnInfo]:
        """Return the turns that the conversation consists of, oldest first."""
        from harnpy.session.info import turns_of

        return turns_of(self.read(), self.view.turns.items())

    def _newest(self) -> Iterator[Message]:
        return (event.body for event in self.stream.read(types=_MESSAGES, reverse=True))


def _answers(message: Message) -> bool:
    if message.get("role") != "assistant" or message.get("tool_calls"):
        return False
    content = message.get("content")
    if isinstance(content, list):
        kinds_of_parts = {part.get("type") for part in content if isinstance(part, dict)}
        return bool(content) and "tool_use" not in kinds_of_parts
    said = any(isinstance(text, str) and text.strip() for text in (content, message.get("reasoning")))
    return said or bool(message.get("thinking_blocks"))


# What is said: appending messages and context, and beginning anew. Spec: 10 §A1.4, §A2.2, §C3.


#: As an expected version: at the end, whatever it is.
ANY = -1
_NO_MESSAGES: Final = "messages must be dicts with a string `role`"


class History:
    """The part of a `Session` that writes messages."""

    __slots__ = ()

    id: str
    version: int
    view: View

    def append(self, *drafts: EventDraft, expected_version: int | None = None) -> list[Event]:
        raise NotImplementedError

    def replace(self, reason: str, window: Window, branched_at: int | None = None) -> Event:
        raise NotImplementedError

    def shrink(self, strategy: str, window: Window) -> None:
        raise NotImplementedError

    @property
    def length(self) -> int:
        raise NotImplementedError

    def history_changed(self) -> None:
        raise NotImplementedError

    def append_user(self, text: str) -> Event:
        """Append what a user says."""
        return self.append_message({"role": "user", "content": text})

    def append_message(self, message: Message) -> Event:
        """Append one message; a role that isn't given is ``user``."""
        return self.append_prompt(message)[0]

    def append_prompt(self, messages: Messages) -> list[Event]:
        """Append messages, all or none. Raises `InvalidArgument` when there are none."""
        drafts = message_drafts(messages)
        if not drafts:
            raise InvalidArgument("a prompt must contain at least one message", self.id)
        events = self.append(*drafts, expected_version=ANY)
        self.history_changed()
        return events

    def append_context(self, content: str, kind: str = "generic", placement: str | None = None) -> Event:
        """Append what the model is to know and nobody has said. ``placement``: ``prefix`` or ``history``."""
        if placement not in (None, "prefix", "history"):
            raise InvalidArgument(f"`placement` must be `prefix` or `history`, not {placement!r}", self.id)
        data = {"kind": kind, "content": content}
        if placement is not None:
            data["placement"] = placement
        return self.append(EventDraft(kinds.CONTEXT_ADDED, data), expected_version=ANY)[0]

    def add_history(self, messages: Messages) -> None:
        """Append messages that are no turn's, one or several; a role that isn't given is ``user``."""
        self.append(*message_drafts(messages), expected_version=ANY)
        self.history_changed()

    def set_history(self, messages: Messages) -> None:
        """Restart the history with these messages. The log keeps what was; memo and registers stay."""
        drafts = message_drafts(messages)
        data: dict[str, Any] = {"messages": [], "reason": "set"}
        if drafts:
            data["messages"] = [[self.version + 1, self.version + len(drafts)]]
        if self.view.window.summary is not None:
            data["summary"] = None
        self.append(*drafts, EventDraft(kinds.HISTORY_REPLACED, Cut.restored(data)))
        self.history_changed()

    def reset(self) -> None:
        """Empty window and history; registers stay."""
        self.replace("reset", Window())
        self.history_changed()

    def clean_window(self) -> None:
        """Empty the window. The history stays."""
        self.shrink("clean_window", self.view.window.trimmed(0))
        self.history_changed()

    def trim(self, keep_last: int) -> int:
        """Keep the newest messages in the window. Return how many there are."""
        if count("keep_last", keep_last) < self.length:
            self.shrink("trim", self.view.window.trimmed(keep_last))
        return self.length


def message_drafts(messages: Messages) -> list[EventDraft]:
    """Return the drafts of copies of the messages: dicts, or objects that have a role and a content.

    Raises `InvalidArgument`, `EventRejected`.
    """
    one = as_dict(messages)
    drafts = []
    if not isinstance(one, dict) and not hasattr(messages, "__iter__"):
        raise InvalidArgument(_NO_MESSAGES)
    for message in map(as_dict, [one] if isinstance(one, dict) else messages):
        if not isinstance(message, dict) or not isinstance(message.get("role", ""), str):
            raise InvalidArgument(_NO_MESSAGES)
        draft = EventDraft(kinds.MESSAGE_ADDED, {"role": "user", **message})
        draft.check()
        draft.data = detached(draft.data)
        drafts.append(draft)
    return drafts


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
        from harnpy.session.past import number_of

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
        from harnpy.session.draft_checks import admitted

        check_drafts(drafts)
        admitted(self, drafts)

    def _append(self, drafts: Sequence[EventDraft], expected_version: int | None) -> list[Event]:
        """Append drafts that are JSON."""
        if not self.strict and all(map(_is_plain, drafts)):
            return self.write(*drafts, expected_version=expected_version)
        from harnpy.session.draft_checks import admitted

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
            from harnpy.session.watch import Audience

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
