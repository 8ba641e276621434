"""Exceptions by their names there. Spec: 10 §A3.2, §A3.7, §C11."""

from harnpy.session.errors import SessionConflict, SessionNotFound
from harnpy.storage.errors import CorruptLog

SessionNotFoundException = SessionNotFound
SessionConflictException = SessionConflict
InvalidSessionFileException = CorruptLog


def not_new(session_id: str, version: int) -> SessionConflict:
    """Return the refusal to create a session that has been saved."""
    error = SessionConflict(session_id, 0, version, kind="revision")
    error.message = f"Cannot create session '{session_id}' with non-zero version {version}"
    return error
