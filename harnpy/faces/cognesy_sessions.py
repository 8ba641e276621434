"""Cognesy's sessions as immutable values: header, definition, state, and the stores of them.

Spec: 10 §A3.1, §A3.2, §A3.7.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, ClassVar, Final, Protocol, Self, TypeVar

from harnpy.session import hooks
from harnpy.session.actions import unsaved_fork, unsaved_session
from harnpy.session.agents import AgentDef, Budget
from harnpy.session.errors import (
    InvalidSessionId,
    SessionConflict,
    SessionError,
    SessionExists,
    SessionNotFound,
)
from harnpy.session.events import micros
from harnpy.session.hooks import EventBus
from harnpy.session.info import SessionInfo
from harnpy.session.log import Session
from harnpy.session.registers import PENDING
from harnpy.session.runtime import SessionQuery, SessionRuntime
from harnpy.session.transaction import Txn
from harnpy.session.transfer.cognesy import load_file
from harnpy.storage.contract import Store
from harnpy.storage.errors import CorruptLog, StorageError
from harnpy.world import World

Message = dict[str, Any]
Data = dict[str, Any]

__all__ = [
    "AgentDefinition",
    "AgentSession",
    "AgentSessionInfo",
    "AgentSessionStage",
    "AgentState",
    "CanControlAgentSession",
    "CanExecuteSessionAction",
    "CanManageAgentSessions",
    "CanStoreSessions",
    "DefinitionStateFactory",
    "EventDispatcher",
    "FileSessionStore",
    "HarnSessionStore",
    "InMemorySessionStore",
    "InvalidSessionFileException",
    "LLMConfig",
    "SessionActionExecuted",
    "SessionConflictException",
    "SessionFactory",
    "SessionId",
    "SessionInfoList",
    "SessionLoadFailed",
    "SessionLoaded",
    "SessionNotFoundException",
    "SessionRepository",
    "SessionSaveFailed",
    "SessionSaved",
    "SessionStatus",
]  # fmt: skip

# Exceptions by their names there. Spec: 10 §A3.2, §A3.7, §C11.


SessionNotFoundException = SessionNotFound
SessionConflictException = SessionConflict
InvalidSessionFileException = CorruptLog


def not_new(session_id: str, version: int) -> SessionConflict:
    """Return the refusal to create a session that has been saved."""
    error = SessionConflict(session_id, 0, version, kind="revision")
    error.message = f"Cannot create session '{session_id}' with non-zero version {version}"
    return error


# What actions, controllers, stores and runtimes are, as protocols. Spec: 10 §A3.3, §A3.4, §A3.5, §A3.7.


class AgentSessionStage(StrEnum):
    """The moments at which a controller is asked."""

    BEFORE_CREATE = "before_create"
    AFTER_LOAD = "after_load"
    AFTER_ACTION = "after_action"
    BEFORE_SAVE = "before_save"
    AFTER_SAVE = "after_save"
    AFTER_CREATE = "after_create"


class CanExecuteSessionAction(Protocol):
    """An action. It should be a pure function of the session."""

    def execute_on(self, session: AgentSession) -> AgentSession: ...


class CanControlAgentSession(Protocol):
    """A controller. What it returns behind `AFTER_SAVE` isn't stored, only handed back."""

    def on_stage(self, stage: AgentSessionStage, session: AgentSession) -> AgentSession: ...


class CanManageAgentSessions(Protocol):
    """The methods of `SessionRuntime`."""

    def list_sessions(self) -> SessionInfoList: ...
    def get_session_info(self, session_id: str) -> AgentSessionInfo: ...
    def get_session(self, session_id: str) -> AgentSession: ...
    def execute(self, session_id: str, action: CanExecuteSessionAction) -> AgentSession: ...


class CanStoreSessions(Protocol):
    """A store of sessions. `create` takes version 0 and stores 1, `save` takes the stored version and stores
    the next one; `AgentSession.reconstitute` sets it."""

    def create(self, session: AgentSession) -> AgentSession: ...
    def save(self, session: AgentSession) -> AgentSession: ...
    def load(self, session_id: str) -> AgentSession | None: ...
    def exists(self, session_id: str) -> bool: ...
    def delete(self, session_id: str) -> None: ...
    def list_headers(self) -> SessionInfoList: ...


