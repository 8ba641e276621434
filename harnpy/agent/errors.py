"""What goes wrong when an agent acts. Spec: 07 §6.7."""

from __future__ import annotations

from harnpy.faults import Interruption


class ToolFailure(Exception):
    """A tool raised; ``text`` is the error as the model reads it, without ``Error`` in front.

    ``category`` is one of the error categories of 07 §1.7, None when the error has none.
    """

    def __init__(self, text: str, category: str | None = None) -> None:
        super().__init__(text, category)
        self.text = text
        self.category = category

    def __str__(self) -> str:
        return self.text


def reason(error: BaseException) -> str:
    """Return an error's message, without its kind."""
    if isinstance(error, Interruption) and error.__cause__ is not None:
        error = error.__cause__
    return getattr(error, "message", None) or str(error)
