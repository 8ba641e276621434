"""An agent for editors, in this process: what its methods do and refuse. Spec: 11 §4."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from acp import image_block, resource_link_block, schema, text_block

from harnpy import Vm
from harnpy.llm.reply import Reply
from harnpy.llm.request import Request
from harnpy.serve.acp import Stdio
from harnpy.serve.acp_updates import Updates, content_of
from harnpy.session import InvalidArgument, Session, SessionRuntime
from harnpy.session.messages import feedback
from harnpy.session.transfer.formats import export
from tests.agent.factory.agents import Provider, said
from tests.mcp.programs import SERVERS
from tests.serve.acp.editor import CLERK, Desk, Editor, desk

Work = Callable[[Desk], Awaitable[Any]]
GO = [text_block("Go.")]


@pytest.fixture
def served(tmp_path: Path) -> Callable[..., Any]:
    """``served(source, work)``: what ``work(desk)`` returns."""

    def serve(source: str, work: Work, editor: Editor | None = None, **options: Any) -> Any:
        async def main() -> Any:
            async with desk(source, tmp_path, editor, **options) as place:
                return await work(place)

        return asyncio.run(main())

    return serve


def calling(*calls: tuple[str, str]) -> str:
    """A clerk whose model makes one of these calls in each turn: a tool and its arguments."""
    replies = [
        f'llm_mock({{tool_calls: [{{id: "c{n}", name: "{name}", arguments: {arguments}}}]}})\n'
        'llm_mock({text: "done"})'
        for n, (name, arguments) in enumerate(calls)
    ]
    return CLERK[: CLERK.index("  llm_mock")] + "\n".join(replies) + CLERK[CLERK.index("\n  return {model") :]


COUNT = ("count", '{part: "bolts"}')
WAIT = ("wait", "{}")


@pytest.mark.parametrize(
    ("choice", "asked", "result"),
    [
        ("allow_once", 2, "completed 40 of bolts"),
        ("allow_always", 1, "completed 40 of bolts"),
        ("reject_once", 2, "failed"),
        ("reject_always", 1, "failed"),
    ],
)
def test_an_answer_holds_once_or_for_the_session(
    served: Callable[..., Any], choice: str, asked: int, result: str
) -> None:
    async def work(place: Desk) -> None:
        id = await place.session()
        for _ in range(2):
            assert (await place.agent.prompt(session_id=id, prompt=GO)).stop_reason == "end_turn"
        ends = [end for kind, end in place.editor.seen(id) if kind == "tool_call_update"]
        assert len([end for end in ends if end.startswith(result)]) == 2
        calls = [
            update.tool_call_id for _, update in place.editor.updates if update.session_update == "tool_call"
        ]
        assert len(set(calls)) == 2
        assert place.editor.asked == ["count"] * asked
        always = ("Always allow count in this session", "Always reject count in this session")
        assert place.editor.offered == ["Allow", always[0], "Reject", always[1]]

    served(calling(COUNT, COUNT), work, Editor(choice))


def test_one_turn_at_a_time_and_a_cancel_that_comes_at_once(served: Callable[..., Any]) -> None:
    async def work(place: Desk) -> None:
        id = await place.session()
        first = asyncio.create_task(place.agent.prompt(session_id=id, prompt=GO))
        await place.editor.until("in_progress")
        assert await place.refused(place.agent.prompt(session_id=id, prompt=GO)) == (
            -32600,
            f"session '{id}' is in a turn: wait for its end, or cancel it",
        )
        load = place.agent.load_session(cwd=place.cwd, session_id=id, mcp_servers=[])
        assert (await place.refused(load))[0] == -32600
        await place.agent.cancel(session_id=id)
        assert (await first).stop_reason == "cancelled"
        await place.agent.cancel(session_id=id)  # there is none
        second = asyncio.create_task(place.agent.prompt(session_id=id, prompt=GO))
        await asyncio.sleep(0)  # it is sent
        await place.agent.cancel(session_id=id)
        assert (await second).stop_reason == "cancelled"
        third = asyncio.create_task(place.agent.prompt(session_id=id, prompt=GO))
        await asyncio.sleep(0)
        await place.agent.close_session(session_id=id)
        assert (await third).stop_reason == "cancelled"

    served(calling(WAIT, WAIT, WAIT), work)


def test_a_turn_ends_with_its_client(tmp_path: Path) -> None:
    async def main() -> list[Any]:
        async with desk(calling(WAIT), tmp_path) as place:
            id, store = await place.session(), place.runtime.store
            turn = asyncio.create_task(place.agent.prompt(session_id=id, prompt=GO))
            await place.editor.until("in_progress")
        with pytest.raises(ConnectionError):
            await turn
        with SessionRuntime(store) as runtime:
            events = runtime.get(id).events()
        return [event.data["turn_stop_reason"] for event in events if event.type == "turn_completed"]

    assert asyncio.run(main()) == ["cancelled"]


def test_what_is_refused_and_how(served: Callable[..., Any], tmp_path: Path) -> None:
    async def work(place: Desk) -> None:
        new, refused = place.agent.new_session, place.refused
        server = schema.McpServerStdio(name="x", command="/nowhere", args=[], env=[])
        header = schema.HttpHeader(name="X-Key", value="k")
        http = schema.HttpMcpServer(type="http", name="h", url="http://h", headers=[header])
        sse = schema.SseMcpServer(type="sse", name="e", url="http://h", headers=[])
        cwd, lost = place.cwd, {"cwd": place.cwd, "mcpServers": [{"name": "n", "command": "c"}]}
        code, why = await refused(place.agent._conn.send_request("session/new", lost))
        assert (code, why[:35]) == (-32602, "1 of `mcpServers` can't be read: a ")
        assert await refused(new(cwd="here", mcp_servers=[])) == (
            -32602,
            "`cwd` must be an absolute path, got 'here'",
        )
        for given, why in (
            ([server], "failed to spawn '/nowhere'"),
            ([http], "header 'X-Key' can't be sent"),
            ([sse], "transport 'sse' isn't supported"),
            ([server, server], "two MCP servers are called 'x'"),
        ):
            assert why in (await refused(new(cwd=cwd, mcp_servers=given)))[1]
        load = place.agent.load_session(cwd=cwd, session_id="no", mcp_servers=[])
        assert await refused(load) == (-32002, "Session not found: 'no'")
        assert (await refused(place.agent.prompt(session_id="no", prompt=GO)))[0] == -32002
        assert (await refused(place.agent.set_session_mode(session_id="no", mode_id="x")))[0] == -32601
        assert (await place.agent.list_sessions()).sessions == []
        assert (await refused(new(cwd=f"{cwd}\0", mcp_servers=[])))[0] == -32602
        assert (await refused(place.agent.list_sessions(cursor="zz")))[0] == -32602
        id = await place.session()
        assert await refused(new(cwd=str(tmp_path), mcp_servers=[])) == (
            -32602,
            f"this process works in {cwd}: start another `harnpy acp` for sessions in {tmp_path}",
        )
        audio = schema.AudioContentBlock(type="audio", data="", mime_type="audio/wav")
        assert (await refused(place.agent.prompt(session_id=id, prompt=[audio])))[0] == -32602
        # An error of the agent itself is none of the parameters.
        code, why = await refused(place.agent.prompt(session_id=id, prompt=GO))
        assert (code, "nobody" in why) == (-32603, True)
        await place.runtime.delete(id)
        gone = (-32002, f"Session not found: '{id}'")
        for again in (place.agent.load_session, place.agent.resume_session, place.agent.fork_session):
            assert await refused(again(cwd=cwd, session_id=id, mcp_servers=[])) == gone
        assert await refused(place.agent.prompt(session_id=id, prompt=GO)) == gone

    served('pub fn agent() { return {model: {provider: "nobody"}} }', work)


def test_sessions_are_forked_closed_and_resumed(served: Callable[..., Any]) -> None:
    async def work(place: Desk) -> None:
        agent, cwd = place.agent, place.cwd
        id = await place.session()
        await agent.prompt(session_id=id, prompt=GO)
        fork = (await agent.fork_session(cwd=cwd, session_id=id)).session_id
        assert {info.session_id for info in (await agent.list_sessions(cwd=cwd)).sessions} == {id, fork}
        assert (await agent.list_sessions(cwd="/else")).sessions == []
        await agent.close_session(session_id=id)
        assert (await place.refused(agent.prompt(session_id=id, prompt=GO)))[0] == -32002
        await agent.prompt(session_id=fork, prompt=GO)
        place.editor.updates.clear()
        await agent.resume_session(cwd=cwd, session_id=id, mcp_servers=[])
        assert place.editor.updates == []
        assert len((await place.runtime.get(id)).session.messages()) == 4
        assert len((await place.runtime.get(fork)).session.messages()) == 8

    served(calling(COUNT, COUNT), work)


def test_the_clients_servers_are_tools_of_a_definition(served: Callable[..., Any]) -> None:
    raw = schema.McpServerStdio(name="raw", command=sys.executable, args=[str(SERVERS / "raw.py")], env=[])

    async def work(place: Desk) -> None:
        id = await place.session(mcp_servers=[raw])
        await place.agent.prompt(session_id=id, prompt=GO)
        assert ("tool_call_update", "completed 5") in place.editor.seen(id)

    served(calling(("raw__add", "{a: 2, b: 3}")), work)


PROGRAM = """
pipeline main(task) {
  if prompt == "Ask." { return ask_user("How many?", {timeout: 5s}) }
  llm_mock({text: "", tool_calls: [{id: "c", name: "look", arguments: {}}]})
  llm_mock({text: "servers: ${mcp_servers.map({ s -> s.name })}"})
  let tools = tool_define(tool_registry(), "look", "", {parameters: {}, handler: { _ -> "seen" }})
  let options = {provider: "mock", tool_format: "native", tools: tools}
  return agent_loop(prompt, nil, options + {session_id: session_id})
}
"""


def test_a_program_is_seen_as_it_works_and_asks_by_forms(served: Callable[..., Any]) -> None:
    raw = schema.McpServerStdio(name="raw", command="raw", args=[], env=[])

    async def work(place: Desk) -> None:
        id = await place.session(mcp_servers=[raw])
        await place.agent.prompt(session_id=id, prompt=GO)
        await place.agent.prompt(session_id=id, prompt=[text_block("Ask.")])
        assert place.editor.asked == ["How many?"]
        assert place.editor.seen(id) == [
            ("session_info_update", "Go."),
            ("tool_call", "look pending"),
            ("tool_call_update", "in_progress"),
            ("tool_call_update", "completed seen"),
            ("agent_message_chunk", "servers: [raw]"),
            ("agent_message_chunk", "seven"),
        ]
        image = [image_block("AA==", "image/png")]
        assert (await place.refused(place.agent.prompt(session_id=id, prompt=image)))[0] == -32602

    served(PROGRAM, work, Editor(typed="seven"))


PIECES = [f"{n} " for n in range(200)]


@pytest.mark.parametrize(
    "source",
    [
        'pub fn agent() { return {model: "pieces"} }',
        'let OPTIONS = {provider: "pieces", tool_format: "native"}\n'
        "pipeline main(task) { agent_loop(prompt, nil, OPTIONS + {session_id: session_id}) }",
    ],
    ids=["definition", "program"],
)
def test_pieces_are_sent_as_they_come_and_in_order(served: Callable[..., Any], source: str) -> None:
    editor = Editor()

    async def in_pieces(request: Request) -> Reply:
        assert request.shown is not None
        request.shown.piece(PIECES[0])
        await editor.until(PIECES[0], sessions=3)
        for piece in PIECES[1:]:
            request.shown.piece(piece)
        return said(request, "".join(PIECES))

    def new_vm(file: str) -> Vm:
        vm = Vm()
        vm.provide("pieces", Provider(in_pieces))
        return vm

    async def work(place: Desk) -> None:
        ids = [await place.session() for _ in range(3)]
        await asyncio.gather(*(place.agent.prompt(session_id=id, prompt=GO) for id in ids))
        for id in ids:
            shown = [text for kind, text in place.editor.seen(id) if kind == "agent_message_chunk"]
            assert (shown[0], "".join(shown)) == (PIECES[0], "".join(PIECES))

    served(source, work, editor, new_vm=new_vm)


def test_lines_that_are_no_messages_are_answered_and_meta_is_no_argument() -> None:
    lines = [
        b"[1]",
        b"no",
        b'{"jsonrpc":"2.0","id":1,"method":5}',
        b"",
        b'{"method":"m","params":{"cwd":"/a","mcpServers":[1],"_meta":{"cwd":"/b"}}}',
    ]
    written = io.BytesIO()

    async def main() -> Any:
        stdio = Stdio(io.BytesIO(b"\n".join(lines) + b"\n"), written)
        try:
            return [await stdio.receive(), await stdio.receive()]
        finally:
            await stdio.close()

    assert asyncio.run(main()) == [
        {"method": "m", "params": {"cwd": "/a", "mcpServers": [1], "_meta": {"named_servers": 1}}},
        None,
    ]
    codes = [json.loads(line)["error"]["code"] for line in written.getvalue().splitlines()]
    assert codes == [-32600, -32700, -32600]


def test_content_of_prompts_and_what_messages_show() -> None:
    held = schema.TextResourceContents(uri="file:///a", text="A")
    blocks = [
        text_block("Look at"),
        resource_link_block("a.py", "file:///a.py"),
        schema.EmbeddedResourceContentBlock(type="resource", resource=held),
        image_block("AA==", "image/png"),
    ]
    assert content_of(blocks) == [
        {"type": "text", "text": "Look at"},
        {"type": "text", "text": "[a.py](file:///a.py)"},
        {"type": "text", "text": '<resource uri="file:///a">\nA\n</resource>'},
        {"type": "image", "base64": "AA==", "media_type": "image/png"},
    ]
    assert content_of([text_block("Hi")]) == "Hi"
    with pytest.raises(InvalidArgument, match="`prompt` is empty"):
        content_of([])

    session = Session()
    session.set_tasks([{"content": "count", "status": "in_progress", "activeForm": "counting"}])
    session.append_message({"role": "assistant", "content": "Hm", "reasoning": "Let me see"})
    updates = Updates()
    shown = [update for event in session.events() for update in updates.of(event)]
    assert [update.session_update for update in shown] == [
        "plan",
        "agent_thought_chunk",
        "agent_message_chunk",
    ]
    assert (shown[0].entries[0].content, shown[0].entries[0].status) == ("count", "in_progress")


def test_what_the_loop_tells_its_model_is_no_prompt_of_the_users() -> None:
    session = Session()
    session.append_message({"role": "user", "content": "Hi"})
    session.append_message(feedback("protocol_violation", "Stray text"))
    session.append_message({"role": "assistant", "content": "Hello"})
    shown = [update.session_update for update in Updates().past(session.events(types=["message_added"]))]
    assert shown == ["user_message_chunk", "agent_message_chunk"]
    page = export(session, "markdown")
    assert (page.count("User"), page.count("Runtime")) == (1, 1)