# What a session is called, and what lists show of it. Spec: 10 §A3.1.


_ID = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_-]*", re.ASCII)


class SessionId(str):
    """A text that is a session's id. Raises `InvalidSessionId`."""

    __slots__ = ()

    def __new__(cls, value: str) -> Self:
        if not _ID.fullmatch(value):
            raise InvalidSessionId(value)
        return super().__new__(cls, value)

    @classmethod
    def generate(cls) -> Self:
        """Return a new one, a UUID."""
        return cls(World().ids.new())

    @property
    def value(self) -> str:
        return str(self)


class SessionStatus(StrEnum):
    """The state of a session's life."""

    ACTIVE = "active"
    SUSPENDED = "suspended"
    COMPLETED = "completed"
    FAILED = "failed"
    DELETED = "deleted"


@dataclass(frozen=True)
class AgentSessionInfo:
    """The header of a session. ``version`` counts saves: 0 until a store has it."""

    session_id: SessionId
    agent_name: str
    agent_label: str
    created_at: datetime
    updated_at: datetime
    parent_id: str | None = None
    status: SessionStatus = SessionStatus.ACTIVE
    version: int = 0

    @classmethod
    def fresh(cls, session_id: str, agent_name: str, agent_label: str = "") -> AgentSessionInfo:
        """Return the header of a session that begins now."""
        time = now()
        return cls(SessionId(session_id), agent_name, agent_label or agent_name, time, time)

    def with_(
        self,
        *,
        status: SessionStatus | None = None,
        version: int | None = None,
        updated_at: datetime | None = None,
    ) -> AgentSessionInfo:
        """Return a header in which what is given is different."""
        given = {"status": status, "version": version, "updated_at": updated_at}
        return replace(self, **{key: value for key, value in given.items() if value is not None})  # type: ignore[arg-type]

    def with_parent_id(self, parent_id: str | None) -> AgentSessionInfo:
        return replace(self, parent_id=parent_id)

    def to_array(self) -> dict[str, Any]:
        """Return it as Cognesy's files have it."""
        return {
            "sessionId": str(self.session_id),
            "parentId": self.parent_id,
            "status": str(self.status),
            "version": self.version,
            "agentName": self.agent_name,
            "agentLabel": self.agent_label,
            "createdAt": self.created_at.isoformat(timespec="seconds"),
            "updatedAt": self.updated_at.isoformat(timespec="seconds"),
        }

    @classmethod
    def from_array(cls, data: dict[str, Any]) -> AgentSessionInfo:
        """Read what `to_array` gives. Raises KeyError, ValueError, `InvalidSessionId`."""
        return cls(
            session_id=SessionId(data["sessionId"]),
            agent_name=data["agentName"],
            agent_label=data["agentLabel"],
            created_at=datetime.fromisoformat(data["createdAt"]),
            updated_at=datetime.fromisoformat(data["updatedAt"]),
            parent_id=data.get("parentId"),
            status=SessionStatus(data["status"]),
            version=data["version"],
        )


class SessionInfoList(tuple[AgentSessionInfo, ...]):
    """Headers in order. Its length and iteration are those of a tuple."""

    __slots__ = ()

    def all(self) -> list[AgentSessionInfo]:
        return list(self)

    def is_empty(self) -> bool:
        return not self

    def first(self) -> AgentSessionInfo | None:
        return next(iter(self), None)

    def filter_by_status(self, status: SessionStatus) -> SessionInfoList:
        return SessionInfoList(info for info in self if info.status == status)

    def filter_by_agent_name(self, name: str) -> SessionInfoList:
        return SessionInfoList(info for info in self if info.agent_name == name)

    def to_array(self) -> list[dict[str, Any]]:
        return [info.to_array() for info in self]

    @classmethod
    def from_array(cls, data: Iterable[dict[str, Any]]) -> SessionInfoList:
        return cls(map(AgentSessionInfo.from_array, data))

    def __iter__(self) -> Iterator[AgentSessionInfo]:
        return super().__iter__()


