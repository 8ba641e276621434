"""The pipeline of an action: load, act, save, with hooks and events around; and how a session begins.

Spec: 10 §C3.2, §C7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.session import events as kinds
from harnpy.session import hooks as runtime_events
from harnpy.session import hooks as stages
from harnpy.session.actions import log_of, name_of, origin_of, streams
from harnpy.session.agents import AgentDef
from harnpy.session.arguments import checked, instance, items, mapping, optional_text, session_id, text
from harnpy.session.children import end_interrupted
from harnpy.session.chunks import KIND as CHUNKS
from harnpy.session.cuts import Created
from harnpy.session.errors import InvalidArgument, SessionConflict, SessionExists, SessionNotFound
from harnpy.session.events import EventDraft, Origin
from harnpy.session.history import message_drafts
from harnpy.session.log import KIND, Session
from harnpy.session.prompt import SYSTEM
from harnpy.session.recovery import ResumedTxn, end_diverged, ended_turn, resumable_turn
from harnpy.session.registers import Level
from harnpy.session.stored import lineage_of
from harnpy.session.transaction import Diverged, Txn
from harnpy.session.turns import CANCELLED, FAILED, end_open_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from harnpy.session.calling import Caller
    from harnpy.session.events import Event
    from harnpy.session.hooks import EventBus, HookStack
    from harnpy.session.live import LiveSession
    from harnpy.session.resize_policy import ResizeReport
    from harnpy.storage.contract import Store
    from harnpy.world import World
    from harnpy.world.files import Files

    Message = dict[str, Any]

# What a session is told of the place where it begins. Spec: 10 §A1.17, §C7.


def bootstrap_text(cwd: str, files: Iterable[str], tools: Iterable[str]) -> str:
    """Return the text that names the working directory, the files in it, sorted, and the tools."""
    lines = [f"Working directory: {cwd}"]
    for title, names in (("Files:", sorted(items("files", files))), ("Tools:", list(items("tools", tools)))):
        if names:
            lines += [title, *(f"- {name}" for name in names)]
    return "\n".join(lines)


def files_in(directory: str, files: Files) -> list[str]:
    """Return the names in a directory; those of directories end in ``/``."""
    return [f"{entry.name}/" if entry.is_dir else entry.name for entry in files.entries(directory)]


# What a new session of a runtime is, and what writes its first events. Spec: 10 §C7, §C3.2.


class Beginning(NamedTuple):
    """The session that is created, and what writes its first events."""

    origin: Origin
    write: Callable[[Txn], object]


def storing(session: Session, world: World) -> Beginning:
    """Return the beginning of a session that isn't saved: its log. Raises `InvalidArgument`."""
    origin = origin_of(session, world)
    log = log_of(session, origin)
    return Beginning(origin, lambda txn: txn.adopt_log(log))


def beginning(
    agent: AgentDef | str,
    origin: Origin,
    seed: Message | Iterable[Message],
    metadata: Mapping[str, Any] | None,
    *,
    label: str | None = None,
    system_prompt: str | None = None,
    auto_resize: bool | None = None,
) -> Beginning:
    """Return the beginning of a session of an agent. Raises `InvalidArgument`, `EventRejected`."""
    facts: dict[str, Any]
    metadata = mapping("metadata", metadata)
    if isinstance(agent, AgentDef):
        Level(agent.settings)
        checked(agent.data(), "definition")
        facts, metadata = agent.facts(), {**metadata, **agent.metadata}
    elif isinstance(agent, str):
        name = text("agent", agent)
        facts = {"agent_name": name, "agent_label": name} if name else {}
    else:
        raise InvalidArgument(f"an agent is given by a definition or a name, got {type(agent).__name__}")
    if auto_resize is not None:
        instance("auto_resize", auto_resize, bool, "a bool")
    given = {"agent_label": optional_text("label", label), "auto_resize": auto_resize}
    facts |= {key: value for key, value in given.items() if value is not None}
    created = EventDraft(kinds.SESSION_CREATED, Created(origin.parent, facts=facts))
    messages = message_drafts(seed)
    settings = [_setting(f"metadata.{key}", value) for key, value in metadata.items()]
    if system_prompt is not None:
        settings.append(_setting(SYSTEM, text("system_prompt", system_prompt)))

    def write(txn: Txn) -> None:
        txn.write(created)
        txn.append(*messages)
        txn.write(*settings)

    return Beginning(origin, write)


