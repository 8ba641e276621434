#!/usr/bin/env bash
# a2a-sdk 1.3.0: the history of a task has all that was said but what the agent said last, which is its answer.
#
# An agent speaks by the message of a status. The server keeps the newest in task.status.message, and moves it to
# task.history only when another status takes its place. So the history of a task that waits ends before the question
# that the user is asked, and that of a completed one ends in "Booking" instead of in what was booked. history_length
# counts without it, too.
#
# Most would guess: task.history is the conversation, and its last message is the newest.
#
# Why it matters: who stores, exports or summarizes a conversation by its history loses the answer of every task, the one
# message that all others were for; who adds status.message to it has that twice once the task goes on.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install -q --no-compile a2a-sdk==1.3.0
venv/bin/python -I -W ignore - <<'EOF'
import asyncio
import logging
from uuid import uuid4

from a2a.server.agent_execution import AgentExecutor
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities, AgentCard, GetTaskRequest, Message, Part, Role, SendMessageRequest, Task, TaskState, TaskStatus,
)

logging.disable()


class Desk(AgentExecutor):
    async def execute(self, context, events):
        begun = context.current_task is not None
        if not begun:
            status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
            new = Task(id=context.task_id, context_id=context.context_id, status=status, history=[context.message])
            await events.enqueue_event(new)
        task = TaskUpdater(events, context.task_id, context.context_id)
        working, last = ("Booking", "Booked the 9:15") if begun else ("Looking", "Which one?")
        await task.start_work(task.new_agent_message([Part(text=working)]))
        await (task.complete if begun else task.requires_input)(task.new_agent_message([Part(text=last)]))

    async def cancel(self, context, events):
        raise NotImplementedError


def shown(task):
    state = TaskState.Name(task.status.state).removeprefix("TASK_STATE_")
    history = [message.parts[0].text for message in task.history]
    print(f"{state}: history {history}, status.message {task.status.message.parts[0].text!r}")
    return history


async def main():
    card = AgentCard(name="desk", description="Books trains", version="1", capabilities=AgentCapabilities())
    server = DefaultRequestHandler(agent_executor=Desk(), task_store=InMemoryTaskStore(), agent_card=card)
    context = ServerCallContext()

    async def said(text, **where):
        message = Message(message_id=str(uuid4()), role=Role.ROLE_USER, parts=[Part(text=text)], **where)
        return await server.on_message_send(SendMessageRequest(message=message), context)

    task = await said("A train to Bergen")
    if shown(task) != ["A train to Bergen", "Looking"]:
        return "changed: what the user is asked is in the history"
    await said("The first", task_id=task.id, context_id=task.context_id)
    task = await server.on_get_task(GetTaskRequest(id=task.id), context)
    if shown(task)[-1] != "Booking":
        return "changed: the answer is in the history"
    task = await server.on_get_task(GetTaskRequest(id=task.id, history_length=1), context)
    return 0 if shown(task) == ["Booking"] else "changed: the last message of the history is the answer"


raise SystemExit(asyncio.run(main()))
EOF
