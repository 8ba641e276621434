"""LangGraph: a model node and a `ToolNode`, with a `SqliteSaver`; after a crash it is invoked with None.

`durability="sync"` is the setting that loses nothing: the default writes a step while the next one runs.
"""

import sqlite3
from contextlib import closing

from desk import APPROVALS, FOLDER, TEXT, TURNS, answer, call, main, stored
from desk import refund as pay
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.config import get_stream_writer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, interrupt

CHAT = {"configurable": {"thread_id": "chat"}}


@tool
def refund(euros: int) -> str:
    """Pay an amount back."""
    if APPROVALS:
        interrupt(f"refund {euros}?")
    return pay(euros)


def model(state):
    if state["messages"][-1].type == "human":
        call()
        wanted = {"name": "refund", "args": {"euros": 12}, "id": "call_1", "type": "tool_call"}
        return {"messages": [AIMessage(content="", tool_calls=[wanted])]}
    said, write = "", get_stream_writer()
    for piece in answer():
        write(piece)
        said += piece
    return {"messages": [AIMessage(content=said)]}


def connected():
    return closing(sqlite3.connect(FOLDER / "desk.db", check_same_thread=False))


def graph(database, answering=model):
    builder = StateGraph(MessagesState)
    builder.add_node("model", answering)
    builder.add_node("tools", ToolNode([refund]))
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", tools_condition)
    builder.add_edge("tools", "model")
    return builder.compile(checkpointer=SqliteSaver(database))


def send(prompt):
    with connected() as database:
        return run(graph(database), {"messages": [HumanMessage(prompt)]})


def resume(prompt):
    with connected() as database:
        return run(graph(database), None)


def approve(prompt):
    with connected() as database:
        return run(graph(database), Command(resume=True))


def run(compiled, given):
    for _ in compiled.stream(given, CHAT, stream_mode="custom", durability="sync"):
        pass
    return compiled.get_state(CHAT).values["messages"][-1].content


def show():
    with connected() as database:
        found = graph(database).get_state(CHAT).values.get("messages")
    return found and [
        [{"human": "user", "ai": "assistant"}.get(each.type, each.type), each.content] for each in found
    ]


def delete():
    with connected() as database:
        SqliteSaver(database).delete_thread("chat")


def fork():
    """By `update_state` of an earlier checkpoint, as its documentation has it."""
    thread = {"configurable": {"thread_id": "long"}}
    with connected() as database:
        compiled = graph(database, lambda state: {"messages": [AIMessage(TEXT)]})
        for _ in range(TURNS):
            compiled.invoke({"messages": [HumanMessage(TEXT)]}, thread)
    before = stored()
    with connected() as database:
        compiled = graph(database)
        branch = compiled.update_state(compiled.get_state(thread).config, {})
        length = len(compiled.get_state(branch).values["messages"])
    return [before, stored() - before, length]


main(send=send, resume=resume, show=show, delete=delete, fork=fork, begin=send, approve=approve)
