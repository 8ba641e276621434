#!/usr/bin/env bash
# openai 3.57.0: an output item that `model_dump` writes isn't one of the SDK's own input items.
#
# What the Responses API answered goes back with the next request. `item.model_dump()` writes every field that the class
# knows, those that the service never sent as null; the SDK's own type of an input item takes no null there. A call and a
# reasoning item fail so, a message happens to pass. `model_dump(exclude_unset=True)` writes what the service sent.
#
# Most would guess: what an SDK dumps of its own answer, it takes back; many programs keep conversations in that way.
#
# Why it matters: kept conversations hold such items, in databases and logs. Whoever brings them into sessions has to leave
# the nulls out before they go to the service again, or a conversation that once ran is refused when it goes on.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install -q --no-compile openai==3.57.0
venv/bin/python -I -W ignore - <<'EOF'
from openai.types.responses import Response, ResponseInputItemParam
from pydantic import TypeAdapter, ValidationError

answer = Response.model_validate({
    "id": "resp_1",
    "object": "response",
    "created_at": 0,
    "model": "gpt-5",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": "{}"},
    ],
})
inputs = TypeAdapter(ResponseInputItemParam)


def is_input(item):
    try:
        inputs.validate_python(item)
    except ValidationError:
        return False
    return True


seen = []
for item in answer.output:
    whole, sent = item.model_dump(), item.model_dump(exclude_unset=True)
    nulls = [key for key, value in whole.items() if value is None]
    print(f"{item.type}: dumped {is_input(whole)} (null: {', '.join(nulls)}), as it was sent {is_input(sent)}")
    seen.append((is_input(whole), is_input(sent)))
assert seen == [(False, True), (False, True)], "no longer so"
EOF
