"""Canto's names: the durable append-only log of a session, and what it means. Spec: 10 §A1, §B2."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from threading import RLock
from typing import Any, NamedTuple, Protocol, TypedDict
from weakref import WeakKeyDictionary

from harnpy.faces import canto_events
from harnpy.faces.canto_events import *  # noqa: F403
from harnpy.faces.canto_events import ARTIFACT_KIND_WORKSPACE_FILE_REF, Event, marshal_event_json
from harnpy.session import drafts, trajectory
from harnpy.session import payload_types as types
from harnpy.session.actions import unsaved_copy, unsaved_session
from harnpy.session.agents import Budget, RunEvent, TurnResult
from harnpy.session.artifacts import Artifact, ArtifactStore, Body
from harnpy.session.child_records import ChildRef, ChildResult, ChildSpec
from harnpy.session.children import ScheduledChild
from harnpy.session.drafting import current_metadata as metadata_from_context
from harnpy.session.drafting import current_turn as turn_id_from_context
from harnpy.session.drafting import ensure_turn as ensure_turn_id
from harnpy.session.drafting import metadata as with_metadata
from harnpy.session.drafting import turn as with_turn_id
from harnpy.session.errors import InvalidArgument, SessionExists, SessionNotFound
from harnpy.session.events import Event as HarnEvent
from harnpy.session.events import EventDraft
from harnpy.session.history import ANY
from harnpy.session.info import SessionInfo
from harnpy.session.log import KIND
from harnpy.session.log import Session as HarnSession
from harnpy.session.prompt import FILES_LIMIT, HistoryEntry
from harnpy.session.reading import ModelSettings
from harnpy.session.reading import Rebuilder as HarnRebuilder
from harnpy.session.resize_policy import Artifacts, ResizeReport
from harnpy.session.runtime import SessionRuntime
from harnpy.session.trajectory import ChildLog as ChildRunLog
from harnpy.session.trajectory import Episode, RunLog, RunTurn, distill
from harnpy.session.transfer.logs import Replayer as HarnReplayer
from harnpy.session.watch import Watch
from harnpy.storage.contract import Store as HarnStore
from harnpy.storage.errors import Unsupported
from harnpy.storage.memory import AppendOnlyList, MemoryStore, MemoryStream
from harnpy.world import World

Message = dict[str, Any]
Reducer = Callable[[Any, Event], Any]
Option = Callable[["Replayer"], None]

__all__ = [
    "ArtifactRef", "BudgetGuard", "ChildRef", "ChildResult", "ChildRunLog", "ChildSpec", "CompactQueue",
    "Episode", "EpisodeCall", "ForkOptions", "HistoryEntry", "JSONLStore", "Offloader",
    "ProjectionSnapshotter", "PromptCacheData", "Rebuilder", "Replayer", "RunLog", "RunTurn", "Runner",
    "SQLiteStore", "Session", "SessionAncestry", "Store", "Subscription", "Summarizer", "TokenGuard",
    "ToolExecutionRecord", "ToolHistory", "Writer", "attach_write_through", "compact_session", "distill",
    "ensure_turn_id", "export_run", "export_run_tree", "find_tool_execution_by_key",
    "is_workspace_file_reference_artifact", "metadata_from_context", "new", "new_jsonl_store",
    "new_projection_snapshotter", "new_rebuilder", "new_replayer", "new_sqlite_store", "record_artifact",
    "store_artifact", "turn_id_from_context", "with_metadata", "with_replay_reducer", "with_turn_id",
]  # fmt: skip
__all__ += canto_events.__all__

# A subscription: the events of a session as they come. Spec: 10 §A1.12.


class Subscription:
    """A watch. What isn't read in time is dropped; an append never waits for it."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def events(self) -> Iterator[Event]:
        """Return the events, waiting for those to come until the subscription is closed."""
        return map(Event.of, self._watch)

    def next(self, timeout: float | None = None) -> Event | None:
        """Return the next event; None after ``timeout`` seconds, or once it is closed and empty."""
        event = self._watch.next(timeout)
        return None if event is None else Event.of(event)

    def close(self) -> None:
        """End it. Closing again does nothing."""
        self._watch.close()


# A session: a log of events, by itself or on a store, and what it means. Spec: 10 §A1, §B2.


