"""harnpy: its own loop in a `SessionRuntime` on SQLite."""

import os
from threading import Thread

from desk import FOLDER, TEXT, TURNS, answer, call, main, refund, stored, until

from harnpy import AgentDef, LoopFactory, runtime, tool
from harnpy.llm.reply import Reply
from harnpy.session import ApprovalGate, actions

STORE = f"sqlite:{FOLDER / 'desk.db'}"


class Model:
    async def complete(self, request):
        if request.messages[-1]["role"] != "tool":
            call()
            wanted = {"id": "call_1", "name": "refund", "arguments": {"euros": 12}}
            return Reply("", "m", "desk", "m", 1, 1, tool_calls=[wanted])
        return Reply("".join(answer()), "m", "desk", "m", 1, 1)


def opened():
    return runtime(STORE, agents=LoopFactory(tools=[tool(refund)], providers={"desk": Model()}))


def begin(prompt):
    """Begin a turn, and die when it waits for a person."""
    gate = ApprovalGate()
    Thread(target=lambda: (until(lambda: gate.pending), os._exit(0)), daemon=True).start()
    return send(prompt, gate)


def approve(prompt):
    return send(prompt, ApprovalGate(lambda request: "allow"))


def send(prompt, gate=None):
    with opened() as desk:
        clerk = AgentDef("clerk", model="desk/m", tools=("refund",))
        chat = desk.open("chat", create=True)
        return desk.send(chat.id, prompt, agent=clerk, idempotency_key=prompt, approvals=gate).text


def show():
    with opened() as desk:
        return (
            [[each["role"], each["content"]] for each in desk.open("chat").messages()]
            if desk.exists("chat")
            else None
        )


def delete():
    with opened() as desk:
        desk.delete("chat", hard=True)


def fork():
    with opened() as desk:
        chat = desk.create("clerk", id="long")
        for _ in range(TURNS):
            desk.send(chat.id, TEXT, agent=lambda messages: TEXT)
    before = stored()
    with opened() as desk:
        branch = desk.execute("long", actions.Fork())
        length = len(branch.messages())
    return [before, stored() - before, length]


main(send=send, resume=send, show=show, delete=delete, fork=fork, begin=begin, approve=approve)
