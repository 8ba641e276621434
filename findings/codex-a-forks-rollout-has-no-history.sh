#!/usr/bin/env bash
# @openai/codex 0.171.0 (npm): the file of a forked session holds only what was said since; the rest is in another file.
#
# `codex exec fork ID` writes a rollout whose first line names the session that it came from and the number of the first
# line there that it doesn't share (`forked_from_id`, `forked_from_ordinal_exclusive`). Its own lines count on from there.
# What both share is read from the other file when the fork goes on.
#
# Most would guess: a rollout is a whole conversation, as the transcript of a forked session of Claude Code is.
#
# Why it matters: whoever copies, shows, searches or imports sessions file by file gets a fork that begins in the middle,
# without a word; moved to another machine by itself it can't be gone on with.
set -eu
work=$(mktemp -d)
trap 'kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"
server=
npm install --silent --no-audit --no-fund --prefix npm @openai/codex@0.171.0 >/dev/null
mkdir -p codex project
cat >model.py <<'EOF'
"""A model that counts what it has been asked."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *parts):
        """Stay silent."""

    def do_GET(self):
        self.send(b'{"data": [], "models": []}', "application/json")

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        asked = sum("question" in json.dumps(item) for item in request.get("input", ()) if item.get("role") == "user")
        said = {"type": "output_text", "text": f"I was asked {asked} times.", "annotations": []}
        item = {"type": "message", "id": f"msg_{asked}", "role": "assistant", "status": "completed", "content": [said]}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        response = {"id": f"resp_{asked}", "object": "response", "status": "completed", "output": [item], "usage": usage}
        events = [
            {"type": "response.created", "response": {**response, "output": [], "status": "in_progress"}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": response},
        ]
        self.send("".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events).encode(), "text/event-stream")

    def send(self, body, kind):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
print(server.server_port, flush=True)
server.serve_forever()
EOF
"${PYTHON:-python3}" model.py >port &
server=$!
until [ -s port ]; do sleep 0.1; done
cat >codex/config.toml <<EOF
model = "gpt-5.1"
model_provider = "here"
[model_providers.here]
name = "here"
base_url = "http://127.0.0.1:$(cat port)/v1"
wire_api = "responses"
[analytics]
enabled = false
EOF
run() { (cd project && env -i PATH="$PATH" HOME="$work" CODEX_HOME="$work/codex" \
    timeout 40 ../npm/node_modules/.bin/codex exec "$@" </dev/null 2>/dev/null); }
run --skip-git-repo-check "First question"
first=$(find codex/sessions -name 'rollout-*.jsonl')
id=$(basename "$first" .jsonl | grep -oE '[0-9a-f]{8}-[0-9a-f-]{27}$')
run fork --skip-git-repo-check "$id" "Second question"
fork=$(find codex/sessions -name 'rollout-*.jsonl' ! -path "$first")
"${PYTHON:-python3}" - "$first" "$fork" <<'EOF'
import json
import sys


def questions(path):
    lines = [json.loads(line) for line in open(path, encoding="utf-8")]
    said = [line["payload"] for line in lines if line["type"] == "response_item"]
    texts = [part.get("text", "") for item in said if item.get("role") == "user" for part in item["content"]]
    return lines[0]["payload"], lines[1]["ordinal"], [text for text in texts if "question" in text]


_, _, asked = questions(sys.argv[1])
meta, ordinal, own = questions(sys.argv[2])
print("the first session's file:", asked)
print("the fork's file:         ", own, "from line", ordinal, "of", meta["forked_from_id"] and "the first session")
assert asked == ["First question"], "changed: the first session's file holds something else"
assert own == ["Second question"], "changed: the fork's file holds what it shares"
assert meta["forked_from_ordinal_exclusive"] < ordinal, "changed: its lines count anew"
EOF
