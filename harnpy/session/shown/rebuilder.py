"""What a model is shown of a session, naming so many files. Spec: 10 §A1.8, §C5."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.session.shown.entries import FILES_LIMIT

if TYPE_CHECKING:
    from harnpy.session.log import Session
    from harnpy.session.shown.entries import HistoryEntry


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
