#!/usr/bin/env bash
# semantic-kernel 1.45.0: ChatHistoryTruncationReducer keeps a whole tool chain over its target, and drops the question.
#
# To part no call from its result, the reducer moves its cut back as long as it stands on calls and results. In a turn of
# one question and many calls it arrives at the first call, right behind the question. What is left is longer than
# target_count by any amount, and the one message that was cut is the user's.
#
# Most would guess: the oldest pairs go until the target is met; or, if a turn stays whole, its question stays as well.
#
# Why it matters: the cut saves next to nothing and costs what the turn was about. It happens within the longest turns,
# and a count of messages says nothing about it: after the reduction the history still has nearly all of them.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install -q --no-compile semantic-kernel==1.45.0
venv/bin/python -I -W ignore - <<'EOF'
import asyncio

from semantic_kernel.contents import AuthorRole, ChatHistoryTruncationReducer, ChatMessageContent
from semantic_kernel.contents.function_call_content import FunctionCallContent
from semantic_kernel.contents.function_result_content import FunctionResultContent


def turn(calls):
    yield ChatMessageContent(role=AuthorRole.USER, content="the question")
    for n in range(calls):
        call = FunctionCallContent(id=f"c{n}", name="files-look", arguments="{}")
        result = FunctionResultContent(id=f"c{n}", name="files-look", result="seen")
        yield ChatMessageContent(role=AuthorRole.ASSISTANT, items=[call])
        yield ChatMessageContent(role=AuthorRole.TOOL, items=[result])


async def main():
    for calls in (3, 10):
        history = ChatHistoryTruncationReducer(target_count=4, messages=list(turn(calls)))
        before = len(history.messages)
        await history.reduce()
        roles = [message.role.value for message in history.messages]
        print(f"{before} messages, target 4: {len(roles)} kept, from {roles[:2]} on; the user's: {roles.count('user')}")
        assert len(roles) == before - 1 and "user" not in roles, "changed: it cuts something else"


asyncio.run(main())
EOF
