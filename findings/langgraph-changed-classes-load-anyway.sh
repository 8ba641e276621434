#!/usr/bin/env bash
# langgraph-checkpoint 4.3.2 (with langgraph 1.2.24): a state whose class has changed since loads without an error.
#
# What a checkpoint holds of a program's own classes is rebuilt on reading. If the class no longer takes what was stored:
# - a Pydantic model is made without validation, without a word in the log, and misses its new required attribute;
# - a dataclass is replaced by the dict of its fields;
# - an enum's member is replaced by its bare value.
# The last two are a line in the log. All three classes are on the serializer's list of allowed ones here.
#
# Most would guess: reading fails with the model's own ValidationError, or the like, at the checkpoint in question.
#
# Why it matters: a thread that waited for a person over a deployment resumes, and fails in some later node, or decides
# wrongly: an enum's string is unequal to every member. The next checkpoint then stores what was put in its place.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install -q --no-compile langgraph==1.2.24 langgraph-checkpoint==4.3.2 langgraph-checkpoint-sqlite==3.1.2
cat >graph.py <<'EOF'
from typing import Any, TypedDict

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
import sqlite3


class State(TypedDict, total=False):
    plan: Any
    step: Any
    mood: Any


THREAD = {"configurable": {"thread_id": "t"}}
allowed = JsonPlusSerializer(allowed_msgpack_modules=[("app", "Plan"), ("app", "Step"), ("app", "Mood")])
saver = SqliteSaver(sqlite3.connect("graph.db", check_same_thread=False), serde=allowed)
builder = StateGraph(State).add_node("rest", lambda state: {})
graph = builder.add_edge(START, "rest").add_edge("rest", END).compile(checkpointer=saver)
EOF
cat >app.py <<'EOF'
import dataclasses
import enum

from pydantic import BaseModel


class Plan(BaseModel):
    goal: str


@dataclasses.dataclass
class Step:
    title: str


class Mood(enum.Enum):
    CALM = "calm"
EOF
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$work venv/bin/python - <<'EOF'
import app
from graph import THREAD, graph

graph.invoke({"plan": app.Plan(goal="ship"), "step": app.Step("first"), "mood": app.Mood.CALM}, THREAD)
values = graph.get_state(THREAD).values
assert values == {"plan": app.Plan(goal="ship"), "step": app.Step("first"), "mood": app.Mood.CALM}, values
print("before:", values)
EOF
cat >app.py <<'EOF'
import dataclasses
import enum

from pydantic import BaseModel


class Plan(BaseModel):
    goal: str
    owner: str


@dataclasses.dataclass
class Step:
    name: str


class Mood(enum.Enum):
    QUIET = "quiet"
EOF
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$work venv/bin/python - <<'EOF'
import app
from graph import THREAD, graph

values = graph.get_state(THREAD).values
print("after: ", values)
assert type(values["plan"]) is app.Plan and not hasattr(values["plan"], "owner"), "changed: a model is validated"
assert values["step"] == {"title": "first"}, "changed: a dataclass is no dict"
assert values["mood"] == "calm" and type(values["mood"]) is str, "changed: an enum's member is no bare value"
EOF
