#!/usr/bin/env bash
# pydantic-ai-slim 2.68.0: a run without a prompt, on a history that ends in an answer, returns that answer again.
#
# agent.run(None, message_history=...) goes on from where a history stopped: it asks the model if a request is last and
# runs the tools if their calls are last. If a text answer is last, it is taken for the outcome of this run: no
# model is called, no message is new, the usage is zero, and result.output is the old text.
#
# Most would guess: the model is asked to go on, or an error says that there is nothing to do.
#
# Why it matters: "continue" or "try again" on a stored session looks like a success with a fresh answer; a retry of a job
# after a crash can't tell an answer that was made now from one that was stored before.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install -q --no-compile pydantic-ai-slim==2.68.0
venv/bin/python -I -W ignore - <<'EOF'
from pydantic_ai import Agent
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models.function import FunctionModel

asked = []


def model(messages, info):
    asked.append(len(messages))
    return ModelResponse(parts=[TextPart("a fresh answer")])


agent = Agent(FunctionModel(model))
question = ModelRequest(parts=[UserPromptPart("Which line is wrong?")])
stored = [question, ModelResponse(parts=[TextPart("the stored answer")])]

fresh = agent.run_sync(None, message_history=[question])
print(f"a request is last: {fresh.output!r}, calls of the model: {len(asked)}, new messages: {len(fresh.new_messages())}")
assert (fresh.output, len(asked)) == ("a fresh answer", 1)

asked.clear()
again = agent.run_sync(None, message_history=stored)
print(f"an answer is last: {again.output!r}, calls of the model: {len(asked)}, new messages: {len(again.new_messages())}")
assert (again.output, asked, again.new_messages()) == ("the stored answer", [], []), "changed: the model is asked"
EOF
