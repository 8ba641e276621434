"""Cognesy's names: a runtime that loads a session, has an action change it, and saves it.

Spec: 10 §A3, §B2.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from harnpy.faces import cognesy_sessions
from harnpy.faces.cognesy_sessions import *  # noqa: F403
from harnpy.faces.cognesy_sessions import (
    AgentDefinition,
    AgentSession,
    AgentSessionInfo,
    AgentSessionStage,
    AgentState,
    CanControlAgentSession,
    CanExecuteSessionAction,
    EventDispatcher,
    HarnSessionStore,
    InMemorySessionStore,
    SessionFactory,
    SessionInfoList,
    SessionRepository,
    forked,
    saved_by,
    show,
    shown,
    value_of,
    write_changes,
)
from harnpy.session import actions, hooks
from harnpy.session.registers import Task, TaskList
from harnpy.session.runtime import SessionRuntime as HarnpyRuntime
from harnpy.session.send import Send

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.faces.cognesy_loops import AgentCapabilityRegistry, DefinitionLoopFactory, UseBash
    from harnpy.session.transaction import Txn

__all__ = [
    "AgentCapabilityRegistry", "ChangeModel", "ChangeSystemPrompt", "ClearSession",
    "DefinitionLoopFactory", "ForkSession", "PassThroughSessionController", "ResumeSession",
    "SendMessage", "SessionHookStack", "SessionRuntime", "SuspendSession", "UpdateTask", "UseBash",
    "WriteMetadata",
]  # fmt: skip
__all__ += cognesy_sessions.__all__

# Controllers: what may change a session at each stage of an action. Spec: 10 §A3.4.


class PassThroughSessionController:
    """Changes nothing."""

    def on_stage(self, stage: AgentSessionStage, session: AgentSession) -> AgentSession:
        return session


class SessionHookStack:
    """Controllers in the order in which they are asked, each with what the one before gave. Immutable."""

    def __init__(self) -> None:
        self._entries: tuple[tuple[int, str, CanControlAgentSession], ...] = ()

    @classmethod
    def empty(cls) -> SessionHookStack:
        return cls()

    def with_(
        self, hook: CanControlAgentSession, priority: int = 0, name: str | None = None
    ) -> SessionHookStack:
        """Return a stack with one controller more: before those of a lower priority, behind those of the
        same. ``name`` is for people."""
        stack = SessionHookStack()
        entries = [*self._entries, (priority, name or type(hook).__name__, hook)]
        stack._entries = tuple(sorted(entries, key=lambda entry: -entry[0]))
        return stack

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for _, name, _ in self._entries)

    def on_stage(self, stage: AgentSessionStage, session: AgentSession) -> AgentSession:
        for _, _, hook in self._entries:
            session = hook.on_stage(stage, session)
        return session


# Running a turn on a value that no runtime has.


def tried(session: AgentSession, action: Send) -> AgentSession:
    """Return the session with the messages and the state that the turn leaves."""
    with InMemorySessionStore() as store:
        store.create(replace(session, info=session.info.with_(version=0)))
        state = saved_by(lambda: store.runtime.execute(str(session.session_id), action)).state
    return session.with_state(replace(state, execution_count=session.state.execution_count + 1))


# Actions: objects whose ``execute_on`` takes a session and returns what it becomes. Spec: 10 §A3.5.


class SendMessage(Send):
    """Appends a user's message (a text, what has one, or a message) and runs the agent of ``loop_factory``,
    one that `SessionRuntime.send` takes."""

    name: ClassVar[str] = "SendMessage"

    def __init__(self, message: Any, loop_factory: Any) -> None:
        super().__init__(message if isinstance(message, dict) else str(message), loop_factory)

    def execute_on(self, session: AgentSession) -> AgentSession:
        """Return the session with what was said. Only the messages and the state tell of the run."""
        return tried(session, self)


class SuspendSession:
    def execute_on(self, session: AgentSession) -> AgentSession:
        return session.suspended()


class ResumeSession:
    def execute_on(self, session: AgentSession) -> AgentSession:
        return session.resumed()


class ClearSession:
    """Drops the messages; identity, definition, metadata, prompt and model stay."""

    def execute_on(self, session: AgentSession) -> AgentSession:
        return session.with_state(session.state.with_messages(()).for_next_execution())


class ForkSession:
    """Makes a session that isn't stored. It is for use outside `SessionRuntime.execute`."""

    def __init__(self, new_id: str | None = None) -> None:
        self._new_id = new_id

    def execute_on(self, session: AgentSession) -> AgentSession:
        return forked(session, self._new_id)


