"""A graph of LangGraph that asks a person: whoever opens its thread later answers."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from harnpy.adapters.langgraph import HarnpySaver


class State(TypedDict):
    """What the graph of a thread works on."""

    said: Annotated[list[str], operator.add]
    answer: str


def graph(saver: HarnpySaver) -> Any:
    """Says a, asks a person, says b."""
    built = StateGraph(State)
    built.add_node("a", lambda state: {"said": ["a"]})
    built.add_node("ask", lambda state: {"answer": interrupt("go on?")})
    built.add_node("b", lambda state: {"said": ["b"]})
    built.add_edge(START, "a")
    built.add_edge("a", "ask")
    built.add_edge("ask", "b")
    built.add_edge("b", END)
    return built.compile(checkpointer=saver)
