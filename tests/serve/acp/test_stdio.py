"""`harnpy acp` as a process, driven by the official client library. Spec: 11 §4."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from acp import PROTOCOL_VERSION, spawn_agent_process, text_block

from tests.serve.acp.editor import CLERK, Editor


async def _drive(file: Path, editor: Editor) -> None:
    command = (sys.executable, "-m", "harnpy", "acp", file.name, "--store", f"sqlite:{file.parent}/s.db")
    async with spawn_agent_process(
        editor,  # type: ignore[arg-type]
        *command,
        env=dict(os.environ),
        cwd=file.parent,
        transport_kwargs={"stderr": None},
    ) as (agent, process):
        told = await agent.initialize(PROTOCOL_VERSION)
        assert told.agent_info is not None
        assert told.agent_info.title == "clerk"
        cwd = str(file.parent)
        begun = await agent.new_session(cwd=cwd, mcp_servers=[])
        id = begun.session_id

        # A turn with a tool that the editor's user permits.
        ended = await agent.prompt(session_id=id, prompt=[text_block("How many bolts?")])
        assert ended.stop_reason == "end_turn"
        assert editor.asked == ["count"]
        assert editor.seen(id) == [
            ("session_info_update", "How many bolts?"),
            ("tool_call", "count pending"),
            ("tool_call_update", "in_progress"),
            ("tool_call_update", "completed 40 of bolts"),
            ("agent_message_chunk", "There are 40."),
        ]

        # A turn that is cancelled while its tool runs.
        editor.updates.clear()
        turn = asyncio.create_task(agent.prompt(session_id=id, prompt=[text_block("Wait.")]))
        await editor.until("in_progress")
        await agent.cancel(session_id=id)
        assert (await turn).stop_reason == "cancelled"
        assert editor.seen(id)[-1] == ("tool_call_update", "failed Error: cancelled before it finished")

        # All of it again, as an editor that opens the session later gets it.
        editor.updates.clear()
        await agent.load_session(cwd=cwd, session_id=id, mcp_servers=[])
        assert editor.seen(id) == [
            ("user_message_chunk", "How many bolts?"),
            ("tool_call", "count pending"),
            ("tool_call_update", "completed 40 of bolts"),
            ("agent_message_chunk", "There are 40."),
            ("user_message_chunk", "Wait."),
            ("tool_call", "wait pending"),
            ("tool_call_update", "failed Error: cancelled before it finished"),
        ]
        (listed,) = (await agent.list_sessions(cwd=cwd)).sessions
        assert (listed.session_id, listed.title) == (id, "How many bolts?")
    assert process.returncode == 0


def test_a_session_with_a_tool_a_permission_a_cancel_and_a_load(tmp_path: Path) -> None:
    file = tmp_path / "clerk.harn"
    file.write_text(CLERK)
    asyncio.run(_drive(file, Editor()))
