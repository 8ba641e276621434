"""The agent as an entrypoint of LangGraph with a checkpointer on SQLite: a task is a call of a model, and one
of a tool.

`python on_langgraph.py record | replay`: time travel invokes the entrypoint from its first checkpoint.
"""

import inspect
import sqlite3
import sys
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.func import entrypoint, task
from time_machine_agent import Kit, main

saver = SqliteSaver(sqlite3.connect("langgraph.db", check_same_thread=False))


def as_task(function: Any) -> Any:
    if inspect.iscoroutinefunction(function):  # those need another entrypoint
        return function
    begun = task(function, name=function.__name__)
    return lambda *args, **named: begun(*args, **named).result()


@entrypoint(checkpointer=saver)
def agent(day: str) -> str:
    main(Kit(asking=as_task, tool=as_task))
    return day


config = {"configurable": {"thread_id": "recorded"}}
if sys.argv[1] == "record":
    agent.invoke("monday", config)
else:
    *_, first = agent.get_state_history(config)
    agent.invoke(None, first.config)