#: harnpy's first event of each log says who the session is; Canto's logs have none.
FIRST = 1


class ForkOptions(NamedTuple):
    """Facts about a branch."""

    branch_label: str = ""
    fork_reason: str = ""


class Writer(Protocol):
    """A store, as far as a session needs it: one of harnpy's, or the caller's own."""

    def save(self, event: Event) -> object:
        """Store an event. It has its id, number and time. What this raises, the append raises."""


class _Written(MemoryStream):
    """A log in memory, whose events a writer of the caller's has first."""

    writer: Writer | None = None

    def append(self, records: Sequence[HarnEvent], expected_version: int, **more: Any) -> None:
        if self.writer is not None and expected_version == self.version:
            for record in records:
                self.writer.save(Event.of(record))
        super().append(records, expected_version, **more)


class Session:
    """A session. With a writer each append is stored before it returns.

    ``log`` is the session of harnpy's that it stands for: events are its own but for the first one.
    """

    def __init__(self, id: str, *, log: HarnSession | None = None, writer: Writer | None = None) -> None:
        self._lock = RLock()
        self._reducer: Reducer | None = None
        self._is_stored = log is not None and log.is_stored
        self.stand_for(unsaved_session(id, World()) if log is None else log)
        self._writer: Writer | None = None
        if writer is not None:
            self.with_writer(writer)

    def stand_for(self, log: HarnSession) -> None:
        """Be the session of that log from here on. One without a store checks messages as stores do."""
        self.log = log
        if not log.is_stored:
            log.strict = True

    def id(self) -> str:
        return self.log.id

    # Writing.

    def stored(self) -> HarnSession:
        """Return the log to write to, which is stored by now if the writer is a store of harnpy's."""
        with self._lock:
            if isinstance(self._writer, Store) and not self._is_stored:
                self.log = self._writer.attach(self.log)
                self._is_stored = True
            return self.log

    def append(self, event: Event) -> None:
        """Append an event, which has its id and time then.

        Raises `EventRejected` for a message that no model takes, and for what isn't JSON.
        """
        draft = event.draft()
        self._begin_with(draft)
        with self._lock:
            logged = self.stored().append(draft, expected_version=ANY)[-1]
        event.took_place(logged)

    def _begin_with(self, draft: EventDraft) -> None:
        """Let a session that has no event yet begin when its first one was, which brings its time."""
        with self._lock:
            if draft.place is not None and self.log.version == FIRST and not self._is_stored:
                log = unsaved_session(self.id(), World(), at=draft.place.timestamp)
                if log.moment < self.log.moment:
                    self._continue_as(log)

    def append_user(self, content: str) -> None:
        self.append_prompt([{"role": "user", "content": content}])

    def append_prompt(self, messages: list[Message]) -> None:
        """Append messages, all or none."""
        with self._lock:
            self.stored().append(*map(drafts.message, messages), expected_version=ANY)

    def append_context(self, entry: types.ContextAdded) -> None:
        self.append(Event(self.id(), entry.TYPE, entry))

    def append_branch_summary(self, summary: types.BranchSummary) -> None:
        self.append(Event(self.id(), summary.TYPE, summary))

    def move_leaf(self, event_id: str) -> None:
        """Go on behind an earlier event; an empty id is the begin."""
        with self._lock:
            self.stored().move_leaf(event_id)

    def move_leaf_with_summary(self, event_id: str, summary: str) -> None:
        """`move_leaf`, and tell the model what became of the branch that is left."""
        with self._lock:
            self.stored().move_leaf(event_id, summary)

    def with_writer(self, writer: Writer) -> Session:
        """Have each later append stored. A store of harnpy's gets what is there already with the first of
        them; a writer of the caller's own has each event before the session has it."""
        if not callable(getattr(writer, "save", None)):
            raise InvalidArgument(f"a writer has a method `save(event)`, {type(writer).__name__} has none")
        with self._lock:
            self._writer = writer
            if not isinstance(writer, Store):
                self._continue_as(self.log, writer)
        return self

    def _continue_as(self, log: HarnSession, writer: Writer | None = None) -> None:
        """Go on in memory with that log. ``writer`` has what is appended first."""
        stream = _Written(MemoryStore(), KIND, log.id, None, AppendOnlyList())
        observers = None if self._is_stored else self.log.observers
        self.stand_for(unsaved_copy(log, stream))
        stream.writer = self._writer if writer is None and not isinstance(self._writer, Store) else writer
        self.log.observers = observers
        self._is_stored = False

    def with_reducer(self, reducer: Reducer) -> Session:
        """Have `state` be what ``reducer(state, event)`` makes of all events."""
        self._reducer = reducer
        return self

    def detach(self) -> None:
        """Go on in memory: what is appended from here on isn't stored."""
        with self._lock:
            self._writer = None
            self._continue_as(self.log)

    # Reading.

    def all(self) -> Iterator[Event]:
        """Return the events, oldest first, as they are now."""
        return iter(self.events())

    def backward(self) -> Iterator[Event]:
        """Return the events, newest first, as they are now."""
        return reversed(self.events())

    def events(self) -> list[Event]:
        return list(map(Event.of, self.log.events(after=FIRST)))

    def active_events(self) -> list[Event]:
        """Return the events of the active branch."""
        return list(map(Event.of, self.log.events(after=FIRST, branch=True)))

    def branch_events(self, event_id: str) -> list[Event]:
        """Return the events that lead to the one of that id, and itself."""
        return [Event.of(event) for event in self.log.branch(event_id) if event.seq > FIRST]

    def leaf_id(self) -> str:
        """Return the id of the event that the next one stands behind; empty at the begin."""
        return "" if not self.active_events() else self.log.leaf_id or ""

    def last_event(self) -> Event | None:
        last = self.log.last_event()
        return None if last is None or last.seq == FIRST else Event.of(last)

    def messages(self) -> list[Message]:
        """Return all messages that were ever appended, as they were."""
        return self.log.history(include_reset=True)

    def last_message(self) -> Message | None:
        return self.log.last_message()

    def last_assistant_message(self) -> Message | None:
        """Return the last message of an assistant that says something and calls no tool."""
        return self.log.last_assistant_message()

    def effective_messages(self) -> list[Message]:
        """Return the messages as a model gets them."""
        return self.log.window()

    def effective_entries(self) -> list[HistoryEntry]:
        """Return `effective_messages` with their events, context marks and what is known of calls."""
        return self.log.entries()

    def effective_settings(self) -> ModelSettings:
        """Return model, thinking and tools, as they were chosen last."""
        return self.log.model_settings

    def total_cost(self) -> float:
        """Return what all events have cost, in USD."""
        return self.log.total_cost

    def is_waiting(self) -> bool:
        """Return whether it waits for an approval or for something outside."""
        return self.log.is_waiting

    def state(self) -> dict[str, Any]:
        """Return what the reducer makes of the events; empty without one."""
        found: Any = {}
        for event in self.events() if self._reducer is not None else ():
            found = self._reducer(found, event)  # type: ignore[misc]
        return dict(found)

    # Branches and watches.

    def fork(self, new_id: str) -> Session:
        """Return a session with this one's past, on its store if it has one."""
        writer = self._writer if isinstance(self._writer, Store) else None
        fork = Session(new_id, log=self.log.fork(new_id), writer=writer)
        fork._reducer = self._reducer
        return fork

    def branch(self, new_id: str, options: ForkOptions | None = None) -> Session:
        """Return a stored fork with what is known of it. Raises `Unsupported` without a store."""
        label, reason = ForkOptions() if options is None else options
        if isinstance(self._writer, Store):
            log = self.stored().fork(new_id, label=label, reason=reason)
            return Session(new_id, log=log, writer=self._writer)
        make = getattr(self._writer, "branch_session", None)
        if make is None:
            raise Unsupported("branch session: session has no durable writer")
        branched: Session = make(self, new_id, ForkOptions(label, reason))
        return branched

    def watch(self) -> Subscription:
        """Return the events that come from now on."""
        return Subscription(self.stored().watch())

    def observe_events(self, observer: Callable[[Event], Any]) -> Callable[[], None]:
        """Call ``observer`` within each append. Return what ends that."""
        return self.stored().observe(lambda event: observer(Event.of(event)))

    def has_watchers(self) -> bool:
        return self.log.has_watchers


