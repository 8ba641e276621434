"""Sessions over MCP: the verbs as tools, the live ones as resources. Spec: 08 §1, 09 §11.4."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mcp import Client
from mcp.server.subscriptions import ResourcesListChanged, ResourceUpdated
from mcp.shared.exceptions import MCPError

from tests.serve.mcp.serving import converse, text_of

FILE = """
let first = agent_session_open("of the file")

/** Asks the mock model in a session. */
pub fn ask(id: string, text: string) -> string {
  return agent_loop(text, nil, {session_id: id, provider: "mock"}).visible_text
}
"""


def test_verbs_are_tools(tmp_path: Path) -> None:
    async def session(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {"ask", "agent_session_open", "agent_session_fork_at", "agent_session_history"} <= set(tools)
        assert not {"agent_session_current_id", "agent_session_seed_from_jsonl"} & set(tools)
        assert tools["agent_session_trim"].input_schema == {
            "type": "object",
            "properties": {"id": {"type": "string"}, "keep_last": {"type": "integer"}},
            "required": ["id", "keep_last"],
            "additionalProperties": False,
        }
        described = tools["agent_session_length"].description
        assert (
            described == "Return the number of messages in a session. Throws when there is no such session."
        )
        assert text_of(await client.call_tool("agent_session_open", {"id": "a/ö"})) == "a/ö"
        message = {"role": "user", "content": "hello"}
        await client.call_tool("agent_session_inject", {"id": "a/ö", "message": message})
        assert text_of(await client.call_tool("agent_session_fork", {"src": "a/ö", "dst": "b"})) == "b"
        asked = await client.call_tool("ask", {"id": "b", "text": "hi"})
        assert "hi" in text_of(asked)
        lengths = [await client.call_tool("agent_session_length", {"id": id}) for id in ("a/ö", "b")]
        assert [length.structured_content for length in lengths] == [{"result": 1}, {"result": 3}]
        failed = await client.call_tool("agent_session_length", {"id": "nobody"})
        assert failed.is_error
        assert "nobody" in text_of(failed)

    converse(tmp_path / "s.harn", FILE, session, with_sessions=True)


def test_live_sessions_are_resources(tmp_path: Path) -> None:
    async def session(client: Client) -> None:
        (template,) = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == "harn://sessions/{id}"
        await client.call_tool("agent_session_open", {"id": "a/ö"})
        await client.call_tool("ask", {"id": "a/ö", "text": "hi"})
        listed = (await client.list_resources()).resources
        assert [resource.name for resource in listed] == ["a/ö", "of the file"]
        assert [resource.uri for resource in listed] == [
            "harn://sessions/a%2F%C3%B6",
            "harn://sessions/of%20the%20file",
        ]
        (contents,) = (await client.read_resource(listed[0].uri)).contents
        snapshot = json.loads(contents.text)
        assert [message["role"] for message in snapshot["messages"]] == ["user", "assistant"]
        for uri in ("harn://sessions/nobody", "file:///etc/passwd"):
            with pytest.raises(MCPError, match="Resource not found"):
                await client.read_resource(uri)

    converse(tmp_path / "s.harn", FILE, session, with_sessions=True)


def test_changes_are_notified(tmp_path: Path) -> None:
    async def session(client: Client) -> None:
        uri = "harn://sessions/of%20the%20file"
        async with client.listen(resources_list_changed=True, resource_subscriptions=[uri]) as changes:
            await client.call_tool("agent_session_open", {"id": "new"})
            assert await anext(changes) == ResourcesListChanged()
            await client.call_tool("ask", {"id": "of the file", "text": "hi"})
            assert await anext(changes) == ResourceUpdated(uri)

    converse(tmp_path / "s.harn", FILE, session, with_sessions=True)
