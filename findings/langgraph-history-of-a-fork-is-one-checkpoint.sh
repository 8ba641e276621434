#!/usr/bin/env bash
# langgraph 1.2.24, langgraph-checkpoint-sqlite 3.1.2: get_state_history of a checkpoint is that checkpoint alone.
#
# get_state_history takes a config. With a thread's id it lists all checkpoints of the thread, those of abandoned branches
# among them, in one list with no word about branches; step numbers occur twice. With the config of one checkpoint, for
# example the one that update_state returned for a fork, it lists exactly one: the id is a filter, not a starting point.
#
# Most would guess: the history of a fork is the fork and its ancestors, as `git log COMMIT` would show.
#
# Why it matters: whoever shows, exports or rewinds a forked conversation gets either one state or the states of all
# branches mixed; the line of one branch has to be walked by hand, from parent_config to parent_config.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install -q --no-compile langgraph==1.2.24 langgraph-checkpoint==4.3.2 langgraph-checkpoint-sqlite==3.1.2
venv/bin/python -I - <<'EOF'
import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    said: Annotated[list[str], operator.add]


def look(saver):
    builder = StateGraph(State).add_node("answer", lambda state: {"said": ["answer"]})
    graph = builder.add_edge(START, "answer").add_edge("answer", END).compile(checkpointer=saver)
    thread = {"configurable": {"thread_id": "t"}}
    graph.invoke({"said": ["one"]}, thread)
    first = graph.get_state(thread).config
    graph.invoke({"said": ["two"]}, thread)
    fork = graph.update_state(first, {"said": ["instead"]})

    asked = [state.values["said"] for state in graph.get_state_history(fork)]
    whole = list(graph.get_state_history(thread))
    walked, at = [], graph.get_state(fork)
    while True:
        walked.append(at.values.get("said", []))
        if at.parent_config is None:
            break
        at = graph.get_state(at.parent_config)

    print(type(saver).__name__)
    print("  history of the fork:  ", asked)
    print("  history of the thread:", [(state.metadata["step"], state.values.get("said", [])) for state in whole])
    print("  walked by hand:       ", walked)
    assert asked == [["one", "answer", "instead"]], "changed: the history of a checkpoint has its ancestors"
    assert ["one", "answer", "two", "answer"] in [state.values.get("said") for state in whole], "changed"
    steps = [state.metadata["step"] for state in whole]
    assert len(steps) != len(set(steps)), "changed: steps occur once"
    assert walked == [["one", "answer", "instead"], ["one", "answer"], ["one"], []], "changed"


look(InMemorySaver())
with SqliteSaver.from_conn_string(":memory:") as saver:
    look(saver)
EOF