new = Session


def attach_write_through(session: Session, store: Writer) -> Callable[[], None]:
    """Have each later append of ``session`` stored before it returns. Return what ends that."""
    session.with_writer(store)
    return session.detach


# Stores of logs, with the ancestry of sessions. Spec: 10 §A1.10, §A1.11, §B2.


@dataclass(frozen=True)
class SessionAncestry:
    """A session's place in the tree of its store. ``depth`` of a root is 0."""

    session_id: str
    parent_session_id: str = ""
    fork_point_event_id: str = ""
    branch_label: str = ""
    fork_reason: str = ""
    depth: int = 0
    created_at: str = ""


#: What FTS5 reads in a query otherwise than as a word, outside of phrases.
_OPERATORS = re.compile(r"(?<!\S)(?:AND|OR|NOT)(?!\S)|\bNEAR\(|\w\*(?!\S)")
_PHRASE = re.compile(r'"[^"]*"')
_ALL = 1 << 31


class Store:
    """Sessions on a store of harnpy's, or on the one that a URL names. ``options`` are those of
    `harnpy.session.SessionRuntime`."""

    def __init__(self, store: HarnStore | str, **options: Any) -> None:
        self.runtime = SessionRuntime(store, **options)

    # Sessions.

    def save(self, event: Event) -> None:
        """Append an event to the session that it names, which it creates if there is none."""
        self.load(event.session_id).append(event)

    def load(self, session_id: str) -> Session:
        """Return a session; an empty one, which its first append creates, where there is none."""
        try:
            return Session(session_id, log=self.runtime.get(session_id), writer=self)
        except SessionNotFound:
            return Session(session_id, writer=self)

    def load_until(self, session_id: str, event_id: str) -> Session:
        """Return a session as it stood right behind that event. It can be read and forked.

        Raises `SessionNotFound`, `EventNotFound`.
        """
        return Session(session_id, log=self.runtime.open(session_id, until=event_id), writer=self)

    def attach(self, log: HarnSession) -> HarnSession:
        """Return the stored session of that log's id, made of the log if there is none.

        Raises `SessionExists` where the store has one and the log has events of its own.
        """
        try:
            return self.runtime.create(log)
        except SessionExists:
            if log.version > FIRST:
                raise
            return self.runtime.get(log.id)

    def events_after(self, session_id: str, seq: int) -> list[Event]:
        """Return the events behind number ``seq``."""
        found = self.runtime.get(session_id).events(after=max(seq, FIRST))
        return list(map(Event.of, found))

    def search(self, session_id: str, query: str) -> list[Event]:
        """Return the events whose text holds every term of ``query``, oldest first.

        A query with FTS5's operators (``AND``, ``OR``, ``NOT``, ``NEAR(…)``, ``term*``) is SQLite's: other
        stores raise `Unsupported`.
        """
        has_operators = _OPERATORS.search(_PHRASE.sub("", query)) is not None
        hits = self.runtime.search(query, session_id, limit=_ALL, raw=has_operators)
        log = self.runtime.get(session_id)
        return [Event.of(log.event(seq)) for seq in sorted({hit.seq for hit in hits}) if seq > FIRST]

    def close(self) -> None:
        """Close the store, if its URL was given."""
        self.runtime.close()

    # The tree.

    def fork(self, original_id: str, new_id: str) -> Session:
        return self.fork_with_options(original_id, new_id, ForkOptions())

    def fork_with_options(self, original_id: str, new_id: str, options: ForkOptions) -> Session:
        """Return a stored fork. Raises `SessionNotFound`, `SessionExists`."""
        log = self.runtime.get(original_id).fork(
            new_id, label=options.branch_label, reason=options.fork_reason
        )
        return Session(new_id, log=log, writer=self)

    def branch_session(self, parent: Session, new_id: str, options: ForkOptions | None = None) -> Session:
        """Return a stored fork of a session that may not be stored yet."""
        return parent.with_writer(self).branch(new_id, options)

    def parent(self, session_id: str) -> SessionAncestry | None:
        """Return where a session's parent stands; None for a root. Raises `SessionNotFound`."""
        found = self.runtime.parent(session_id)
        return None if found is None else _ancestry(found)

    def children(self, session_id: str) -> list[SessionAncestry]:
        """Return where its direct forks stand, oldest first."""
        return list(map(_ancestry, self.runtime.children(session_id)))

    def lineage(self, session_id: str) -> list[SessionAncestry]:
        """Return where the sessions stand that it descends from, the root first, and itself."""
        return list(map(_ancestry, self.runtime.lineage(session_id)))

    def save_ancestry(self, record: SessionAncestry) -> None:
        """Note where a session stands whose log is elsewhere, unless there is one of that id.

        Raises `InvalidArgument` for a record without an id or a time.
        """
        known = {key: value for key, value in asdict(record).items() if value}
        self.runtime.save_ancestry(known)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class JSONLStore(Store):
    """A directory of logs, which processes may share."""

    def __init__(self, directory: str, **options: Any) -> None:
        super().__init__(f"jsonl:{directory}", **options)


