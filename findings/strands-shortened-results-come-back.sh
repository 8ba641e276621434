#!/usr/bin/env bash
# strands-agents 1.62.0: what SlidingWindowConversationManager shortens is shortened in memory only, not in the session.
#
# When a model says that the context is too long, the manager first cuts down large tool results, in place, in
# agent.messages. A session manager writes a message once, when it is added; of what the conversation manager does it only
# stores the number of messages that were removed. After a restart the large results are back.
#
# Most would guess: a session that is restored is the one that the agent had, as it is for messages that were removed.
#
# Why it matters: an agent that was rescued from an overflow overflows again after each restart, and pays a refused call
# each time; the history that a person reads in the store isn't what the model was shown.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install -q --no-compile strands-agents==1.62.0
venv/bin/python -I -W ignore - <<'EOF'
import json

from strands import Agent
from strands.agent.conversation_manager import SlidingWindowConversationManager
from strands.models.model import Model
from strands.session.file_session_manager import FileSessionManager
from strands.types.exceptions import ContextWindowOverflowException

ROOM = 10_000
CALL = {"toolUse": {"toolUseId": "t1", "name": "look", "input": {}}}
RESULT = {"toolResult": {"toolUseId": "t1", "status": "success", "content": [{"text": "x" * 20_000}]}}
HISTORY = [("user", {"text": "look"}), ("assistant", CALL), ("user", RESULT), ("assistant", {"text": "done"})]


class Small(Model):
    refused = 0

    def update_config(self, **_):
        pass

    def get_config(self):
        return {}

    async def structured_output(self, *_, **__):
        yield {}

    async def stream(self, messages, *_, **__):
        if len(json.dumps(messages)) > ROOM:
            self.refused += 1
            raise ContextWindowOverflowException("too long")
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        yield {"contentBlockDelta": {"delta": {"text": "yes"}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


def start(messages=None):
    return Agent(
        model=Small(),
        messages=messages,
        agent_id="a",
        session_manager=FileSessionManager(session_id="s", storage_dir="."),
        conversation_manager=SlidingWindowConversationManager(),
        callback_handler=None,
    )


def longest(agent):
    blocks = [block for message in agent.messages for block in message["content"] if "toolResult" in block]
    return max(len(json.dumps(block)) for block in blocks)


start([{"role": role, "content": [block]} for role, block in HISTORY])
for run in ("first", "second"):
    agent = start()
    loaded = longest(agent)
    agent("and now?")
    kept = longest(agent)
    print(f"{run} restart: loaded {loaded}, after the turn {kept}, calls refused: {agent.model.refused}")
    assert loaded > 20_000 and kept < ROOM and agent.model.refused == 1, "changed"
EOF
