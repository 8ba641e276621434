"""Actions: what `SessionRuntime.execute` does to a session, and sessions that no store has yet.

Spec: 10 §A3.5, §C3.2, §C7.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from harnpy.session import events as kinds
from harnpy.session.arguments import validate_session_id
from harnpy.session.codec import SessionCodec
from harnpy.session.cuts import Created
from harnpy.session.errors import InvalidArgument
from harnpy.session.events import Event, EventDraft, Origin
from harnpy.session.log import KIND, Session, why_forked
from harnpy.session.registers import ACTIVE, COMPLETED, DELETED, FAILED, SUSPENDED, TaskList
from harnpy.session.send import Send as Send
from harnpy.session.view import replay
from harnpy.storage.memory import MemoryStore, MemoryStream

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.session.registers import Task
    from harnpy.world import World

    Mode = Literal["atomic", "stream"]

# Actions: what `SessionRuntime.execute` does to a session. Spec: 10 §A3.5, §C7.
#
# An action is called with the session and writes to it. One of mode ``atomic`` is stored as a whole or not at
# all; one of mode ``stream`` stores what it appends as it goes on.


class Action(Protocol):
    """An object that `SessionRuntime.execute` carries out, as it does functions. Without a ``mode`` it is
    ``atomic``."""

    @property
    def name(self) -> str: ...

    def __call__(self, session: Any) -> Any: ...


@dataclass(frozen=True)
class _Status:
    """Changes the status. ``reason`` is for people."""

    name: ClassVar[str]
    status: ClassVar[str]
    reason: str | None = None

    def __call__(self, session: Session) -> None:
        session.set_status(self.status, self.reason)


class Suspend(_Status):
    """Lets nobody go on until `Resume`, as far as hooks care."""

    name, status = "suspend", SUSPENDED


class Resume(_Status):
    """Makes the session active, from any status but deleted."""

    name, status = "resume", ACTIVE


class Complete(_Status):
    """Says that the work is done."""

    name, status = "complete", COMPLETED


class Fail(_Status):
    """Says that the work can't be done."""

    name, status = "fail", FAILED


class Delete(_Status):
    """Hides the session from lists. Nothing else can become of it."""

    name, status = "delete", DELETED


@dataclass(frozen=True)
class Clear:
    """Empties window and history, and the execution status; registers stay."""

    name: ClassVar[str] = "clear"

    def __call__(self, session: Session) -> None:
        session.reset()


@dataclass(frozen=True)
class Fork:
    """Makes a session with this one's past: in the same store inside `execute`, else one that isn't saved."""

    name: ClassVar[str] = "fork"
    new_id: str | None = None
    label: str = ""
    reason: str = ""

    def __call__(self, session: Session) -> Session:
        from harnpy.session.transaction import Txn

        fork = session.fork if isinstance(session, Txn) else partial(unsaved_fork, session)
        return fork(self.new_id, label=self.label, reason=self.reason)


@dataclass(frozen=True)
class ChangeModel:
    """Sets the model of later turns; None is the default one."""

    name: ClassVar[str] = "change_model"
    config: Any = None

    def __call__(self, session: Session) -> None:
        session.set("model", self.config)


@dataclass(frozen=True)
class ChangeSystemPrompt:
    """Sets the system prompt of later turns."""

    name: ClassVar[str] = "change_system_prompt"
    text: str | None

    def __call__(self, session: Session) -> None:
        session.set("system_prompt", self.text)


@dataclass(frozen=True)
class WriteMetadata:
    """Sets one key of the metadata; None clears it."""

    name: ClassVar[str] = "write_metadata"
    key: str
    value: Any

    def __call__(self, session: Session) -> None:
        session.set(f"metadata.{self.key}", self.value)


