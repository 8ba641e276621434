"""What else is in the stores of a generation: topics of the event log, and what other frameworks keep."""

from __future__ import annotations

import asyncio
from contextlib import closing
from datetime import UTC, datetime, timedelta

from harnpy.adapters.langgraph import HarnpySaver
from harnpy.adapters.openai_agents import HarnpySession
from harnpy.eventlog import LogEvent, StoreEventLog
from harnpy.eventlog.bearer import BearerSessions, CreateSession, TouchSession
from harnpy.eventlog.waitpoints import Waitpoints
from harnpy.storage import open_store
from tests.stored.graph import graph
from tests.stored.still import STILL
from tests.stored.tokens import BEGIN, TOKENS


def write_topics(url: str) -> None:
    """Write topics, cursors, waitpoints and bearer sessions."""
    with closing(StoreEventLog(open_store(url), now=STILL.now)) as log:
        for n in range(5):
            log.append(
                "orders", LogEvent("placed", {"id": n, "text": "ünïcödé", "price": 1.5}, {"by": "shop"})
            )
        log.append("orders", LogEvent("shipped", None, occurred_at_ms=1_600_000_000_000))
        log.ack("orders", "mailer", 3)
        log.ack("orders", "Printer/2 ü", 0)
        for n in range(4):
            log.append("compacted", LogEvent("tick", n))
        log.compact("compacted", 2)
        log.append("compacted", LogEvent("tick", [4]))
        _waitpoints(Waitpoints(log, now=STILL.now, new_id=STILL.new))
        _bearer(BearerSessions(log, clock=lambda: datetime.fromtimestamp(STILL.now(), UTC)))


def _waitpoints(points: Waitpoints) -> None:
    points.create("open", {"customer": "ada"})
    points.create()
    points.create("an id with blanks: ü")
    points.complete("completed", {"day": "Monday"}, by="carrier", create=True)
    points.complete("completed", {"day": "Tuesday"})
    points.create("cancelled")
    points.cancel("cancelled", reason="returned", by="ada")
    points.wait("open", wait_id="expired", timeout=0)
    points.wait(["completed", "open"], wait_id="one-of-two", all=False)
    points.enter(["open", "signalled later"], wait_id="still-waiting", timeout=1e9).look()


def _bearer(sessions: BearerSessions) -> None:
    begin = datetime.fromtimestamp(BEGIN, UTC)
    late = begin + timedelta(days=36500)
    sessions.create(CreateSession("ada", late, attributes={"plan": "pro"}, id=TOKENS["alive"]))
    sessions.create(CreateSession("bob", late, id=TOKENS["expired"]))
    sessions.create(CreateSession("eve", begin + timedelta(days=1), id=TOKENS["old"]))
    sessions.touch(TouchSession(TOKENS["alive"]))
    sessions.expire(TOKENS["expired"])


async def write_items(url: str) -> None:
    """Write a session of the OpenAI Agents SDK."""
    with closing(open_store(url)) as store:
        session = HarnpySession("sdk", store)
        await session.add_items([{"role": "user", "content": "Forget this."}])
        await session.clear_session()
        await session.add_items(
            [
                {"role": "user", "content": "Which line is wrong?"},
                {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Look."}]},
                {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}", "id": "fc_1"},
                {"type": "function_call_output", "call_id": "c1", "output": "line 3"},
                {
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": "Line 3.", "annotations": []}],
                },
                {"role": "user", "content": "Never mind."},
            ]
        )
        await session.pop_item()


def write_threads(url: str) -> None:
    """Write threads of LangGraph: one that was interrupted, a copy of it, and one that was pruned."""
    with closing(open_store(url)) as store:
        saver = HarnpySaver(store)
        graph(saver).invoke({"said": ["start"]}, {"configurable": {"thread_id": "interrupted"}})
        saver.copy_thread("interrupted", "copied")
        graph(saver).invoke({"said": ["start"]}, {"configurable": {"thread_id": "pruned"}})
        saver.prune(["pruned"])


def write_all(url: str) -> None:
    write_topics(url)
    asyncio.run(write_items(url))
    write_threads(url)