def now() -> datetime:
    return moment(micros(World().clock.now()))


def moment(time: int) -> datetime:
    """Return the time so many microseconds after 1970, in UTC."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time)


# What an agent is. Spec: 10 §A3.1.


#: Names of fields → those that a session's log has (10 §C7.1). Others have one name.
_STORED = {"llm_config": "model", "tools_deny": "denied_tools"}


class LLMConfig:
    """Options of a model are a dict: ``provider`` (Cognesy's ``driver``), ``model`` …"""

    @staticmethod
    def from_array(data: Mapping[str, Any]) -> dict[str, Any]:
        return {"provider" if key == "driver" else key: value for key, value in data.items()}


@dataclass(frozen=True)
class AgentDefinition:
    """A definition of an agent. ``label`` is the name unless given; ``tools`` and ``skills`` None are all."""

    name: str
    description: str = ""
    system_prompt: str = ""
    label: str = ""
    llm_config: Any = None
    capabilities: tuple[str, ...] = ()
    tools: tuple[str, ...] | None = None
    tools_deny: tuple[str, ...] = ()
    skills: tuple[str, ...] | None = None
    budget: Budget | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", self.label or self.name)
        for name in ("capabilities", "tools", "tools_deny", "skills"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else tuple(value))

    def facts(self) -> dict[str, Any]:
        """Return what ``session_created`` says of the agent. Raises `InvalidArgument` for a wrong field."""
        given = {_STORED.get(each.name, each.name): getattr(self, each.name) for each in fields(self)}
        return AgentDef(**given).facts()

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> AgentDefinition:
        """Read what `facts` gives. Keys that Cognesy doesn't know are left out."""
        stored = facts.get("definition") or {}
        known = {each.name: stored.get(_STORED.get(each.name, each.name)) for each in fields(cls)}
        known |= {"name": facts.get("agent_name", ""), "label": facts.get("agent_label", "")}
        if known["budget"] is not None:
            limits = [each.name for each in fields(Budget)]
            known["budget"] = Budget(**{name: known["budget"].get(name) for name in limits})
        return cls(**{key: value for key, value in known.items() if value is not None})


# A session as a value: header, definition of its agent, and state. Every change gives a new one.
#
# `value_of` reads one from a session of harnpy's; `changes` writes what another differs in. Spec: 10 §A3.1.


#: Registers that Cognesy keeps among the metadata.
TASKS = ("task", "tasks")


@dataclass(frozen=True)
class AgentState:
    """The state of an agent: the messages, and what later runs go by.

    ``execution_status`` is what became of the last run: ``pending``, ``in_progress``, ``completed``,
    ``stopped`` or ``failed``; ``execution_count`` is how many there were.
    """

    agent_id: str
    created_at: datetime
    updated_at: datetime
    messages: tuple[Message, ...] = ()
    system_prompt: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    llm_config: Any = None
    execution_count: int = 0
    execution_status: str = PENDING
    parent_agent_id: str | None = None

    def with_messages(self, messages: Iterable[Message]) -> AgentState:
        return replace(self, messages=tuple(messages))

    def with_message(self, message: Message) -> AgentState:
        """Return a state with one message more."""
        return self.with_messages((*self.messages, message))

    def with_metadata(self, key: str, value: Any) -> AgentState:
        """Return a state in which one key of the metadata is set; None clears it."""
        return replace(self, metadata={**self.metadata, key: value})

    def with_system_prompt(self, text: str) -> AgentState:
        return replace(self, system_prompt=text)

    def with_llm_config(self, config: Any) -> AgentState:
        """Return a state with another model; None is the default one."""
        return replace(self, llm_config=config)

    def for_next_execution(self) -> AgentState:
        """Return a state in which no run is under way or over."""
        return replace(self, execution_status=PENDING)


@dataclass(frozen=True)
class AgentSession:
    """One session. ``seq`` is how many events its log had when it was read; 0: it comes from no store."""

    info: AgentSessionInfo
    definition: AgentDefinition
    state: AgentState
    seq: int = field(default=0, compare=False, repr=False)

    @staticmethod
    def reconstitute(session: AgentSession, version: int, updated_at: datetime) -> AgentSession:
        """Return the session as a store has it: with that version and time."""
        return replace(session, info=session.info.with_(version=version, updated_at=updated_at))

    @property
    def session_id(self) -> SessionId:
        return self.info.session_id

    @property
    def status(self) -> SessionStatus:
        return self.info.status

    @property
    def version(self) -> int:
        return self.info.version

    def with_state(self, state: AgentState) -> AgentSession:
        """Return a session with another state. Its status stays."""
        return replace(self, state=state)

    def with_status(self, status: SessionStatus) -> AgentSession:
        return replace(self, info=self.info.with_(status=status))

    def with_parent_id(self, parent_id: str | None) -> AgentSession:
        return replace(self, info=self.info.with_parent_id(parent_id))

    def suspended(self) -> AgentSession:
        return self.with_status(SessionStatus.SUSPENDED)

    def resumed(self) -> AgentSession:
        return self.with_status(SessionStatus.ACTIVE)

    def completed(self) -> AgentSession:
        return self.with_status(SessionStatus.COMPLETED)

    def failed(self) -> AgentSession:
        return self.with_status(SessionStatus.FAILED)

    def deleted(self) -> AgentSession:
        return self.with_status(SessionStatus.DELETED)


def value_of(session: Session) -> AgentSession:
    """Return what a session is now. Its messages are those of `Session.history`."""
    created = session.event(1)
    facts = created.stored()
    definition = AgentDefinition.of(facts)
    began, updated = moment(created.time), moment(micros(session.moment))
    info = AgentSessionInfo(
        session_id=SessionId(session.id),
        agent_name=definition.name,
        agent_label=definition.label,
        created_at=began,
        updated_at=max(began, updated),
        parent_id=facts.get("parent_session_id"),
        status=SessionStatus(session.status),
        version=session.revision,
    )
    kept = {key: session.get(key) for key in TASKS}
    state = AgentState(
        agent_id=session.id,
        created_at=info.created_at,
        updated_at=info.updated_at,
        messages=tuple(session.history()),
        system_prompt=session.get("system_prompt", definition.system_prompt),
        metadata=session.metadata | {key: value for key, value in kept.items() if value is not None},
        llm_config=session.get("model", definition.llm_config),
        execution_count=len(session.view.turns) - len(session.view.open_turns),
        execution_status=session.execution_status,
    )
    return AgentSession(info, definition, state, session.version)


# Events of the runtime as classes, for `EventDispatcher.add_listener`. Spec: 10 §A3.3.


@dataclass(frozen=True)
class SessionEvent:
    """An event of a session."""

    called: ClassVar[str]
    session_id: str

    @classmethod
    def of(cls, data: Data) -> Self:
        """Return the event with the data of harnpy's, where versions are revisions."""
        given = {each.name: data[each.name.replace("version", "revision")] for each in fields(cls)}
        statuses = {name: SessionStatus(given[name]) for name in given if name.endswith("status")}
        return cls(**{**given, **statuses})


@dataclass(frozen=True)
class _Stood(SessionEvent):
    version: int
    status: SessionStatus


class SessionLoaded(_Stood):
    """A session was loaded."""

    called = hooks.LOADED


class SessionSaved(_Stood):
    """A session is stored."""

    called = hooks.SAVED


@dataclass(frozen=True)
class SessionActionExecuted(SessionEvent):
    """An action has run, and is about to be stored. ``after_version`` is what the save will make."""

    called = hooks.EXECUTED
    action: str
    before_version: int
    after_version: int
    before_status: SessionStatus
    after_status: SessionStatus


@dataclass(frozen=True)
class _Failed(SessionEvent):
    error: str
    error_type: str


class SessionLoadFailed(_Failed):
    """A session couldn't be loaded; the exception goes on to the caller."""

    called = hooks.LOAD_FAILED


class SessionSaveFailed(_Failed):
    """A session couldn't be stored; the exception goes on to the caller."""

    called = hooks.SAVE_FAILED


Told = TypeVar("Told", bound=SessionEvent)


class EventDispatcher(EventBus):
    """Listeners by the class of the event. One that fails is logged and changes nothing."""

    def __init__(self, name: str = "") -> None:
        super().__init__()
        self.name = name
        self._agents: list[Callable[[Data], Any]] = []

    def add_listener(self, event: type[Told], listener: Callable[[Told], Any]) -> Callable[[], None]:
        """Call ``listener`` with each event of that class. Return what ends that."""
        return self.on(event.called, lambda name, data: listener(event.of(data)))

    def add_agent_listener(self, listener: Callable[[Data], Any]) -> None:
        """Call ``listener`` with each event of agent loops (07 §9)."""
        self._agents.append(listener)

    def agent_event(self, event: Data) -> None:
        """Tell of an event of an agent loop."""
        for listener in self._agents:
            listener(event)


# Sessions that no store has yet: version 0. Spec: 10 §A3.1, §A3.5.


class DefinitionStateFactory:
    """Makes the state that an agent's sessions begin with."""

    def create(self, definition: AgentDefinition, seed: AgentState | None = None) -> AgentState:
        """Return ``seed`` with what the definition says: its prompt, unless blank, and its metadata win."""
        time = now()
        state = AgentState("", time, time) if seed is None else seed
        return replace(
            state,
            system_prompt=definition.system_prompt
            if definition.system_prompt.strip()
            else state.system_prompt,
            metadata={**state.metadata, **definition.metadata},
            llm_config=state.llm_config if definition.llm_config is None else definition.llm_config,
        )


class SessionFactory:
    """Makes sessions of agents."""

    def __init__(self, state_factory: DefinitionStateFactory | None = None) -> None:
        self._states = DefinitionStateFactory() if state_factory is None else state_factory

    def create(self, definition: AgentDefinition, seed: AgentState | None = None) -> AgentSession:
        """Return a session that isn't stored. ``seed`` is the state to begin with."""
        info = AgentSessionInfo.fresh(SessionId.generate(), definition.name, definition.label)
        state = replace(self._states.create(definition, seed), agent_id=str(info.session_id))
        return AgentSession(info, definition, state)


def forked(source: AgentSession, new_id: str | None = None) -> AgentSession:
    """Return a fork that isn't stored: active, with the source's definition and state, but no run."""
    source_info = source.info
    info = AgentSessionInfo.fresh(
        new_id or SessionId.generate(), source_info.agent_name, source_info.agent_label
    ).with_parent_id(str(source.session_id))
    state = replace(source.state.for_next_execution(), agent_id=str(info.session_id), execution_count=0)
    return replace(source, info=info, state=state)


# Writing what a value differs in from the session that it was read from. Spec: 10 §B2.


def write_changes(session: Session, before: AgentSession, after: object) -> None:
    """Write to ``session``, whose value is ``before``, what ``after`` differs in. Identity, definition,
    version and times of a session don't change.

    Raises TypeError for what is no value, `SessionNotFound` for one of another session.
    """
    if after is before:
        return
    if not isinstance(after, AgentSession):
        raise TypeError(f"session '{session.id}': expected an AgentSession back, got {type(after).__name__}")
    if after.session_id != before.session_id:
        raise SessionNotFound(str(after.session_id))
    if after.state is not before.state:
        _write_messages(session, before.state, after.state)
        _write_registers(session, before.state, after.state)
    if after.status != before.status:
        session.set_status(str(after.status))


def _write_messages(session: Session, before: AgentState, after: AgentState) -> None:
    count = len(before.messages)
    forgets_run = after.execution_status == PENDING != before.execution_status
    if not after.messages and (before.messages or forgets_run):
        session.reset()
    elif after.messages[:count] != before.messages:
        session.set_history(after.messages)
    elif len(after.messages) > count:
        session.add_history(after.messages[count:])


def _write_registers(session: Session, before: AgentState, after: AgentState) -> None:
    if after.system_prompt != before.system_prompt:
        session.set("system_prompt", after.system_prompt)
    if after.llm_config != before.llm_config:
        session.set("model", after.llm_config)
    for key in {**before.metadata, **after.metadata}:
        value = after.metadata.get(key)
        if value != before.metadata.get(key):
            _write_metadata(session, key, value)


def _write_metadata(session: Session, key: str, value: Any) -> None:
    if key not in TASKS or value is None:
        session.set(key if key in TASKS else f"metadata.{key}", value)
    elif key == "task":
        session.set_task(value)
    else:
        session.set_tasks(value)


# Cognesy's own files of sessions in a store's directory: ``<id>.json``. Spec: 10 §A3.7, §C17.


_SUFFIX = ".json"


class CognesyFiles:
    """The files of one directory."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._world = World()

    def ids(self) -> Iterator[str]:
        """Return the ids that files are named by, in order."""
        names = (entry.name for entry in self._world.files.entries(self._directory) if entry.is_file)
        return (name.removesuffix(_SUFFIX) for name in sorted(names) if name.endswith(_SUFFIX))

    def admit(self, id: str, store: Store) -> None:
        """Store the session of the file of that id, if there is one, as it stands there.

        Raises `InvalidSessionFileException`; nothing is stored then.
        """
        path = self._path(id)
        if not self._world.files.is_file(path):
            return
        try:
            load_file(_value(path, self._read(path)), store, self._world, id)
        except SessionExists:
            return  # somebody was faster
        except SessionError as error:
            known = error.message.startswith("Missing or invalid")
            reason = error.message if known else f"Deserialization failed: {error.message}"
            raise InvalidSessionFileException(path, reason) from error

    def remove(self, id: str) -> None:
        """Remove the file of that id, if there is one."""
        if self._world.files.is_file(self._path(id)):
            self._world.files.remove(self._path(id))

    def _path(self, id: str) -> str:
        return posixpath.join(self._directory, f"{id}{_SUFFIX}")

    def _read(self, path: str) -> str:
        try:
            return self._world.files.read_text(path)
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidSessionFileException(path, "Failed to read file") from error


def _value(path: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidSessionFileException(path, "Invalid JSON") from error


# What a save has made of a session, for whoever asked for it. Spec: 10 §A3.3.


_SAVED: Final[ContextVar[AgentSession | None]] = ContextVar("saved", default=None)


def saved_by(save: Callable[[], object]) -> AgentSession:
    """Return the session that ``save`` stores: what was last given to `show` meanwhile."""
    token = _SAVED.set(None)
    try:
        save()
        saved = _SAVED.get()
        assert saved is not None, "each save asks the hooks of `after_save`"
        return saved
    finally:
        _SAVED.reset(token)


def show(session: AgentSession) -> None:
    """Have `saved_by` return this session."""
    _SAVED.set(session)


def shown() -> AgentSession | None:
    """Return what was given to `show`."""
    return _SAVED.get()


def show_saved(stage: str, session: Txn) -> None:
    """A hook that shows each session as it is stored."""
    if stage == hooks.AFTER_SAVE:
        show(value_of(session))


# Stores of sessions as values, and the repository over one. Spec: 10 §A3.2, §A3.7.


class HarnSessionStore:
    """Sessions on a store of harnpy's, or on the one that a URL names, as values."""

    #: How headers are listed; see `SessionQuery`.
    order = "id"

    def __init__(self, store: Store | str) -> None:
        self.runtime = SessionRuntime(store, hooks=show_saved, strict_ids=True)

    def create(self, session: AgentSession) -> AgentSession:
        """Store a new session as version 1. Raises `SessionExists`, `SessionConflict`."""
        return saved_by(lambda: self.runtime.create(self.unsaved(session)))

    def unsaved(self, session: AgentSession) -> Session:
        """Return a session of harnpy's that is this value and that no store has; that of a fork has its
        parent's log. Raises as `create` does."""
        id, parent = str(session.session_id), session.info.parent_id
        if self.exists(id):
            raise SessionExists(id, self.runtime.info(id).seq)
        if session.version:
            raise not_new(id, session.version)
        if session.seq and parent is not None and self.exists(parent):
            begin = unsaved_fork(self.runtime.open(parent, until=session.seq), id)
        else:
            begin = unsaved_session(id, World(), session.definition.facts(), parent)
        write_changes(begin, value_of(begin), session)
        return begin

    def save(self, session: AgentSession) -> AgentSession:
        """Store what the session differs in, if the store has the version that it was made of.

        Raises `SessionNotFound`, `SessionConflict`.
        """

        def save(txn: Txn) -> None:
            write_changes(txn, value_of(txn), session)

        id = str(session.session_id)
        self.admit(id)
        return saved_by(lambda: self.runtime.execute(id, save, expected_revision=session.version))

    def load(self, session_id: str) -> AgentSession | None:
        """Return a session, None if there is none of that id."""
        self.admit(session_id)
        try:
            return value_of(self.runtime.get(str(session_id)))
        except SessionNotFound:
            return None

    def exists(self, session_id: str) -> bool:
        self.admit(session_id)
        return self.runtime.exists(str(session_id))

    def delete(self, session_id: str) -> None:
        """Drop a session, if there is one."""
        with suppress(SessionNotFound):
            self.runtime.delete(str(session_id), hard=True)

    def list_headers(self) -> SessionInfoList:
        """Return the headers of all sessions. Raises `InvalidSessionFileException` if one can't be read."""
        query = SessionQuery(order=self.order, deleted=True)
        found: list[SessionInfo] = []
        while True:
            page = self.runtime.list(query)
            if page.errors:
                raise InvalidSessionFileException(*page.errors[0])
            found += page.items
            if page.next is None:
                return SessionInfoList(map(_header, found if self.order == "id" else reversed(found)))
            query = query._replace(after=page.next)

    def admit(self, session_id: str) -> None:
        """Take in a session of that id which lies beside the store, if there may be some."""

    def close(self) -> None:
        self.runtime.close()

    def __enter__(self) -> HarnSessionStore:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class InMemorySessionStore(HarnSessionStore):
    """Sessions that end with the process, listed in the order in which they were created."""

    order = "created"

    def __init__(self) -> None:
        super().__init__("memory:")


class FileSessionStore(HarnSessionStore):
    """A directory of logs, made if it isn't there, that processes may share.

    Cognesy's own files in it are taken in when they are asked for, and stay as they are.
    """

    def __init__(self, directory: str) -> None:
        try:
            super().__init__(f"jsonl:{directory}")
        except OSError as error:
            raise StorageError(f"Failed to create session store directory: {directory}") from error
        self._files = CognesyFiles(str(directory))

    def admit(self, session_id: str) -> None:
        if not self.runtime.exists(str(session_id)):
            self._files.admit(str(session_id), self.runtime.store)

    def delete(self, session_id: str) -> None:
        self._files.remove(str(session_id))
        super().delete(session_id)

    def list_headers(self) -> SessionInfoList:
        for id in self._files.ids():
            self.admit(id)
        return super().list_headers()


class SessionRepository:
    """The sessions of a store: one of harnpy's, or any other that keeps the rules of versions."""

    def __init__(self, store: CanStoreSessions) -> None:
        missing = [name for name in _METHODS if not callable(getattr(store, name, None))]
        if missing:
            raise TypeError(
                f"a store of sessions needs a method `{missing[0]}`, {type(store).__name__} has none"
            )
        self.store = store

    def create(self, session: AgentSession) -> AgentSession:
        return self.store.create(session)

    def save(self, session: AgentSession) -> AgentSession:
        return self.store.save(session)

    def load(self, session_id: str) -> AgentSession:
        """Return a session. Raises `SessionNotFound`."""
        found = self.store.load(session_id)
        if found is None:
            raise SessionNotFound(str(session_id))
        return found

    def exists(self, session_id: str) -> bool:
        return self.store.exists(session_id)

    def delete(self, session_id: str) -> None:
        self.store.delete(session_id)

    def list_headers(self) -> SessionInfoList:
        return self.store.list_headers()


_METHODS = ("create", "save", "load", "exists", "delete", "list_headers")


def _header(info: SessionInfo) -> AgentSessionInfo:
    return AgentSessionInfo(
        session_id=SessionId(info.id),
        agent_name=info.agent_name,
        agent_label=info.agent_label,
        created_at=datetime.fromisoformat(info.created_at),
        updated_at=datetime.fromisoformat(info.updated_at),
        parent_id=info.parent_id,
        status=SessionStatus(info.status),
        version=info.revision,
    )
