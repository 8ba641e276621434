"""A conversation in two browser tabs: both see it word by word, and one of them is in control.

Needs the extra `serve` (Starlette, uvicorn). `python examples/two_tabs.py serve [STORE]` serves it at
http://127.0.0.1:8000/: open that twice. Without `serve` the program plays both tabs itself and ends.
The same with FastAPI: two_tabs_fastapi_server.py.
"""

import asyncio
import json
import sys

from starlette.applications import Starlette
from starlette.responses import HTMLResponse, JSONResponse, StreamingResponse
from starlette.routing import Route

from harnpy.session import Chunk, NotController
from harnpy.session.aio import AsyncSessionRuntime

SESSION = "tabs"

PAGE = """<!doctype html><meta charset="utf-8"><title>Two tabs</title>
<p><button id="take">Take control</button> <output id="who"></output></p>
<pre id="log"></pre><pre id="answer"></pre>
<form><input name="text" autocomplete="off" autofocus> <button>Send</button></form>
<script>
const tab = Math.random().toString(36).slice(2), at = document.getElementById.bind(document)
const headers = {"content-type": "application/json"}
const post = (path, body) => fetch(path, {method: "POST", headers, body: JSON.stringify({tab, ...body})})
const events = new EventSource("/events?tab=" + tab)
events.addEventListener("chunk", ({data}) => {
  const {text, start} = JSON.parse(data)
  at("answer").textContent = (start ? "" : at("answer").textContent) + text
})
events.addEventListener("said", ({data}) => {
  const {role, content} = JSON.parse(data)
  at("log").append(role + ": " + content + "\\n")
  at("answer").textContent = ""
})
events.addEventListener("control", ({data}) => {
  at("who").textContent = JSON.parse(data).controller === tab ? "You are in control." : "You are looking on."
})
at("take").onclick = () => post("/take")
document.forms[0].onsubmit = async (submit) => {
  submit.preventDefault()
  const reply = await post("/send", {text: document.forms[0].text.value})
  if (reply.ok) document.forms[0].reset()
  else alert(await reply.text())
}
</script>"""


async def agent(messages):
    """Stands in for a model: repeats what was said, word by word."""
    for word in f"You said: {messages[-1]['content']}".split():
        await asyncio.sleep(0.05)
        yield word + " "


def sent_event(name, data, id=None):
    """Return a server-sent event."""
    number = "" if id is None else f"id: {id}\n"
    return f"{number}event: {name}\ndata: {json.dumps(data)}\n\n"


async def followed(runtime, tab, after):
    """Attach a tab, and yield what happens behind event ``after`` until the tab goes away."""
    await runtime.attach(SESSION, tab)
    types = ["message_added", "transcript_event"]
    try:
        async with await runtime.watch(SESSION, after=after, types=types, chunks=True) as watch:
            while True:
                found = await watch.next(timeout=10)
                if found is None:  # nothing happens: say that the tab is still there
                    await runtime.heartbeat(SESSION, tab)
                elif isinstance(found, Chunk):
                    yield sent_event("chunk", found._asdict())
                elif found.type == "message_added":
                    yield sent_event("said", found.data, found.seq)
                elif found.data["kind"] == "live_session_client":
                    controller = found.data["metadata"]["live_controller_id"]
                    yield sent_event("control", {"controller": controller}, found.seq)
    finally:
        await runtime.detach(SESSION, tab, reason="its stream has ended")


def app_of(runtime):
    async def page(request):
        return HTMLResponse(PAGE)

    async def events(request):
        after = int(request.headers.get("last-event-id", 0))
        stream = followed(runtime, request.query_params["tab"], after)
        return StreamingResponse(stream, media_type="text/event-stream")

    async def take(request):
        await runtime.takeover(SESSION, (await request.json())["tab"])
        return JSONResponse({})

    async def send(request):
        body = await request.json()
        try:
            result = await runtime.send(SESSION, body["text"], agent=agent, client=body["tab"])
        except NotController as refused:
            return JSONResponse({"error": str(refused)}, 409)
        return JSONResponse({"answer": result.text})

    post = ["POST"]
    routes = [Route("/", page), Route("/events", events)]
    return Starlette(routes=[*routes, Route("/take", take, methods=post), Route("/send", send, methods=post)])


# The demonstration: the server, and two tabs that read its streams.


class Tab:
    """A tab. What it shows are lines, the last one the answer that is being made."""

    def __init__(self, name, http):
        self.name = name
        self.http = http
        self.lines = []
        self.answer = ""
        self.pieces = 0

    async def read(self, lines):
        """Read the stream of events until the tab shows so many lines."""
        async with self.http.stream("GET", "/events", params={"tab": self.name}) as stream:
            name = ""
            async for line in stream.aiter_lines():
                key, _, value = line.partition(": ")
                if key == "event":
                    name = value
                elif key == "data":
                    self.show(name, json.loads(value))
                if len(self.lines) == lines:
                    return

    def show(self, name, data):
        if name == "chunk":
            self.answer = data["text"] if data["start"] else self.answer + data["text"]
            self.pieces += 1
        elif name == "said":
            assert self.answer in ("", data["content"]), "the pieces are the message"
            self.lines.append(f"{data['role']}: {data['content']}")
            self.answer = ""
        elif data["controller"] is not None:
            self.lines.append(f"[{data['controller']} is in control]")

    async def post(self, path, **body):
        reply = await self.http.post(path, json={"tab": self.name, **body}, timeout=30)
        return reply.status_code, reply.json()


async def demonstrate(store):
    import uvicorn
    from httpx2 import AsyncClient

    async with AsyncSessionRuntime(store) as runtime:
        await runtime.open(SESSION, create=True)
        server = uvicorn.Server(uvicorn.Config(app_of(runtime), port=0, log_level="warning"))
        serving = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        async with AsyncClient(base_url=f"http://127.0.0.1:{port}") as http:
            left, right = Tab("left", http), Tab("right", http)
            streams = [asyncio.create_task(tab.read(6)) for tab in (left, right)]
            while len(await runtime.clients(SESSION)) < 2:
                await asyncio.sleep(0.01)
            await left.post("/take")
            print(*await left.post("/send", text="Hello from the left tab"))
            print(*await right.post("/send", text="Me too!"))
            await right.post("/take")
            print(*await right.post("/send", text="Now it is my turn"))
            await asyncio.gather(*streams)
        server.should_exit = True
        await serving
    print("both tabs show the same:", left.lines == right.lines, "in pieces:", left.pieces > 2 < right.pieces)
    print("\n".join(right.lines))


if __name__ == "__main__":
    given = sys.argv[1:]
    if given[:1] != ["serve"]:
        asyncio.run(demonstrate(given[0] if given else "memory:"))
    else:
        import uvicorn

        with_tabs = AsyncSessionRuntime(given[1] if given[1:] else "memory:")
        asyncio.run(with_tabs.open(SESSION, create=True))
        uvicorn.run(app_of(with_tabs), port=8000, timeout_graceful_shutdown=1)