class ChangeSystemPrompt:
    """``text`` may be anything that has a text."""

    def __init__(self, text: object) -> None:
        self._text = str(text)

    def execute_on(self, session: AgentSession) -> AgentSession:
        return session.with_state(session.state.with_system_prompt(self._text))


class ChangeModel:
    """None is the default model."""

    def __init__(self, config: Any = None) -> None:
        self._config = config

    def execute_on(self, session: AgentSession) -> AgentSession:
        return session.with_state(session.state.with_llm_config(self._config))


class WriteMetadata:
    def __init__(self, key: str, value: Any) -> None:
        self._key = key
        self._value = value

    def execute_on(self, session: AgentSession) -> AgentSession:
        return session.with_state(session.state.with_metadata(self._key, self._value))


class UpdateTask:
    """Sets what the session is about, by a text, or its todo list, by a list. Raises TypeError,
    `InvalidArgument`."""

    def __init__(self, task: str | Iterable[Task | dict[str, Any]]) -> None:
        checked = actions.UpdateTask(task).task
        self._key = "task" if isinstance(checked, str) else "tasks"
        self._value = checked if isinstance(checked, str) else TaskList.of(checked).data()

    def execute_on(self, session: AgentSession) -> AgentSession:
        return session.with_state(session.state.with_metadata(self._key, self._value))


# Actions on sessions of a store that isn't harnpy's: it keeps values, so the steps are taken on those.
#
# Nobody waits for anybody there: who saves an old version gets what that store raises. Spec: 10 §A3.3.


class ValueSaves:
    """Loads sessions, and carries out actions on them."""

    def __init__(
        self, repository: SessionRepository, events: EventDispatcher, controller: CanControlAgentSession
    ) -> None:
        self._repository = repository
        self._events = events
        self._ask = controller.on_stage

    def load(self, id: str) -> AgentSession:
        """Return a session as the controller makes it `AFTER_LOAD`. Nothing is stored."""
        with self._events.failure(hooks.LOAD_FAILED, id):
            session = self._ask(AgentSessionStage.AFTER_LOAD, self._repository.load(id))
            self._events.emit(hooks.LOADED, _facts(session))
            return session

    def execute(self, id: str, action: CanExecuteSessionAction) -> AgentSession:
        """Return what was saved, as the controller makes it `AFTER_SAVE`."""
        loaded = self.load(id)
        session = self._ask(AgentSessionStage.AFTER_ACTION, action.execute_on(loaded))
        session = self._ask(AgentSessionStage.BEFORE_SAVE, session)
        executed: dict[str, Any] = {"session_id": id, "action": type(action).__name__}
        executed |= {"before_revision": loaded.version, "before_status": str(loaded.status)}
        executed |= {"after_revision": session.version + 1, "after_status": str(session.status)}
        self._events.emit(hooks.EXECUTED, executed)
        with self._events.failure(hooks.SAVE_FAILED, id):
            session = self._ask(AgentSessionStage.AFTER_SAVE, self._repository.save(session))
            self._events.emit(hooks.SAVED, _facts(session))
            return session

    def create(self, session: AgentSession) -> AgentSession:
        """Store a session of version 0."""
        with self._events.failure(hooks.SAVE_FAILED, str(session.session_id)):
            session = self._ask(AgentSessionStage.BEFORE_CREATE, session)
            session = self._ask(AgentSessionStage.BEFORE_SAVE, session)
            session = self._ask(AgentSessionStage.AFTER_SAVE, self._repository.create(session))
            session = self._ask(AgentSessionStage.AFTER_CREATE, session)
            self._events.emit(hooks.SAVED, _facts(session))
            return session

    def close(self) -> None:
        """There is nothing to close."""


def _facts(session: AgentSession) -> dict[str, Any]:
    facts = {"revision": session.version, "seq": session.seq, "status": str(session.status)}
    return {"session_id": str(session.session_id), **facts}


# Actions on sessions of harnpy's: the pipeline's steps, with values around each. Spec: 10 §A3.3, §C7.


#: Behind these stages nothing can be written any more.
_SAVED = (AgentSessionStage.AFTER_SAVE, AgentSessionStage.AFTER_CREATE)


