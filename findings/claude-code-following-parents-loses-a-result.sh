#!/usr/bin/env bash
# @anthropic-ai/claude-code 2.1.197 (npm): in a transcript, the result of the first of two calls isn't on the way back.
#
# A transcript is a JSON line for each piece of the conversation, and each line names the one that it stands behind
# (`parentUuid`). An answer with two calls is a line for each call, the second behind the first. The result of each call
# stands behind the line of its own call, so the two results are siblings' children, and what follows names the last one.
#
# Most would guess: going from the last line to its parent, and so on, gives the conversation that the model was sent.
#
# Why it matters: whoever reads, shows or moves a conversation by its parents gets an assistant's turn with two calls and
# one result. Model services refuse such a history; a reader sees a call that was never answered.
set -eu
work=$(mktemp -d)
trap 'kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"
server=
npm install --silent --no-audit --no-fund --prefix npm @anthropic-ai/claude-code@2.1.197 >/dev/null
mkdir home project
echo red >project/red.txt
echo blue >project/blue.txt
cat >model.py <<'EOF'
"""A model that reads two files at once, then says so."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def answer(request):
    said = [message for message in request["messages"] if message["role"] == "user"][-1]["content"]
    if isinstance(said, list) and any(block["type"] == "tool_result" for block in said):
        return [{"type": "text", "text": "One is red, the other is blue."}], "end_turn"
    read = [
        {"type": "tool_use", "id": f"toolu_{name}", "name": "Read", "input": {"file_path": f"{FILES}/{name}.txt"}}
        for name in ("red", "blue")
    ]
    return read, "tool_use"


class Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *parts):
        """Stay silent."""

    def do_HEAD(self):
        self.send([])

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "messages" not in request:
            return self.send([])
        blocks, reason = answer(request)
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {"id": f"msg_{len(request['messages'])}", "type": "message", "role": "assistant", "content": []}
        message |= {"model": request["model"], "stop_reason": None, "stop_sequence": None, "usage": usage}
        events = [{"type": "message_start", "message": message}]
        for index, block in enumerate(blocks):
            at, call = {"index": index}, block["type"] == "tool_use"
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])} if call else {
                "type": "text_delta", "text": block["text"]
            }
            begun = {**block, "input": {}} if call else {**block, "text": ""}
            events += [
                {"type": "content_block_start", **at, "content_block": begun},
                {"type": "content_block_delta", **at, "delta": delta},
                {"type": "content_block_stop", **at},
            ]
        events += [
            {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage},
            {"type": "message_stop"},
        ]
        self.send(events)

    def send(self, events):
        body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


import sys

FILES = sys.argv[1]
server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
print(server.server_port, flush=True)
server.serve_forever()
EOF
"${PYTHON:-python3}" model.py "$work/project" >port &
server=$!
until [ -s port ]; do sleep 0.1; done
cd project
env -i PATH="$PATH" HOME="$work/home" ANTHROPIC_API_KEY=none ANTHROPIC_BASE_URL="http://127.0.0.1:$(cat ../port)" \
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_AUTOUPDATER=1 IS_SANDBOX=1 \
    timeout 40 ../npm/node_modules/.bin/claude -p "Read both files." --allowedTools Read </dev/null
cd ..
"${PYTHON:-python3}" - home/.claude/projects/*/*.jsonl <<'EOF'
import json
import sys

lines = {}
for text in open(sys.argv[1], encoding="utf-8"):
    line = json.loads(text)
    if line.get("uuid"):
        lines[line["uuid"]] = line


def blocks(line, kind, key):
    content = line.get("message", {}).get("content")
    return [b[key] for b in content if b.get("type") == kind] if isinstance(content, list) else []


def of(chosen, kind, key):
    return sorted(value for line in chosen for value in blocks(line, kind, key))


way, at = [], list(lines)[-1]
while at:
    way.append(lines[at])
    at = lines[at].get("parentUuid")
print("in the file:     calls", of(lines.values(), "tool_use", "id"), "results", of(lines.values(), "tool_result", "tool_use_id"))
print("by the parents:  calls", of(way, "tool_use", "id"), "results", of(way, "tool_result", "tool_use_id"))
assert len(of(lines.values(), "tool_result", "tool_use_id")) == 2, "changed: a result isn't in the file"
assert len(of(way, "tool_use", "id")) == 2, "changed: a call isn't on the way"
assert len(of(way, "tool_result", "tool_use_id")) == 1, "changed: both results are on the way"
EOF
