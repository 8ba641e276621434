#!/usr/bin/env bash
# langchain-google-genai 4.4.3: a tool's result that happens to be JSON reaches the model as another value.
#
# A ToolMessage's content is a text. ChatGoogleGenerativeAI tries to read it as JSON before it is sent, and sends what it
# read: "1.10" goes as the number 1.1, "1e3" as 1000.0, "null" as null. What is no JSON goes as the text that it is.
#
# Most would guess: a text is sent as it was written, as ChatOpenAI does with the same message.
#
# Why it matters: versions, ids, amounts and codes are such texts. The log of the session says "1.10", the model was told
# 1.1, and pins, orders or pays that; after a change of the model's maker the same session says something else.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install -q --no-compile langchain-core==1.8.3 langchain-google-genai==4.4.3
venv/bin/python -I -W ignore - <<'EOF'
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_google_genai import ChatGoogleGenerativeAI

SAID = {"candidates": [{"content": {"role": "model", "parts": [{"text": "Ok."}]}, "finishReason": "STOP"}]}
asked = []


class Service(BaseHTTPRequestHandler):
    def do_POST(self):
        asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        data = json.dumps(SAID).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Service)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_address[1]}"
model = ChatGoogleGenerativeAI(model="gemini-2.5-pro", base_url=url, google_api_key="k")


def told(text):
    """Return what the service is told of a result with this text."""
    call = {"name": "newest", "args": {}, "id": "c1"}
    result = ToolMessage(text, tool_call_id="c1", name="newest")
    model.invoke([HumanMessage("Which is the newest?"), AIMessage("", tool_calls=[call]), result])
    return asked.pop()["contents"][-1]["parts"][0]["functionResponse"]["response"]["output"]


seen = {text: told(text) for text in ("1.10", "1e3", "null", "1.10.0")}
for text, value in seen.items():
    print(f"a result of {text!r}: the service is told {value!r}")
assert seen == {"1.10": 1.1, "1e3": 1000.0, "null": None, "1.10.0": "1.10.0"}, "no longer so"
EOF
