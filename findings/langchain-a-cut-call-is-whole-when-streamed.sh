#!/usr/bin/env bash
# langchain-core 1.8.3, langchain-openai 1.7.4: the first half of a tool call's argument passes for all of it, when streamed.
#
# A reply that a limit of tokens cuts off within a call's arguments ends in `{"path": "/home/ann/pro`. Read at once,
# the message has an `invalid_tool_calls` entry and no call. Streamed, it has a call with {"path": "/home/ann/pro"} in
# `tool_calls` and nothing in `invalid_tool_calls`: half of the JSON is completed as it comes, and at the end that stays.
#
# Most would guess: the same reply is the same message, streamed or not, and a call that isn't whole isn't offered.
#
# Why it matters: agents run what is in `tool_calls`. With a stream to show text as it comes, a tool that deletes, pays or writes
# gets a shorter path, amount or text than the model meant, and the session records it as the model's wish.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install -q --no-compile langchain-core==1.8.3 langchain-openai==1.7.4
venv/bin/python -I -W ignore - <<'EOF'
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from langchain_openai import ChatOpenAI

CALL = {"id": "c1", "type": "function", "function": {"name": "remove", "arguments": '{"path": "/home/ann/pro'}}
TOOL = {
    "type": "function",
    "function": {
        "name": "remove",
        "description": "Remove a folder.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
}


def choice(key, call):
    said = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {"id": "r", "model": "m", "choices": [{"index": 0, key: said, "finish_reason": "length"}]}


class Service(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        data, kind = json.dumps(choice("message", CALL)), "application/json"
        if asked.get("stream"):
            data, kind = json.dumps(choice("delta", {"index": 0, **CALL})), "text/event-stream"
            data = f"data: {data}\n\ndata: [DONE]\n\n"
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data.encode())

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Service)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_address[1]}/v1"
seen = {}
for streaming in (False, True):
    model = ChatOpenAI(model="gpt-4o", base_url=url, api_key="k", streaming=streaming).bind_tools([TOOL])
    said = model.invoke("Clean up.")
    seen[streaming] = [call["args"] for call in said.tool_calls]
    reason = said.response_metadata["finish_reason"]
    print(f"{streaming=}: {reason}, calls {seen[streaming]}, invalid ones {len(said.invalid_tool_calls)}")
assert seen == {False: [], True: [{"path": "/home/ann/pro"}]}, "no longer so"
EOF
