#!/usr/bin/env bash
# agent-client-protocol 0.12.1: `await load_session(…)` returns before the client has handled the history, prompt() after it.
#
# An agent answers session/load once it has sent the whole history as updates. The library starts a task for each update and
# waits for none of them before the next message. For answers of session/prompt it keeps track of these tasks, and prompt()
# returns when they are done; load_session() returns at once, whatever has become of the history. And since the tasks run side
# by side, a handler that waits longer for one update than for the next has them in another order than the agent sent them.
#
# Most would guess: what prompt() does for the updates of a turn, load_session() does for those of the history, for which it is
# there; and updates of one session are handled one after the other.
#
# Why it matters: a client that stores updates (a file, a database, a web page: anything awaited) and then shows or forks what
# it has loaded has nothing yet, or the beginning, and may ask the agent to go on. One that puts a text together has its words
# in the wrong order. A handler that awaits nothing sees neither.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install -q --no-compile agent-client-protocol==0.12.1
venv/bin/python -I - <<'EOF'
import asyncio
import socket

from acp import connect_to_agent, schema, text_block, update_agent_message_text
from acp.agent.connection import AgentSideConnection

WORDS = ["The ", "bridge ", "is ", "closed."]


class Agent:
    def on_connect(self, client):
        self.client = client

    async def initialize(self, **given):
        return schema.InitializeResponse(protocol_version=1)

    async def load_session(self, session_id, **given):
        await self.say(session_id)
        return schema.LoadSessionResponse()

    async def prompt(self, session_id, **given):
        await self.say(session_id)
        return schema.PromptResponse(stop_reason="end_turn")

    async def say(self, session_id):
        for word in WORDS:
            await self.client.session_update(session_id, update_agent_message_text(word))


class Client:
    """Stores each update, which takes as long as ``seconds`` say."""

    def __init__(self, seconds):
        self.seconds = iter(seconds)
        self.stored = []
        self.is_whole = asyncio.Event()

    def on_connect(self, agent):
        pass

    async def session_update(self, session_id, update, **given):
        await asyncio.sleep(next(self.seconds))
        self.stored.append(update.content.text)
        if len(self.stored) == len(WORDS):
            self.is_whole.set()


async def seen(method, seconds):
    """What a client has stored when the method returns, and in the end."""
    ours, theirs = socket.socketpair()
    agent_reads, agent_writes = await asyncio.open_connection(sock=ours)
    client_reads, client_writes = await asyncio.open_connection(sock=theirs)
    client = Client(seconds)
    agent = AgentSideConnection(Agent(), agent_writes, agent_reads)
    connection = connect_to_agent(client, client_writes, client_reads)
    await connection.initialize(protocol_version=1)
    if method == "prompt":
        await connection.prompt(session_id="s", prompt=[text_block("?")])
    else:
        await connection.load_session(cwd="/", session_id="s", mcp_servers=[])
    at_return = "".join(client.stored)
    await client.is_whole.wait()
    await connection.close()
    await agent.close()
    return at_return, "".join(client.stored)


async def main():
    whole = "".join(WORDS)
    turn, _ = await seen("prompt", [0.3] * 4)
    loaded, later = await seen("load", [0.3] * 4)
    _, mixed = await seen("load", [0.3, 0, 0, 0])
    print("stored when prompt() returned:      ", repr(turn))
    print("stored when load_session() returned:", repr(loaded))
    print("stored a while later:               ", repr(later))
    print("stored when the first took longer:  ", repr(mixed))
    assert turn == whole, "changed: prompt() no longer waits for the updates before its answer"
    assert loaded != whole, "changed: load_session() waits for the history"
    assert later == whole
    assert mixed != whole, "changed: updates are handled in the order in which they were sent"


asyncio.run(main())
EOF
