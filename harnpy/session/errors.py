"""The errors of sessions, as one tree with stable codes. Spec: 10 §C11; texts of the verbs: 08 §1.

    SessionError                       .code, .session_id
    ├─ Refusal                                 .problem, .verb
    │  ├─ SessionNotFound [not_found]
    │  ├─ InvalidSessionId [invalid_id]
    │  ├─ NotController [not_controller]       .controller
    │  └─ InvalidArgument [invalid]
    ├─ SessionConflict [version_conflict]      .kind, .expected, .found
    │  └─ SessionExists [exists]
    ├─ InvalidTranscript [invalid]
    ├─ EventNotFound [event_not_found]
    ├─ RewindError [rewind]
    ├─ InvalidTransition [transition]
    ├─ SessionReadOnly [read_only]
    ├─ SessionBusy [busy]
    ├─ LaneTimeout, ExecutionTimeout [timeout]
    ├─ LaneFull [lane_full]
    ├─ AgentError [agent]
    ├─ ChildError [child]
    │  ├─ ChildNotFound [not_found]
    │  └─ ChildTimeout [timeout]
    ├─ ToolAmbiguous [tool_ambiguous]
    ├─ EventRejected [event_rejected]          .what, .pointer
    ├─ EventDecodeError [decode]
    ├─ BudgetExceeded [budget]
    ├─ ApprovalError [approval]
    │  └─ ApprovalDenied                       .reason
    ├─ SessionLeased [lease_held]
    ├─ ObserverError [observer]                .events
    ├─ ArtifactError [artifact]
    │  ├─ ArtifactNotFound, InvalidArtifactId
    │  └─ ArtifactCorrupt
    ├─ TransferError [format]
    │  └─ TransferTypeError
    └─ ResizeError [resize]

A verb refuses without naming itself, and the methods of the registry add the name of the builtin; only the
verbs of the hot path name it themselves. All of them pickle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from harnpy.faults import Fault, MisuseError

if TYPE_CHECKING:
    from collections.abc import Sequence


class SessionError(Fault):
    """A session call failed and changed nothing."""

    code: ClassVar[str] = "session"

    def __init__(self, message: str, session_id: str | None = None) -> None:
        super().__init__(message)
        self.session_id = session_id

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[SessionError], args: tuple[object, ...], state: dict[str, object]) -> SessionError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class Refusal(SessionError):
    """A verb can't do what it was asked. It doesn't know which builtin was called until `name` says so."""

    def __init__(self, problem: str, session_id: str | None = None, verb: str | None = None) -> None:
        super().__init__(problem, session_id)
        self.problem = problem
        self.verb: str | None = None
        if verb is not None:
            self.name(verb)

    def name(self, verb: str) -> None:
        """Put the builtin's name in front, unless the refusal has one."""
        if self.verb is None:
            self.verb = verb
            self.message = f"{verb}: {self.problem}"

    def message_from(self, builtin: str) -> str:
        return self.message if self.verb is not None else f"{builtin}: {self.problem}"


class SessionNotFound(Refusal):
    """No session has that id."""

    code = "not_found"

    def __init__(self, session_id: str, verb: str | None = None) -> None:
        super().__init__(f"unknown session id '{session_id}'", session_id)
        self.message = f"Session not found: '{session_id}'"
        if verb is not None:
            self.name(verb)


class SessionConflict(SessionError):
    """Somebody else appended first."""

    code = "version_conflict"

    def __init__(self, session_id: str, expected: int, found: int, kind: str = "version") -> None:
        """``kind``: what was compared, ``version`` (events) or ``revision`` (saves)."""
        what = "" if kind == "version" else f"{kind} "
        super().__init__(
            f"Version conflict for session '{session_id}': expected {what}{expected}, found {found}",
            session_id,
        )
        self.kind = kind
        self.expected = expected
        self.found = found


class SessionExists(SessionConflict):
    """A session that should be new is there already."""

    code = "exists"

    def __init__(self, session_id: str, found: int) -> None:
        super().__init__(session_id, 0, found)
        self.message = f"Session already exists: '{session_id}'"


class InvalidArgument(Refusal):
    """A verb was given something that it can't use."""

    code = "invalid"


