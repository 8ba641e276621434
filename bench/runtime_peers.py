"""Sessions of other libraries on SQLite, for `bench/runtime.py`: each runs its own loop and a quick model.

A peer is a context manager that yields a function: a new session, and so many turns of it.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

from options import peers_first

PROMPT = "How are you today?"
ANSWER = "Fine, thank you."

Converse = Callable[[int, int], None]


@contextmanager
def agents_sdk(directory: Path) -> Iterator[Converse]:
    """`Runner.run` with a `SQLiteSession` in one file; tracing is off."""
    with peers_first():
        from agents import Agent, Model, ModelResponse, Runner, SQLiteSession, Usage, set_tracing_disabled
    from openai.types.responses import ResponseOutputMessage, ResponseOutputText

    set_tracing_disabled(True)

    class Quick(Model):
        async def get_response(self, *args: Any, **options: Any) -> ModelResponse:
            text = ResponseOutputText(annotations=[], text=ANSWER, type="output_text")
            message = ResponseOutputMessage(
                id="m", content=[text], role="assistant", status="completed", type="message"
            )
            return ModelResponse(output=[message], usage=Usage(), response_id=None)

        def stream_response(self, *args: Any, **options: Any) -> Any:
            raise NotImplementedError

    agent = Agent(name="a", model=Quick())

    def converse(number: int, turns: int) -> None:
        async def run() -> None:
            session = SQLiteSession(str(number), directory / "agents.db")
            try:
                for _ in range(turns):
                    checked((await Runner.run(agent, PROMPT, session=session)).final_output)
            finally:
                session.close()

        asyncio.run(run())

    yield converse


@contextmanager
def langgraph(directory: Path) -> Iterator[Converse]:
    """A graph of one node, with a `SqliteSaver`."""
    from langchain_core.messages import AIMessage, HumanMessage
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import START, MessagesState, StateGraph

    graph: Any = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [AIMessage(content=ANSWER)]})
    graph.add_edge(START, "model")
    with closing(sqlite3.connect(directory / "graph.db", check_same_thread=False)) as database:
        runnable = graph.compile(checkpointer=SqliteSaver(database))

        def converse(number: int, turns: int) -> None:
            config = {"configurable": {"thread_id": str(number)}}
            for _ in range(turns):
                state = runnable.invoke({"messages": [HumanMessage(PROMPT)]}, config)
                checked(state["messages"][-1].content)

        yield converse


def checked(text: Any) -> None:
    if text != ANSWER:
        raise AssertionError("the turn went wrong")


PEERS: list[tuple[str, Callable[[Path], AbstractContextManager[Converse]]]] = [
    ("OpenAI Agents SDK", agents_sdk),
    ("LangGraph", langgraph),
]