class LogSaves:
    """Carries out actions: what they, and the controller, give back is written as events."""

    def __init__(
        self,
        store: HarnSessionStore,
        events: EventDispatcher,
        controller: CanControlAgentSession,
        options: dict[str, Any],
    ) -> None:
        self._store = store
        self._controller = controller
        given = {"strict_ids": True, **options}
        self._runtime = HarnpyRuntime(store.runtime.store, hooks=self._ask, events=events, **given)

    def execute(self, id: str, action: CanExecuteSessionAction) -> AgentSession:
        """Return what was saved. A turn is written as it goes on."""
        self._store.admit(id)
        act = action if isinstance(action, Send) else _Acting(action)
        return saved_by(lambda: self._runtime.execute(id, act))

    def create(self, session: AgentSession) -> AgentSession:
        """Store a session of version 0."""
        return saved_by(lambda: self._runtime.create(self._store.unsaved(session)))

    def close(self) -> None:
        self._runtime.close()

    def _ask(self, name: str, session: Txn) -> None:
        """The hook: ask the controller, and write what it changes."""
        stage = AgentSessionStage(name)
        if stage not in _SAVED:
            if not isinstance(self._controller, PassThroughSessionController):
                value = value_of(session)
                write_changes(session, value, self._controller.on_stage(stage, value))
            return
        value = (shown() if stage is AgentSessionStage.AFTER_CREATE else None) or value_of(session)
        show(self._controller.on_stage(stage, value))


class _Acting:
    """An action on values, as one on a session of harnpy's."""

    def __init__(self, action: CanExecuteSessionAction) -> None:
        self._action = action
        self.name = type(action).__name__

    def __call__(self, session: Txn) -> None:
        value = value_of(session)
        write_changes(session, value, self._action.execute_on(value))


# The runtime: loads a session, has an action act on it, saves what it became. Spec: 10 §A3.3.


class SessionRuntime:
    """The sessions of a repository, with a controller at each stage and events on what is done.

    ``options`` are those of `harnpy.session.SessionRuntime`, for a repository on a store of harnpy's.
    """

    def __init__(
        self,
        repository: SessionRepository,
        events: EventDispatcher | None = None,
        controller: CanControlAgentSession | None = None,
        **options: Any,
    ) -> None:
        events = EventDispatcher() if events is None else events
        controller = PassThroughSessionController() if controller is None else controller
        self._repository = repository
        self._values = ValueSaves(repository, events, controller)
        self._saves: LogSaves | ValueSaves = self._values
        if isinstance(repository.store, HarnSessionStore):
            self._saves = LogSaves(repository.store, events, controller, options)

    def list_sessions(self) -> SessionInfoList:
        """Return the headers of all sessions."""
        return self._repository.list_headers()

    def get_session_info(self, session_id: str) -> AgentSessionInfo:
        """Return the header of `get_session`."""
        return self.get_session(session_id).info

    def get_session(self, session_id: str) -> AgentSession:
        """Return a session, as the controller makes it `AFTER_LOAD`. Nothing is stored.

        Raises `SessionNotFound`, and what the controller raises.
        """
        return self._values.load(str(session_id))

    def execute(self, session_id: str, action: CanExecuteSessionAction) -> AgentSession:
        """Have an action act on a session. Return what was saved, as the controller makes it `AFTER_SAVE`.

        Raises `SessionNotFound`, `SessionConflict`, and what the action or the controller raises.
        """
        if not callable(getattr(action, "execute_on", None)):
            raise TypeError(f"an action needs a method `execute_on`, {type(action).__name__} has none")
        return self._saves.execute(str(session_id), action)

    def create(self, definition: AgentDefinition, seed: AgentState | None = None) -> AgentSession:
        """Store a new session of an agent, and return it."""
        return self._saves.create(SessionFactory().create(definition, seed))

    def close(self) -> None:
        """End the runtime. The repository's store stays open."""
        self._saves.close()

    def __enter__(self) -> SessionRuntime:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def __getattr__(name: str) -> object:
    """Loops need models and tools: their module is imported when it is first used."""
    if name not in ("AgentCapabilityRegistry", "DefinitionLoopFactory", "UseBash"):
        raise AttributeError(f"module 'harnpy.faces.cognesy' has no attribute {name!r}")
    from harnpy.faces import cognesy_loops

    found: object = getattr(cognesy_loops, name)
    return found
