#!/usr/bin/env bash
# reeltime 1.0.0: of two requests that asyncio has on their way at once, one is recorded, and the other gets a stranger's reply.
#
# `tape run` records "the outermost boundary": a request inside a recorded tool isn't an event of its own. Whether one is
# inside another is kept for each thread, and all tasks of a loop share one: while a request waits, every other task's request
# counts as a part of it. Nothing is said when the run is recorded. A replay of the same program then hands out what is there:
# the call site is the same, so the next recording from it will do, whatever it answered ("matched with drifted content"), and
# the exit status is 0.
#
# Most would guess: both requests are on the tape, as they are with threads, or the recording says that one is missing.
#
# Why it matters: `asyncio.gather` is how agents call several tools or models at once. The replay that is to show why an
# agent failed shows it with answers to other questions.
set -eu
work=$(mktemp -d)
trap 'kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"
"${PYTHON:-python3}" -m venv venv
venv/bin/pip install -q --no-compile reeltime==1.0.0 httpx==0.28.1
cat > server.py <<'END'
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Echo(BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(0.2)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"the answer to {self.path}".encode())

    def log_message(self, *words):
        print(self.path, file=sys.stderr)


server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
with open("port.new", "w") as port:
    port.write(str(server.server_address[1]))
import os
os.rename("port.new", "port")
server.serve_forever()
END
cat > agent.py <<'END'
import asyncio

import httpx

URL = f"http://127.0.0.1:{open('port').read()}"


async def main():
    async with httpx.AsyncClient() as client:
        for day in ("monday", "tuesday"):
            replies = await asyncio.gather(*(client.get(f"{URL}/{day}/{name}") for name in ("a", "b")), return_exceptions=True)
            for name, reply in zip("ab", replies):
                print(f"/{day}/{name}:", getattr(reply, "text", type(reply).__name__))


asyncio.run(main())
END
venv/bin/python server.py 2> requests &
server=$!
until test -e port; do sleep 0.1; done
venv/bin/tape run venv/bin/python agent.py > recorded 2> said
status=0
venv/bin/tape replay > replayed 2> differences || status=$?
echo "requests: $(wc -l < requests), $(grep -o 'recorded [0-9]* events' said)"
echo "the run that was recorded:"; sed 's/^/  /' recorded
echo "its replay, with exit status $status:"; sed 's/^/  /' replayed
test "$(wc -l < requests)" = 4
grep -q 'recorded 2 events' said || { echo "changed: not one of each two is recorded"; exit 1; }
grep -q '^/monday/b: the answer to /tuesday/a$' replayed || { echo "changed: no stranger's reply"; exit 1; }
test "$status" = 0 || { echo "changed: the replay fails"; exit 1; }
