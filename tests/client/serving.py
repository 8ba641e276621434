"""A server in a process of its own: the API on a store, with an agent that answers a word after the other.

``python serving.py STORE PORT TOKEN [WORDS]``. Prompts with `parcel` have a tool called, which needs an
approval. With WORDS an answer stops behind so many words, and never ends.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette

from harnpy import AgentDef, LoopFactory, tool
from harnpy.llm.reply import Reply
from harnpy.net.admission import CALLER
from harnpy.serve.api import routes
from harnpy.serve.service import Caller, Service
from harnpy.session import SessionRuntime
from harnpy.session.errors import SessionExists

ANSWER = "It left on Monday, and \x1b[31mcomes\x1b[0m on Thursday.\nIs there\x07 anything else?"


@tool
def track(parcel: int) -> str:
    """Where a parcel is."""
    return f"parcel {parcel} is\non its way"


class Slow:
    """Says ``ANSWER`` of a parcel, and else what was said to it; no more than ``words`` words."""

    def __init__(self, words: float) -> None:
        self._words = words

    async def complete(self, request: Any) -> Reply:
        last = request.messages[-1]
        if last["role"] == "user" and "parcel" in str(last["content"]):
            return said(request, "Let me look.", [{"id": "c1", "name": "track", "arguments": {"parcel": 42}}])
        text = ANSWER if last["role"] == "tool" else f"You said: {last['content']}"
        for number, word in enumerate(text.split(" ")):
            await asyncio.sleep(0 if number < self._words else 3600)
            if request.shown is not None:
                request.shown.piece(" " * bool(number) + word)
        return said(request, text, [])


def said(request: Any, text: str, calls: list[dict[str, Any]]) -> Reply:
    called = {"requested_model": request.model, "model": request.model, "provider": request.provider}
    return Reply(text=text, tool_calls=calls, input_tokens=9, output_tokens=9, **called)


def main(store: str, port: str, token: str, words: str = "inf") -> None:
    loops = LoopFactory(tools=[track], providers={"mine": Slow(float(words))})
    runtime = SessionRuntime(store, agents=loops)
    try:
        runtime.create(AgentDef("desk", model="mine/m"), id="talk")
    except SessionExists:
        print("goes on", flush=True)
    caller = Caller("ada", frozenset({"all"}))

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if (b"authorization", f"Bearer {token}".encode()) in scope.get("headers", ()):
            scope[CALLER] = caller
        await api(scope, receive, send)

    @asynccontextmanager
    async def life(_: Any) -> Any:
        service.keep_recovering()
        yield

    service = Service(runtime)
    api = Starlette(routes=routes(service), lifespan=life)
    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning")


if __name__ == "__main__":
    main(*sys.argv[1:])