def origin_below(parent: Session | str, id: str, store: Store, world: World) -> Origin:
    """Return the origin of a session that another one of the store is the parent of, and shares nothing with.

    Raises `SessionNotFound`.
    """
    name = parent.id if isinstance(parent, Session) else session_id(parent)
    head = store.head(KIND, name)
    if head is None:
        raise SessionNotFound(name)
    return Origin(id, world, lineage_of(head, store, world))


def _setting(key: str, value: Any) -> EventDraft:
    return EventDraft(kinds.REGISTER_SET, {"key": key, "value": value, "version": 1})


# The ten steps of an action on a session: load, act, save, with hooks and events around. Spec: 10 §C7.


class Pipeline:
    """Carries out actions. Whoever calls has the session's lane."""

    def __init__(
        self,
        load: Callable[[str], LiveSession],
        hooks: HookStack,
        events: EventBus,
        runs_child: Callable[[str], bool],
        monotonic: Callable[[], float],
    ) -> None:
        """``load(id)`` returns a live session; ``runs_child(id)``: whether this process runs that child;
        ``monotonic`` is what actions are timed by, in seconds."""
        self._runs_child = runs_child
        self._load_session = load
        self._hooks = tuple(hooks)
        self._events = events
        self._monotonic: Callable[[], float] = monotonic

    def execute(
        self, id: str, action: Callable[[Txn], Any], call: Caller, revision: int | None, key: str | None
    ) -> LiveSession:
        """Carry out an action, once for its idempotency ``key``, on the session of that ``revision``."""
        try:
            return self._execute(id, action, call, revision, key)
        except Diverged as diverged:
            end_diverged(self._load_session(id), diverged)
        return self._execute(id, action, call, revision, key)

    def take_turn(self, id: str, action: Callable[[Txn], Any], call: Caller, key: str) -> LiveSession:
        """Carry out a stream action as the turn of that ``key``, and return the session.

        Where that turn has ended, the action goes through it again, answered by its log, and nothing is
        written; if it does something else now, a new turn takes its place.
        """
        live = self._load(id, None)
        turn = ended_turn(live, key)
        if turn is None:
            return self.execute(id, action, call, None, key)
        try:
            call(action, ResumedTxn(live, name_of(action), call, key, turn))
            return live
        except Diverged:
            return self._execute(id, action, call, None, key, again=True)

    def _execute(
        self,
        id: str,
        action: Callable[[Txn], Any],
        call: Caller,
        revision: int | None,
        key: str | None,
        *,
        again: bool = False,
    ) -> LiveSession:
        name = name_of(action)
        try:
            live = self._load(id, revision)
            turn = None if key is None or not streams(action) else resumable_turn(live, key)
            self._end_interrupted(live, turn)
            if key is not None and not again and live.has_executed(key):
                return live
            txn = Txn(live, name, call, key) if turn is None else ResumedTxn(live, name, call, key, turn)
            txn.resize_with(call)
            status, loaded = txn.status, txn.revision
            if self._hooks:
                txn.has_hooks = True
                self._run_hooks(stages.AFTER_LOAD, txn, call)
            if self._events.has_listeners:
                self._events.emit(runtime_events.LOADED, _facts(live))
        except Exception as error:
            self._events.failed(runtime_events.LOAD_FAILED, id, error)
            raise
        began = self._monotonic()
        try:
            self._act(action, txn, call)
            executed = {"action": name, "before_revision": loaded, "before_status": status}
            executed["after_status"] = txn.status
            if self._events.has_listeners:
                after = {**executed, "after_revision": txn.next_revision}
                self._events.emit(runtime_events.EXECUTED, {"session_id": id, **after})
            call.check()
            duration = round((self._monotonic() - began) * 1000)
            draft = _executed(executed, duration, key)
            self._save(txn, [draft], call)
        except BaseException as error:
            # Others than failures end the work: a cancellation, an interrupt, a task that is over.
            txn.rollback(error, FAILED if isinstance(error, Exception) else CANCELLED)
            self._tell_resizes(report for report in txn.resizes if report.error is not None)
            raise
        return live

    def create(self, live: LiveSession, begin: Callable[[Txn], object], call: Caller) -> None:
        """Store a new session, whose first events ``begin`` writes.

        Raises `SessionExists`.
        """
        with self._events.failure(runtime_events.SAVE_FAILED, live.id):
            if live.version:
                raise SessionExists(live.id, live.version)
            txn = Txn(live, "create", call)
            begin(txn)
            self._run_hooks(stages.BEFORE_CREATE, txn, call)
            self._run_hooks(stages.BEFORE_SAVE, txn, call)
            call.check()
            try:
                txn.save()
            except SessionConflict as conflict:
                raise SessionExists(live.id, conflict.found) from conflict
            self._run_hooks(stages.AFTER_SAVE, txn, call)
            self._run_hooks(stages.AFTER_CREATE, txn, call)
            self._events.emit(runtime_events.CREATED, _facts(txn))
            self._events.emit(runtime_events.SAVED, _facts(txn))

    def _load(self, id: str, revision: int | None) -> LiveSession:
        live = self._load_session(id)
        if revision is not None and revision != live.revision:
            raise SessionConflict(id, revision, live.revision, kind="revision")
        return live

    def _end_interrupted(self, live: LiveSession, turn: Event | None) -> None:
        """End what a process has left that is gone, but for a ``turn`` that is resumed: nobody else has
        the lane."""
        if live.view.open_turns or live.open_children:
            with live.lock:
                end_interrupted(live, self._runs_child)
                if turn is None:
                    end_open_turns(live)
                live.store.delete(CHUNKS, live.id)  # those of a process that is gone

    def _act(self, action: Callable[[Txn], Any], txn: Txn, call: Caller) -> None:
        """Do all that writes to the session before its save."""
        if streams(action):
            txn.begin_streaming()
        call(action, txn)
        txn.end_streaming()
        if self._hooks:
            self._run_hooks(stages.AFTER_ACTION, txn, call)
        txn.resize_at_end()
        if self._hooks:
            self._run_hooks(stages.BEFORE_SAVE, txn, call)

    def _save(self, txn: Txn, drafts: list[EventDraft], call: Caller) -> None:
        try:
            txn.save(*drafts)
            if txn.resizes:
                self._tell_resizes(txn.resizes)
                txn.resizes = []
            if self._hooks:
                self._run_hooks(stages.AFTER_SAVE, txn, call)
            if self._events.has_listeners:
                self._events.emit(runtime_events.SAVED, _facts(txn))
        except Exception as error:
            self._events.failed(runtime_events.SAVE_FAILED, txn.id, error)
            raise

    def _tell_resizes(self, reports: Iterable[ResizeReport]) -> None:
        for report in reports:
            self._events.emit(runtime_events.RESIZED, report.data())

    def _run_hooks(self, overlay: str, txn: Txn, call: Caller) -> None:
        for hook in self._hooks:
            call(hook, overlay, txn)


def _facts(session: Session) -> dict[str, Any]:
    seq, revision = session.seq, session.revision
    return {"session_id": session.id, "revision": revision, "seq": seq, "status": session.status}


def _executed(facts: dict[str, Any], duration: int, key: str | None) -> EventDraft:
    data = {**facts, "duration_ms": duration}
    if key is not None:
        data["idempotency_key"] = key
    return EventDraft(kinds.ACTION_EXECUTED, data)
