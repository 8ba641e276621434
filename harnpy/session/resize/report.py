"""What a resize did: the payload of the runtime event ``session_resized``. Spec: 10 §C8."""

from __future__ import annotations

from typing import Any, NamedTuple


class Size(NamedTuple):
    """How much a model is shown: messages, printed characters, estimated tokens."""

    messages: int
    length: int
    tokens: int


class ResizeReport(NamedTuple):
    """``stale``: a cut by somebody else came first, so this one was dropped. ``error``: the strategy failed.
    ``events`` counts those that it wrote; 0: nothing has changed."""

    session_id: str
    strategy: str
    before: Size
    after: Size
    events: int = 0
    stale: bool = False
    error: str | None = None

    @property
    def shrunk(self) -> bool:
        """Whether the window is smaller now, by its length."""
        return self.after.length < self.before.length

    def data(self) -> dict[str, Any]:
        """Return it as JSON."""
        facts: dict[str, Any] = {
            "session_id": self.session_id,
            "strategy": self.strategy,
            "before": self.before._asdict(),
            "after": self.after._asdict(),
            "shrunk": self.shrunk,
        }
        return facts | ({"stale": True} if self.stale else {}) | ({"error": self.error} if self.error else {})