class SQLiteStore(Store):
    """A database in one file."""

    def __init__(self, dsn: str, **options: Any) -> None:
        super().__init__("memory:" if dsn == ":memory:" else f"sqlite:{dsn}", **options)


new_jsonl_store, new_sqlite_store = JSONLStore, SQLiteStore


def _store_of(store: object) -> Store:
    """Return a store that turns run on. Raises `InvalidArgument` for another one."""
    if isinstance(store, Store):
        return store
    raise InvalidArgument(
        f"turns and compactions run on a JSONLStore, a SQLiteStore or another Store of this module, not on "
        f"{type(store).__name__}: give that to a session as its writer"
    )


def _ancestry(info: SessionInfo) -> SessionAncestry:
    return SessionAncestry(
        session_id=info.id,
        parent_session_id=info.parent_id or "",
        fork_point_event_id=info.fork_event_id or "",
        branch_label=info.branch_label,
        fork_reason=info.fork_reason,
        depth=info.depth,
        created_at=info.created_at,
    )


# Sessions made of a stream of events, and views of them. Spec: 10 §A1.6, §A1.7, §A1.8.


class Replayer:
    """Makes sessions of events, with no writes, watchers, observers or checks of messages."""

    def __init__(self, *options: Option) -> None:
        self.reducer: Reducer | None = None
        self._begun: WeakKeyDictionary[Session, HarnReplayer] = WeakKeyDictionary()
        for option in options:
            option(self)

    def new_session(self, session_id: str) -> Session:
        """Return an empty session to `apply` events to."""
        session = Session(session_id)
        if self.reducer is not None:
            session.with_reducer(self.reducer)
        self._begun[session] = HarnReplayer(session_id)
        return session

    def apply(self, session: Session, event: Event) -> None:
        """Add an event to a session of `new_session`. Raises `TransferError` for one of another session."""
        replayer = self._begun[session]
        replayer.apply(json.loads(marshal_event_json(event)))
        session.stand_for(replayer.session)

    def replay(self, session_id: str, events: Iterable[Event]) -> Session:
        """Return the session that these events are of."""
        session = self.new_session(session_id)
        for event in events:
            self.apply(session, event)
        return session


