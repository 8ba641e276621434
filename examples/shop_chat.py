"""A shop's chat: an agent behind a `useChat` front end that asks the customer to confirm before it orders.

    python examples/shop_chat.py                  # in memory; this program is the browser, too
    python examples/shop_chat.py sqlite:shop.db   # kept in a file
    uvicorn --factory examples.shop_chat:serve    # a server: useChat's `api` is http://localhost:8000/

The mock model answers. Customers see only their own chats: a bearer token identifies the caller.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import httpx2

from harnpy import AgentDef, LoopFactory, tool
from harnpy.adapters.ai_sdk import ChatApp
from harnpy.adapters.front_ends import front_end_tool
from harnpy.eventlog import StoreEventLog
from harnpy.eventlog.bearer import BearerSessions
from harnpy.eventlog.http import BearerAuth
from harnpy.session import SessionRuntime

STOCK = {"tea": 12, "cups": 0}
SIZE = {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}


@tool(read_only=True)
def in_stock(article: str) -> int:
    """How many of an article there are.

    Args:
        article: Its name.
    """
    return STOCK.get(article, 0)


class Shop:
    """The service: ``app`` is what a server mounts."""

    def __init__(self, store: str = "memory:", model: str = "mock/mock") -> None:
        self.loops = LoopFactory(tools=[in_stock])
        self.runtime = SessionRuntime(store, agents=self.loops)
        agent = AgentDef("shop", system_prompt="Sell tea. Confirm each order.", model=model)
        chat = ChatApp(
            self.runtime,
            agent,
            tools=[front_end_tool("confirm", "Ask the customer to confirm an order.", SIZE)],
            session_id=lambda scope, id: f"{scope['auth_principal']}/{id}",
        )
        tokens = BearerSessions(StoreEventLog(self.runtime.store))
        self.app = BearerAuth(chat, tokens, static_keys={"key-of-ann": "ann", "key-of-bob": "bob"})


class Browser:
    """What a page with `useChat` does: it holds the messages, and sends all of them."""

    def __init__(self, app: Any, key: str, chat: str) -> None:
        headers = {"authorization": f"Bearer {key}"}
        transport = httpx2.ASGITransport(app)
        self.client = httpx2.AsyncClient(transport=transport, base_url="http://shop", headers=headers)
        self.chat = chat
        self.messages: list[dict[str, Any]] = []

    async def load(self) -> None:
        found = await self.client.get(f"/{self.chat}")
        self.messages = found.json() if found.status_code == 200 else []

    async def send(self) -> None:
        """Send the messages, print what is streamed, and take the answer in."""
        sent = {"id": self.chat, "messages": self.messages}
        stream = await self.client.post("/", json=sent)
        for frame in stream.text.split("\n\n")[:-2]:
            chunk = json.loads(frame.removeprefix("data: "))
            if chunk["type"] == "text-delta":
                print("shop:", chunk["delta"])
            elif chunk["type"] == "tool-input-available":
                print(f"({chunk['toolName']} {json.dumps(chunk['input'])})")
        await self.load()

    async def say(self, text: str) -> None:
        print("customer:", text)
        id = f"u{len(self.messages)}"
        self.messages.append({"id": id, "role": "user", "parts": [{"type": "text", "text": text}]})
        await self.send()

    async def answer_the_dialog(self, output: Any) -> None:
        part = next(part for part in self.messages[-1]["parts"] if part.get("state") == "input-available")
        part |= {"state": "output-available", "output": output}
        await self.send()


async def main(store: str) -> None:
    shop = Shop(store)
    mock = shop.loops.mock
    mock.add({"text": "Let me look.", "tool_calls": [{"name": "in_stock", "arguments": {"article": "tea"}}]})
    mock.add({"text": "We have tea.", "tool_calls": [{"name": "confirm", "arguments": {"order": "2 tea"}}]})
    mock.add({"text": "Your tea is on its way."})

    page = Browser(shop.app, "key-of-ann", "chat-1")
    await page.say("I want 2 tea.")
    await page.answer_the_dialog({"confirmed": True})

    again = Browser(shop.app, "key-of-ann", "chat-1")  # the page is loaded again
    await again.load()
    print(len(again.messages), "messages,", len(again.messages[1]["parts"]), "parts in the answer")
    print("bob:", (await Browser(shop.app, "key-of-bob", "chat-1").client.get("/chat-1")).json()["error"])
    print("a stranger:", (await Browser(shop.app, "?", "chat-1").client.get("/chat-1")).status_code)
    print(*(message["role"] for message in shop.runtime.get("ann/chat-1").messages()))
    shop.runtime.close()


def serve() -> Any:
    """Return the application, for a server."""
    return Shop("sqlite:shop.db").app


if __name__ == "__main__":
    asyncio.run(main(*(sys.argv[1:2] or ["memory:"])))