@dataclass(frozen=True)
class UpdateTask:
    """Sets what the session is about, by a text (a blank one clears it), or its todo list, by a list.

    Raises TypeError for anything else, `InvalidArgument` for a list that breaks the rules (10 §A3.5).
    """

    name: ClassVar[str] = "update_task"
    task: str | TaskList | Iterable[Task | dict[str, Any]] = field()

    def __post_init__(self) -> None:
        if isinstance(self.task, str):
            return
        if not isinstance(self.task, list | tuple):
            raise TypeError(
                f"UpdateTask: expected a description or a task list, got {type(self.task).__name__}"
            )
        object.__setattr__(self, "task", TaskList.of(self.task))

    def __call__(self, session: Session) -> None:
        if isinstance(self.task, str):
            session.set_task(self.task)
        else:
            session.set_tasks(self.task)


def name_of(action: Any) -> str:
    """Return what an action is called. Raises TypeError for what can't be called."""
    if not callable(action):
        raise TypeError(f"an action must be callable with a session, got {type(action).__name__}")
    return str(getattr(action, "name", None) or getattr(action, "__name__", type(action).__name__))


def streams(action: Any) -> bool:
    """Return whether the action is of mode ``stream``. Raises ValueError for a mode that doesn't exist."""
    mode = getattr(action, "mode", "atomic")
    if mode not in ("atomic", "stream"):
        raise ValueError(f"the mode of an action is `atomic` or `stream`, not {mode!r}")
    return bool(mode == "stream")


# Sessions that no store has: making a fork of one, and storing one. Spec: 10 §C3.2, §A3.5.


def unsaved_session(
    id: str,
    world: World,
    facts: dict[str, Any] | None = None,
    parent: str | None = None,
    at: str | None = None,
) -> Session:
    """Return a new session that no store has. ``facts`` are what is known of its agent; a ``parent`` is
    named, and shares nothing. It begins now, or ``at`` a time (RFC 3339)."""
    above = None if parent is None else Origin(parent, world)
    session = Session.__new__(Session)._attach(Origin(id, world, above), MemoryStore().stream(KIND, id))
    session.saves = None
    session.write(EventDraft(kinds.SESSION_CREATED, Created(above, facts=facts), timestamp=at))
    return session


def unsaved_fork(session: Session, id: str | None = None, *, label: str = "", reason: str = "") -> Session:
    """Return a fork of ``session`` that no store has."""
    id = session.origin.world.ids.new() if id is None else id
    validate_session_id(id)
    if not session.is_stored:
        return session.fork(id, label=label, reason=reason)
    origin = Origin(id, session.origin.world, session.origin, session.version)
    point = session.event(session.version)
    created = Created(session.origin, point.seq, point, session.agent_facts() | why_forked(label, reason))
    first = Event(origin, 1, kinds.SESSION_CREATED, created, max(session.clock.now(), session.moment))
    events = [first, *session.stream.read(1, point.seq)]
    stream = MemoryStore().stream(KIND, id)
    stream.append(events, 0)
    fork = Session.__new__(Session)._attach(origin, stream, replay(events), point.moment)
    fork.saves = None
    return fork


def unsaved_copy(session: Session, stream: MemoryStream | None = None) -> Session:
    """Return a session of the same id and log that no store has: what is appended to it isn't stored.
    Its log is in ``stream``, which is empty, if one is given."""
    was = session.origin
    origin = Origin(session.id, was.world, was.parent, was.shared)
    stream = MemoryStore().stream(KIND, session.id) if stream is None else stream
    events = log_of(session, origin)
    stream.append(events, 0)
    copy = Session.__new__(Session)._attach(origin, stream, replay(events), session.moment)
    copy.saves = None
    return copy


def origin_of(session: Session, world: World) -> Origin:
    """Return the origin that a session has once it is stored.

    Raises `InvalidArgument` for one that has been saved.
    """
    if session.saves is not None:
        raise InvalidArgument(f"session '{session.id}' is saved already: open it, or fork it", session.id)
    return Origin(session.id, world, session.origin.parent, session.origin.shared)


def log_of(session: Session, origin: Origin) -> list[Event]:
    """Return copies of a session's events, as ``origin``'s."""
    codec = SessionCodec(origin)
    return codec.decode(codec.encode(list(session.stream.read())))