new_replayer = Replayer


def with_replay_reducer(reducer: Reducer) -> Option:
    """Return the option that gives replayed sessions a reducer."""

    def choose(replayer: Replayer) -> None:
        replayer.reducer = reducer

    return choose


class Rebuilder:
    """Shows what a model gets. A working set names ``files_limit`` files of each sort."""

    def __init__(self, files_limit: int = FILES_LIMIT) -> None:
        self.files_limit = files_limit

    def rebuild_entries(self, session: Session) -> list[HistoryEntry]:
        return HarnRebuilder(self.files_limit).entries(session.log)

    def rebuild_messages(self, session: Session) -> list[dict[str, Any]]:
        return HarnRebuilder(self.files_limit).messages(session.log)


new_rebuilder = Rebuilder


class ProjectionSnapshotter:
    """Takes checkpoints of what a model gets: after ``max_events`` events, or a ``max_age`` (in seconds, or a
    timedelta).

    A session by itself needs none, and a turn that runs has none: False then.
    """

    def __init__(self, max_events: int = 50, max_age: float | timedelta | None = None) -> None:
        self.max_events = max_events
        self.max_age = max_age

    def snapshot(self, session: Session) -> bool:
        """Take one. Return whether that was possible."""
        return session.stored().snapshot()

    def snapshot_if_needed(self, session: Session) -> bool:
        """Take one if it is due. Return whether one was taken."""
        return session.stored().snapshot(if_needed=True, max_events=self.max_events, max_age=self.max_age)


