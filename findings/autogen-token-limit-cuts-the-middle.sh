#!/usr/bin/env bash
# autogen-core 0.7.5: TokenLimitedChatCompletionContext takes messages out of the middle.
#
# It is described as a limit on what the newest messages hold. While the history is over the limit, it removes the
# message at half the length, again and again: the oldest ones stay, and what goes is neither old nor new. It removes
# one message at a time without looking at tool calls, so a result may stay whose call is gone.
#
# Most would guess: the oldest messages go, as in BufferedChatCompletionContext beside it, and calls stay with results.
#
# Why it matters: the agent forgets what it did a moment ago and keeps an outdated start, with no mark at the gap; services
# refuse a history that has a result without its call. Whoever imports such an agent must not take the view for a suffix.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install -q --no-compile autogen-core==0.7.5 autogen-ext==0.7.5
venv/bin/python -I - <<'EOF'
import asyncio

from autogen_core import FunctionCall
from autogen_core.model_context import TokenLimitedChatCompletionContext
from autogen_core.models import AssistantMessage, FunctionExecutionResult, FunctionExecutionResultMessage, UserMessage
from autogen_ext.models.replay import ReplayChatCompletionClient


class OneTokenEach(ReplayChatCompletionClient):
    def count_tokens(self, messages, **_):
        return len(messages)


def call(n):
    return AssistantMessage(content=[FunctionCall(id=f"c{n}", name="look", arguments="{}")], source="a")


def result(n):
    done = FunctionExecutionResult(call_id=f"c{n}", name="look", content="seen", is_error=False)
    return FunctionExecutionResultMessage(content=[done])


def name(message):
    if isinstance(message.content, str):
        return message.content
    part = message.content[0]
    return f"call {part.id}" if isinstance(part, FunctionCall) else f"result {part.call_id}"


async def seen(messages, limit):
    context = TokenLimitedChatCompletionContext(OneTokenEach([]), token_limit=limit)
    for message in messages:
        await context.add_message(message)
    return [name(message) for message in await context.get_messages()]


async def main():
    talk = await seen([UserMessage(content=f"m{n}", source="u") for n in range(8)], 4)
    print("eight messages, room for four:", talk)
    tools = await seen([UserMessage(content="q", source="u"), call(1), result(1), call(2), result(2)], 4)
    print("two calls, room for four messages:", tools)
    assert talk == ["m0", "m1", "m6", "m7"], "changed: it no longer cuts the middle"
    assert tools == ["q", "call c1", "call c2", "result c2"], "changed: it no longer parts a call and its result"


asyncio.run(main())
EOF
