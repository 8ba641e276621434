"""An editor at the other end of the Agent Client Protocol, made of the official client library."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from acp import PROTOCOL_VERSION, RequestError, connect_to_agent, schema

from harnpy import Vm
from harnpy.serve.acp import AcpAgent, serve_acp
from harnpy.serve.agents import Agents
from harnpy.session.aio import AsyncSessionRuntime
from harnpy.storage.memory import MemoryStore
from harnpy.world import World

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
    """Remembers updates, answers requests for permission with ``choice``, and forms with ``typed``."""

    def __init__(self, choice: str = "allow_once", typed: str | None = None) -> None:
        self.choice = choice
        self.typed = typed
        self.updates: list[tuple[str, Any]] = []
        self.asked: list[str | None] = []
        self.offered: list[str] = []
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
        self.offered = [option.name for option in options]
        chosen = schema.AllowedOutcome(outcome="selected", option_id=self.choice)
        return schema.RequestPermissionResponse(outcome=chosen)

    async def create_elicitation(self, message: str, mode: Any, **_: Any) -> Any:
        self.asked.append(message)
        return schema.AcceptElicitationResponse(action="accept", content={"answer": self.typed})

    def seen(self, session_id: str) -> list[tuple[str, str]]:
        """The updates of a session, each as its kind and what it says."""
        return [(update.session_update, _said(update)) for id, update in self.updates if id == session_id]

    async def until(self, said: str, sessions: int = 1) -> None:
        """Wait for an update that says it, in so many sessions."""
        while len({id for id, update in self.updates if said in _said(update)}) < sessions:
            self._news.clear()
            await self._news.wait()


def _said(update: Any) -> str:
    if update.session_update == "session_info_update":
        return str(update.title)
    if update.session_update == "plan":
        return ", ".join(f"{entry.content} {entry.status}" for entry in update.entries)
    if not update.session_update.startswith("tool_call"):
        return str(update.content.text)
    shown = "".join(each.content.text for each in update.content or ())
    return " ".join(filter(None, (update.title, update.status, shown)))


class Desk:
    """An agent in this process, and the editor that it serves."""

    def __init__(self, editor: Editor, agent: Any, runtime: AsyncSessionRuntime, cwd: str) -> None:
        self.editor = editor
        self.agent = agent
        self.runtime = runtime
        self.cwd = cwd

    async def session(self, **given: Any) -> str:
        begun = await self.agent.new_session(**{"cwd": self.cwd, "mcp_servers": [], **given})
        return str(begun.session_id)

    async def refused(self, request: Any) -> tuple[int, str]:
        """The error that a request is answered with."""
        try:
            await request
        except RequestError as error:
            return error.code, str(error)
        raise AssertionError("it was not refused")


@asynccontextmanager
async def desk(
    source: str, directory: Path, editor: Editor | None = None, new_vm: Callable[[str], Vm] | None = None
) -> AsyncIterator[Desk]:
    """An agent of the source in ``directory``, served over a pair of sockets."""
    file = directory / "clerk.harn"
    file.write_text(source)
    editor, store = editor or Editor(), MemoryStore()
    ours, theirs = socket.socketpair()
    reader, writer = ours.makefile("rb"), ours.makefile("wb")
    more: Any = {} if new_vm is None else {"new_vm": new_vm}
    async with (
        Agents([str(file)], store, **more) as agents,
        AsyncSessionRuntime(store, agents=agents.loops) as runtime,
    ):
        agent = AcpAgent(agents, runtime, World(), os.chdir)
        serving = asyncio.create_task(serve_acp(agent, reader, writer))
        from_agent, to_agent = await asyncio.open_connection(sock=theirs)
        connection = connect_to_agent(editor, to_agent, from_agent, use_unstable_protocol=True)  # type: ignore[arg-type]
        forms = None if editor.typed is None else schema.ElicitationFormCapabilities()
        await connection.initialize(
            PROTOCOL_VERSION,
            client_capabilities=schema.ClientCapabilities(
                elicitation=schema.ElicitationCapabilities(form=forms)
            ),
        )
        try:
            yield Desk(editor, connection, runtime, World().files.cwd())
        finally:
            await connection.close()
            to_agent.close()
            with suppress(OSError):
                await to_agent.wait_closed()
            await serving
            for each in (reader, writer, ours, theirs):
                with suppress(OSError):  # what couldn't be sent any more
                    each.close()
