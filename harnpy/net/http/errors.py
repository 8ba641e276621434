"""What a program is told when there is no response. Spec: 04 §21.1."""

from __future__ import annotations

from harnpy.faults import Fault


class HttpError(Fault):
    """A request that can't be made as it was asked for."""


class RequestFailed(HttpError):
    """A request that got no complete response; ``category`` is the one that its message suggests."""

    def __init__(self, category: str, detail: str) -> None:
        super().__init__(f"http: request failed: {detail}")
        self.category = category