new_projection_snapshotter = ProjectionSnapshotter


# Compaction on request: long tool outputs go elsewhere, old turns become a summary. Spec: 10 §A1.17.


@dataclass(frozen=True)
class Offloader:
    """Puts long tool outputs of old turns into ``artifacts``; the window says where they are."""

    artifacts: Artifacts

    def compact(self, session: Session, **options: Any) -> ResizeReport | None:
        return session.stored().resize("offload", artifacts=self.artifacts, **options)


@dataclass(frozen=True)
class Summarizer:
    """Puts a summary in the place of old turns. ``summarize(prompt)`` asks a model."""

    summarize: Callable[[str], str]

    def compact(self, session: Session, **options: Any) -> ResizeReport | None:
        return session.stored().resize("summarize", summarize=self.summarize, **options)


class CompactQueue:
    """Compacts sessions of a store in the background, each once at a time; what is asked for meanwhile is
    done once, when that is over. Who summarizes is in the store's ``resize=``."""

    def __init__(self, store: Store, strategy: str | None = None) -> None:
        self._runtime = _store_of(store).runtime
        self._strategy = strategy

    def enqueue(self, session_id: str) -> Future[ResizeReport | None]:
        """Compact a session soon. Return what becomes of it."""
        return self._runtime.compact_in_background(session_id, self._strategy)


def compact_session(
    session: Session,
    summarize: Callable[[str], str],
    *,
    max_tokens: int,
    artifacts: Artifacts | None = None,
    **options: Any,
) -> bool:
    """Compact a session that has more than its share of ``max_tokens``: offload, if there are ``artifacts``,
    then summarize. ``options`` are those of `ResizePolicy`. Return whether its window is smaller now.

    Raises `InvalidArgument`, and what the model raises; nothing has changed then.
    """
    for name, is_given in (("session", session is not None), ("model", callable(summarize))):
        if not is_given:
            raise InvalidArgument(f"compact session: {name} is required")
    if max_tokens <= 0:
        raise InvalidArgument("compact session: max tokens must be > 0")
    given = {"summarize": summarize, "artifacts": artifacts, "max_tokens": max_tokens, **options}
    due = {"compact_strategy": "summarize"}
    report = session.stored().resize(
        **{key: value for key, value in (due | given).items() if value is not None}
    )
    return report is not None and report.shrunk


# What a log knows of tools and artifacts, and what it tells of a run. Spec: 10 §A1.13, §A1.14, §A1.16.


ArtifactRef = Artifact


class PromptCacheData(TypedDict, total=False):
    """The part of a step's prompt that later requests share."""

    prefix_hash: str
    tool_schema_hash: str


class ToolHistory(TypedDict, total=False):
    """Facts about the call that a message answers."""

    id: str
    name: str
    args: str
    idempotency_key: str
    is_error: bool
    error: str


class EpisodeCall(TypedDict):
    """A call of an episode."""

    tool: str
    args: str
    result: str


class ToolExecutionRecord(NamedTuple):
    """The last fact about a call: its end, or else its begin."""

    started: types.ToolStarted | None
    completed: types.ToolCompleted | None


def find_tool_execution_by_key(session: Session, idempotency_key: str) -> ToolExecutionRecord | None:
    """Return what the log knows of the call with that key; None for nothing."""
    found = session.log.find_tool(idempotency_key)
    if found is None:
        return None
    started = None if found.started is None else Event.of(found.started).tool_started_data()
    completed = None if found.completed is None else Event.of(found.completed).tool_completed_data()
    return ToolExecutionRecord(started, completed)


def record_artifact(session: Session, data: types.ArtifactRecorded) -> ArtifactRef:
    """Record an artifact that is kept somewhere. Return its descriptor."""
    return session.stored().record_artifact(ArtifactRef.of(data.artifact), data.child_id)


def store_artifact(
    session: Session, store: ArtifactStore, data: types.ArtifactRecorded, body: bytes | Body
) -> ArtifactRef:
    """Keep a body in ``store``, then record it. Return its descriptor."""
    return session.stored().store_artifact(store, ArtifactRef.of(data.artifact), body, data.child_id)


