"""What a session refuses, as one tree with stable codes. Spec: 10 §C11; texts of the verbs: 08 §1.

    SessionError                       .code, .session_id
    ├─ SessionNotFound [not_found]
    ├─ SessionConflict [version_conflict]      .expected, .found
    │  └─ SessionExists [exists]
    ├─ InvalidArgument [invalid]               .verb
    ├─ InvalidTranscript [invalid]
    └─ ResizeError [resize]

An error raised by a verb names the verb, as scripts see it. All of them pickle.
"""

from __future__ import annotations

from typing import ClassVar

from harnpy.faults import Fault, MisuseError


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


class SessionNotFound(SessionError):
    """No session has that id. ``verb`` is the builtin that was asked, if one was."""

    code = "not_found"

    def __init__(self, session_id: str, verb: str | None = None) -> None:
        text = f"{verb}: unknown session id '{session_id}'" if verb else f"Session not found: '{session_id}'"
        super().__init__(text, session_id)
        self.verb = verb


class SessionConflict(SessionError):
    """Somebody else appended first."""

    code = "version_conflict"

    def __init__(self, session_id: str, expected: int, found: int) -> None:
        super().__init__(
            f"Version conflict for session '{session_id}': expected {expected}, found {found}", session_id
        )
        self.expected = expected
        self.found = found


class SessionExists(SessionConflict):
    """A session that should be new is there already."""

    code = "exists"

    def __init__(self, session_id: str, found: int) -> None:
        super().__init__(session_id, 0, found)
        self.message = f"Session already exists: '{session_id}'"


class InvalidArgument(SessionError):
    """A verb was given something that it can't use: ``<verb>: <what is wrong>``."""

    code = "invalid"

    def __init__(self, verb: str, problem: str, session_id: str | None = None) -> None:
        super().__init__(f"{verb}: {problem}", session_id)
        self.verb = verb


class InvalidTranscript(SessionError):
    """A value that should be a transcript, or a part of one, isn't."""

    code = "invalid"


class ResizeError(SessionError, MisuseError):
    """A compaction can't be carried out as asked."""

    code = "resize"