class InvalidTranscript(SessionError):
    """A value that should be a transcript, or a part of one, isn't."""

    code = "invalid"


class EventRejected(SessionError, ValueError):
    """An event can't be appended. ``what`` is wrong at ``pointer``, a JSON pointer into the value."""

    code = "event_rejected"
    what = ""
    pointer: str | None = None
    #: The argument of the builtin that brought it.
    argument = "message"

    @classmethod
    def not_json(cls, part: str, what: str, pointer: str) -> EventRejected:
        """The rejection of a value that isn't JSON. ``part``: ``data`` or ``metadata``."""
        place = f" at {pointer}" if pointer else ""
        error = cls(f"session append: {part} is not JSON: {what}{place}")
        error.what, error.pointer = what, pointer
        return error

    def message_from(self, builtin: str) -> str:
        if self.pointer is None:
            return f"{builtin}: {self.message}"
        return f"{builtin}: `{self.argument}` must be JSON-serializable"


class EventDecodeError(SessionError):
    """The data of an event isn't what its type says."""

    code = "decode"

    def __init__(self, type: str, event_id: str, problem: str, session_id: str) -> None:
        super().__init__(f"decode {type} event {event_id}: {problem}", session_id)


class BudgetExceeded(SessionError):
    """A turn has cost, or used, as much as it may."""

    code = "budget"


class ApprovalError(SessionError):
    """An approval isn't asked for, or not given."""

    code = "approval"


class ApprovalDenied(ApprovalError):
    """A tool may not be called."""

    def __init__(self, reason: str, session_id: str) -> None:
        super().__init__(f"approval denied: {reason}" if reason else "approval denied", session_id)
        self.reason = reason


class InvalidSessionId(Refusal, ValueError):
    """A store can't keep a session of that id."""

    code = "invalid_id"

    def __init__(self, session_id: str) -> None:
        # A lone surrogate can't be printed or stored, here neither.
        shown = str(session_id).encode("utf-8", "backslashreplace").decode()
        super().__init__(f"invalid session id '{shown}'", shown)
        self.message = f"Invalid session ID: {shown}"


class NotController(Refusal):
    """A client can't do what only the one may that controls the session."""

    code = "not_controller"

    def __init__(self, problem: str, session_id: str, controller: str) -> None:
        super().__init__(problem, session_id)
        self.controller = controller


class _Busy(SessionError):
    """Somebody else has the session. Programs catch a dict of the category ``busy``."""

    def caught_from(self, builtin: str) -> object:
        return {"category": "busy", "code": self.code, "message": self.message, "session_id": self.session_id}


class SessionLeased(_Busy):
    """Another process drives the session."""

    code = "lease_held"


class EventNotFound(SessionError):
    """The session has no such event."""

    code = "event_not_found"

    def __init__(self, event_id: str, session_id: str) -> None:
        super().__init__(f"Event not found in session '{session_id}': '{event_id}'", session_id)


class RewindError(SessionError):
    """There are too few turns to take back, or there is nothing to redo."""

    code = "rewind"


class InvalidTransition(SessionError):
    """A session of this status can't get that one."""

    code = "transition"

    def __init__(self, session_id: str, former: str, status: str) -> None:
        super().__init__(f"cannot change session '{session_id}' from {former} to {status}", session_id)

    @classmethod
    def inactive(cls, session_id: str, status: str) -> InvalidTransition:
        """The refusal of a turn on a session that isn't active."""
        error = cls(session_id, status, status)
        error.message = f"session '{session_id}' is {status}: resume it first"
        return error


class SessionReadOnly(SessionError):
    """The session was opened as it stood after an event, and the past doesn't change; or it is saved, and
    the action is over."""

    code = "read_only"

    def __init__(self, session_id: str, seq: int) -> None:
        super().__init__(
            f"session '{session_id}' was opened as it stood at event {seq}: it can be read and forked, "
            "not changed",
            session_id,
        )

    @classmethod
    def saved(cls, session_id: str) -> SessionReadOnly:
        """The refusal of what a hook writes behind the save."""
        error = cls(session_id, 0)
        error.message = f"session '{session_id}' is saved: this action can't write to it any more"
        return error


