"""An editor at the other end of the Agent Client Protocol, made of the official client library."""

from __future__ import annotations

import asyncio
from typing import Any

from acp import schema

CLERK = """
tool count(part: string) -> string { return "40 of ${part}" }
tool wait() {
  println("to stdout")
  sleep(1h)
}

pub fn agent() {
  llm_mock({text: "", tool_calls: [{id: "c1", name: "count", arguments: {part: "bolts"}}]})
  llm_mock({text: "There are 40."})
  llm_mock({text: "", tool_calls: [{id: "c1", name: "wait", arguments: {}}]})
  return {model: "mock", options: {tool_format: "native", approval_policy: {require_approval: ["count"]}}}
}
"""


class Editor:
    """Remembers the updates, and answers each request for permission with ``choice``."""

    def __init__(self, choice: str = "allow_once") -> None:
        self.choice = choice
        self.updates: list[tuple[str, Any]] = []
        self.asked: list[str | None] = []
        self._news = asyncio.Event()

    def on_connect(self, agent: Any) -> None:
        self.agent = agent

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append((session_id, update))
        self._news.set()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> schema.RequestPermissionResponse:
        self.asked.append(tool_call.title)
        assert self.choice in [option.option_id for option in options]
        # The call is known before its permission is asked for.
        assert any(getattr(update, "tool_call_id", "") == tool_call.tool_call_id for _, update in self.updates)
        chosen = schema.AllowedOutcome(outcome="selected", option_id=self.choice)
        return schema.RequestPermissionResponse(outcome=chosen)

    def seen(self, session_id: str) -> list[tuple[str, str]]:
        """The updates of a session, each as its kind and what it says."""
        return [(update.session_update, _said(update)) for id, update in self.updates if id == session_id]

    async def until(self, said: str) -> None:
        """Wait for an update that says it."""
        while not any(said in _said(update) for _, update in self.updates):
            self._news.clear()
            await self._news.wait()


def _said(update: Any) -> str:
    if update.session_update == "session_info_update":
        return str(update.title)
    if not update.session_update.startswith("tool_call"):
        return str(update.content.text)
    shown = "".join(each.content.text for each in update.content or ())
    return " ".join(filter(None, (update.title, update.status, shown)))
