#!/usr/bin/env bash
# google-genai 3.6.1: a chat shows a question that got no answer in its history, but never sends it again.
#
# A chat keeps two histories. get_history() returns the comprehensive one. What send_message sends is the curated one, which
# leaves out every turn whose answer has no parts, such as one that thinking used up (finishReason MAX_TOKENS) or that
# was blocked: the answer and the user's message, which was fine. No error and no warning says so.
#
# Most would guess: the model gets what get_history() returns, or at least the user's own words.
#
# Why it matters: whoever stores get_history(), or shows it to a person, has another conversation than the model: it denies
# what it was told. A session that is built again from the stored history goes on differently than the live one.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install -q --no-compile google-genai==3.6.1
venv/bin/python -I -W ignore - <<'EOF'
import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

from google import genai
from google.genai import types

sent, replies = [], []


class Service(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        sent.append([part["text"] for content in body["contents"] for part in content["parts"]])
        parts, reason = replies.pop(0)
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": reason}
        reply = json.dumps({"candidates": [candidate]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *args):
        pass


service = HTTPServer(("127.0.0.1", 0), Service)
Thread(target=service.serve_forever, daemon=True).start()
address = types.HttpOptions(base_url=f"http://127.0.0.1:{service.server_port}")
client = genai.Client(api_key="none", http_options=address)
chat = client.chats.create(model="gemini-2.5-flash")


def shown(chat):
    return [part.text for content in chat.get_history() for part in content.parts or []]


replies += [([{"text": "Noted."}], "STOP"), ([], "MAX_TOKENS"), ([{"text": "Which boat?"}], "STOP")]
for said in ("The quay is 7.", "The boat is the Heron.", "When does the boat leave?"):
    chat.send_message(said)
print("get_history():", shown(chat)[:-1])
print("sent:         ", sent[-1])
assert "The boat is the Heron." in shown(chat), "changed: it isn't in the history"
assert sent[-1] == ["The quay is 7.", "Noted.", "When does the boat leave?"], "changed: it is sent again"

again = client.chats.create(model="gemini-2.5-flash", history=chat.get_history())
replies.append(([{"text": "Soon."}], "STOP"))
again.send_message("And from where?")
print("sent by a chat made from that history:", sent[-1])
EOF
