"""What dates refuse."""

from __future__ import annotations

from harnpy.faults import Fault


class DateError(Fault):
    """A date or a length of time that can't be had; the message begins with the builtin that was asked."""

    def message_from(self, builtin: str) -> str:
        return f"{builtin}: {self.message}"


class NoSuchDate(Fault):
    """A text or numbers that are no date."""
