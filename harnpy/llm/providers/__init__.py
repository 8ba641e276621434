"""Who answers calls: one provider a module, behind one method. `mock` is the model citizen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from harnpy.llm.reply import Reply
    from harnpy.llm.request import Request


class Provider(Protocol):
    def complete(self, request: Request) -> Reply:
        """Answer a request. Raises `CallError`."""
