"""Makes `langgraph.db` beside it (langgraph 1.2.24, langgraph-checkpoint-sqlite 3.1.2)."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt

FILE = Path(__file__).parent / "langgraph.db"


class State(TypedDict):
    messages: Annotated[list[Any], add_messages]
    count: int


def model(state: State) -> Any:
    number = len(state["messages"])
    if isinstance(state["messages"][-1], ToolMessage):
        return {"messages": [AIMessage(f"It is {state['messages'][-1].content}.", id=f"a{number}")]}
    calls = [{"name": "look", "args": {"at": "red"}, "id": "c1"}]
    usage = {"input_tokens": 12, "output_tokens": 7, "total_tokens": 19}
    return {"messages": [AIMessage("I look.", id=f"a{number}", tool_calls=calls, usage_metadata=usage)]}


def look(state: State) -> Any:
    found = interrupt({"ask": "May I look at red?"})
    return {"messages": [ToolMessage(str(found), tool_call_id="c1", id="t1", name="look")]}


graph = StateGraph(State)
graph.add_node("model", model)
graph.add_node("look", look)
graph.add_edge(START, "model")
graph.add_conditional_edges("model", lambda s: "look" if s["messages"][-1].tool_calls else END, ["look", END])
graph.add_edge("look", "model")

FILE.unlink(missing_ok=True)
with SqliteSaver.from_conn_string(str(FILE)) as saver:
    app = graph.compile(checkpointer=saver)
    first, second = ({"configurable": {"thread_id": name}} for name in ("one", "user 2/b"))
    app.invoke({"messages": [("system", "Be short."), ("user", "What is red?")], "count": 1}, first)
    app.invoke(Command(resume="warm"), first)
    app.invoke({"messages": [("user", "What is red?")]}, second)
with sqlite3.connect(FILE) as database:
    database.execute("PRAGMA journal_mode = DELETE")
    database.execute("VACUUM")