def is_workspace_file_reference_artifact(ref: ArtifactRef) -> bool:
    """Return whether a descriptor is a note about a file of the workspace, which no one is shown."""
    return ref.kind == ARTIFACT_KIND_WORKSPACE_FILE_REF


def export_run(session: Session) -> RunLog:
    """Return what a session did, answer by answer."""
    return trajectory.export_run(session.log)


def export_run_tree(session: Session, load: Callable[[str], Session | None]) -> RunLog:
    """Return `export_run` with those of its children, and theirs; ``load(id)`` returns their sessions."""

    def found(session_id: str) -> object:
        child = load(session_id)
        return None if child is None or not child.events() else child.log

    return trajectory.export_run_tree(session.log, found)  # type: ignore[arg-type]


# The runner: sessions of a store, with an agent that answers in them. Spec: 10 §A1.17, §B2.


class BudgetGuard(Budget):
    """Ends a turn before the step that comes after ``max_cost`` USD were spent."""

    def __init__(self, max_cost: float) -> None:
        super().__init__(max_cost=max_cost)


class TokenGuard(Budget):
    """Ends a turn before the step that comes after ``max_tokens`` were used."""

    def __init__(self, max_tokens: int) -> None:
        super().__init__(max_tokens=max_tokens)


class Runner:
    """Runs turns. ``agent`` is one that `SessionRuntime.send` takes, ``options`` are those of each send: a
    guard is its ``budget``."""

    def __init__(self, store: Store, agent: Any = None, **options: Any) -> None:
        self.store = _store_of(store)
        self._runtime = self.store.runtime
        self._options = {"agent": agent, **options}

    def send(self, session_id: str, prompt: Any, **options: Any) -> TurnResult:
        """Run the agent on a prompt, in a session that is created if there is none."""
        self._open(session_id)
        return self._runtime.send(session_id, prompt, **{**self._options, **options})

    def send_stream(self, session_id: str, prompt: Any, **options: Any) -> Iterator[RunEvent]:
        """Give the answer piece by piece, in the end the result. Closing the iterator cancels the turn."""
        self._open(session_id)
        return self._runtime.stream(session_id, prompt, **{**self._options, **options})

    def run(self, session_id: str, **options: Any) -> TurnResult:
        """Run the agent on what is there."""
        return self.send(session_id, None, **options)

    def watch(self, session_id: str) -> Subscription:
        """Return the events that come from now on, whoever appends them."""
        self._open(session_id)
        return Subscription(self._runtime.get(session_id).watch())

    def bootstrap(
        self, session_id: str, cwd: str | None = None, files: Any = None, tools: Iterable[str] = ()
    ) -> None:
        """Tell the model where it works: the directory, the files in it, and its tools."""
        self._open(session_id)
        self._runtime.bootstrap(session_id, cwd, files, tools)

    def evict(self, session_id: str) -> bool:
        """Drop the live object of a session, unless somebody works on it or watches it."""
        return self._runtime.evict(session_id)

    # Children.

    def spawn_child(self, session_id: str, spec: ChildSpec) -> ChildRef:
        """Have a child of the session run. It is in the log when this returns."""
        return self._runtime.spawn(session_id, self._with_agent(spec))

    def wait_child(self, child_id: str, timeout: float | None = None) -> ChildResult:
        """Return what became of a child, and forget it. ``timeout`` is in seconds."""
        return self._runtime.wait(child_id, timeout)

    def delegate(self, session_id: str, spec: ChildSpec) -> ChildResult:
        """`spawn_child` and `wait_child`."""
        return self._runtime.run_child(session_id, self._with_agent(spec))

    def schedule_child(self, session_id: str, spec: ChildSpec) -> ScheduledChild:
        """Have a child begin when ``spec.due_at`` says."""
        return self._runtime.schedule_child(session_id, self._with_agent(spec))

    def _with_agent(self, spec: ChildSpec) -> ChildSpec:
        agent = self._options["agent"] if spec.agent is None else spec.agent
        return replace(spec, agent=agent, mode=str(spec.mode))

    def _open(self, session_id: str) -> None:
        self._runtime.open(session_id, create=True)
