#!/usr/bin/env bash
# pydantic-ai-slim 2.68.0: a message history that is written and read by its own adapter isn't the one that was written.
#
# `ModelMessagesTypeAdapter` writes a retried call as a `retry-prompt` part and reads that back as a `ToolReturnPart` with
# the outcome `retried`; an image's `BinaryContent` comes back as a `BinaryImage`. What is read is written the same again.
#
# Most would guess: `validate_json(dump_json(messages)) == messages`, since that is how histories are to be kept.
#
# Why it matters: whoever keeps a conversation beside the running program and compares the two, to add only what is new,
# finds a difference in a message that nobody has touched, and keeps the conversation twice or begins a branch there. Code
# that looks for `RetryPromptPart` finds none in a history that was loaded.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install -q --no-compile pydantic-ai-slim==2.68.0
venv/bin/python -I -W ignore - <<'EOF'
from pydantic_ai import BinaryContent
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelRequest, RetryPromptPart, UserPromptPart


def again(messages):
    return ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(messages))


image = BinaryContent(b"image", media_type="image/png")
said = [ModelRequest([
    UserPromptPart(["What is this?", image]),
    RetryPromptPart("Name a colour.", tool_name="colour", tool_call_id="c1"),
])]
read = again(said)
for before, after in zip(said[0].parts, read[0].parts):
    print(f"{type(before).__name__} comes back as {type(after).__name__}")
shown = read[0].parts[0].content[1]
print(f"{type(image).__name__} comes back as {type(shown).__name__}")
print(f"equal: {read == said}, and once more: {again(read) == read}")
assert (type(read[0].parts[1]).__name__, type(shown).__name__) == ("ToolReturnPart", "BinaryImage"), "no longer so"
assert (read == said, again(read) == read) == (False, True), "no longer so"
EOF
