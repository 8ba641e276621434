"""The payload of ``tool_started``. Spec: 10 §A1.2, §A1.13."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.session.events import Payload
from harnpy.text.json.compact import compact_json

if TYPE_CHECKING:
    from harnpy.session.events import Event


class ToolStarted(Payload):
    """A call that is made: its arguments are turned into text when somebody asks for them.

    ``parallel``: it runs beside others, and is settled after all of them have ended. ``place`` is the id
    of the assistant's message that asks for it and the call's number there.
    """

    __slots__ = ("arguments", "id", "parallel", "place", "tool")

    def __init__(
        self,
        tool: str,
        arguments: dict[str, Any],
        id: str | None,
        parallel: bool = False,
        place: tuple[Event, int] | None = None,
    ) -> None:
        self.tool = tool
        self.arguments = arguments
        self.id = id
        self.parallel = parallel
        self.place = place

    def data(self, event: Event) -> dict[str, Any]:
        args = compact_json(self.arguments)
        started: dict[str, Any] = {"tool": self.tool, "args": args, "id": self.id}
        if self.place is not None:
            message, number = self.place
            key = tool_key(event.owner.id, event.owner.own(message).id, self.tool, number, args)
            started["idempotency_key"] = key
        return {**started, "parallel": True} if self.parallel else started

    def stored(self, event: Event) -> dict[str, Any]:
        return self.data(event)


def tool_key(session_id: str, message_id: str, tool: str, number: int, args: str) -> str:
    """Return the key that a call has in every attempt to make it; the provider's id isn't part of it."""
    from hashlib import sha256

    digest = sha256(args.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{session_id}:{message_id}:{tool}:{number}:{digest}"