class SessionBusy(_Busy):
    """A turn is open, or an action runs."""

    code = "busy"


class LaneTimeout(_Busy, TimeoutError):
    """Others worked on the session all the time that an action waited for it."""

    code = "timeout"

    def __init__(self, session_id: str, seconds: float) -> None:
        super().__init__(
            f'wait for session "{session_id}" execution slot timed out after {seconds:g}s', session_id
        )


class ExecutionTimeout(SessionError, TimeoutError):
    """An agent has taken as long as it may."""

    code = "timeout"

    def __init__(self, session_id: str, seconds: float) -> None:
        super().__init__(f"agent execution timed out after {seconds:g}s", session_id)


class LaneFull(_Busy):
    """Too many wait for the session already."""

    code = "lane_full"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session lane {session_id} is full", session_id)


class ObserverError(SessionError):
    """An observer failed. ``events`` are stored, and everybody else was told of them.

    A copy that was pickled has dicts instead, with what was written (``id``, ``seq``, ``type``, ``data``).
    """

    code = "observer"

    def __init__(self, session_id: str, events: Sequence[Any], failure: Exception) -> None:
        where = f"event {events[0].seq}" if len(events) == 1 else f"events {events[0].seq}-{events[-1].seq}"
        reason = str(failure) or type(failure).__name__
        super().__init__(
            f"an observer of session '{session_id}' failed, {where} is stored: {reason}", session_id
        )
        self.events: list[Any] = list(events)

    def __reduce__(self) -> tuple[object, ...]:
        shown = [event if isinstance(event, dict) else _written(event) for event in self.events]
        return _restored, (type(self), self.args, {**self.__dict__, "events": shown})


def _written(event: Any) -> dict[str, Any]:
    return {"id": event.id, "seq": event.seq, "type": event.type, "data": event.data}


class ArtifactError(SessionError):
    """An artifact isn't as it should be. ``artifact_id`` is its id."""

    code = "artifact"

    def __init__(self, message: str, artifact_id: str) -> None:
        super().__init__(message)
        self.artifact_id = artifact_id


class ArtifactNotFound(ArtifactError):
    """The store has no such artifact."""

    def __init__(self, artifact_id: str) -> None:
        super().__init__(f'artifact file store: no artifact "{artifact_id}"', artifact_id)


class InvalidArtifactId(ArtifactError):
    """An id that can't name a file."""

    def __init__(self, artifact_id: str) -> None:
        super().__init__(f'artifact file store: invalid artifact id "{artifact_id}"', artifact_id)


class ArtifactCorrupt(ArtifactError):
    """A body isn't the one that was stored."""

    def __init__(self, artifact_id: str, expected: str, found: str) -> None:
        super().__init__(
            f'artifact file store: artifact "{artifact_id}" has digest {found}, '
            f"its descriptor says {expected}",
            artifact_id,
        )


class AgentError(SessionError):
    """An agent gave what is no answer, or used its turn in a way that doesn't work."""

    code = "agent"


class ChildError(SessionError):
    """Something can't be done to a child as it is."""

    code = "child"


class ChildNotFound(ChildError):
    """The parent's log, or the runtime, knows of no such child."""

    code = "not_found"


class ChildTimeout(ChildError, TimeoutError):
    """A child hasn't ended in the time that somebody waited for it. It goes on."""

    code = "timeout"


class ToolAmbiguous(SessionError):
    """A call of a tool began and has no end: it may or may not have run."""

    code = "tool_ambiguous"

    def __init__(self, key: str, session_id: str) -> None:
        super().__init__(ambiguous(key), session_id)
        self.key = key


def ambiguous(key: str) -> str:
    """Return what a model is told of a call that began and has no end."""
    return f'acrfence: prior tool execution for key "{key}" started but did not complete'


class TransferError(SessionError, ValueError):
    """A text or a file can't be read as a session."""

    code = "format"


class TransferTypeError(TransferError, TypeError):
    """A part of a file has the wrong type."""


class ResizeError(SessionError, MisuseError):
    """A compaction can't be carried out as asked."""

    code = "resize"
