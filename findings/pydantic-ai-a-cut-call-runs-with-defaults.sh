#!/usr/bin/env bash
# pydantic-ai-slim 2.68.0: a call that a limit of tokens cut off before its arguments runs with the defaults.
#
# A reply may end between a call's name and its arguments, with `finish_reason` `length`. Where the arguments are cut in the
# middle, nothing is run and the model is asked again. Where none came yet, the tool is run as if the model had asked for
# no arguments, whatever the finish reason says.
#
# Most would guess: a call of a reply that was cut off isn't run, wherever in the call the cut is.
#
# Why it matters: a tool whose parameters have defaults does what nobody asked for: `folder: str = "."`, `days: int = 30`,
# `dry_run: bool = False`. The session records it as the model's call, and the next request shows it to the model as such.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install -q --no-compile pydantic-ai-slim==2.68.0
venv/bin/python -I -W ignore - <<'EOF'
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel


def run(arguments):
    """Return what was removed by a call that was cut off behind these arguments."""
    removed = []

    def remove(folder: str = ".") -> str:
        """Remove a folder."""
        removed.append(folder)
        return "removed"

    def model(messages, info):
        if len(messages) > 1:
            return ModelResponse([TextPart("Done.")])
        return ModelResponse([ToolCallPart("remove", arguments, "c1")], finish_reason="length")

    Agent(FunctionModel(model), tools=[remove]).run_sync("Remove the folder of May.")
    return removed


seen = {arguments: run(arguments) for arguments in ('{"folder": "/home/ann/20', "")}
for arguments, removed in seen.items():
    print(f"cut off behind {arguments!r}: removed {removed}")
assert list(seen.values()) == [[], ["."]], "no longer so"
EOF
