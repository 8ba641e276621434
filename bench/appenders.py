"""Ways to keep a message: harnpy's stores, the databases by themselves, and the sessions of other libraries.

Each is a context manager that yields a function: it appends that many messages, each with a commit of its
own. `bench/storage.py` times them in turns.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from options import peers_first

from harnpy.session import SessionRegistry
from harnpy.session.events import MESSAGE_ADDED, EventDraft
from harnpy.session.stored import StoredSession
from harnpy.storage import Row, open_store
from harnpy.world import World

Append = Callable[[int], None]

MESSAGE = {"role": "user", "content": "x" * 500}
DATA = '{"role":"user","content":"' + "x" * 500 + '"}'
#: The table of C6.2, so that both sides of a ratio write the same.
SQLITE = """CREATE TABLE records (
  rid INTEGER PRIMARY KEY, type TEXT NOT NULL, time INTEGER NOT NULL, turn INTEGER,
  more INTEGER NOT NULL DEFAULT 0, cost REAL, tool_key BLOB, data TEXT NOT NULL, rest TEXT) STRICT"""
#: The table of C6.3.
POSTGRES = """CREATE TABLE bare (
  sid bigint, seq bigint, type text NOT NULL, time timestamptz NOT NULL, turn bigint, more integer NOT NULL,
  cost float8, tool_key bytea, data json NOT NULL, rest json, PRIMARY KEY (sid, seq))"""


class Plain:
    """Rows as they are: the codec isn't measured."""

    def encode(self, records: Sequence[Row]) -> list[Row]:
        return list(records)

    def decode(self, rows: Sequence[Row]) -> list[Row]:
        return list(rows)

    def texts(self, rows: Sequence[Row]) -> list[str | None]:
        return [row.data for row in rows]


def record(seq: int) -> Row:
    return Row(seq, "message_added", seq, DATA)


@contextmanager
def bare_sqlite(file: Path, synchronous: str) -> Iterator[Append]:
    """`sqlite3` alone: one insert, one transaction."""
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"PRAGMA synchronous = {synchronous}")
        db.execute(SQLITE)
        numbers = count()

        def append(times: int) -> None:
            for _ in range(times):
                db.execute(
                    "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (next(numbers), "message_added", 1, None, 0, None, None, DATA, None),
                )

        yield append


@contextmanager
def bare_postgres(url: str, synchronous: str) -> Iterator[Append]:
    """`psycopg` alone: one insert, one transaction."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as db:
        db.execute("DROP TABLE IF EXISTS bare")
        db.execute(POSTGRES)
        db.execute(f"SET synchronous_commit = {synchronous}")
        numbers = count()

        def append(times: int) -> None:
            for _ in range(times):
                db.execute(
                    "INSERT INTO bare VALUES (1, %s, %s, now(), NULL, 0, NULL, NULL, %s, NULL)",
                    (next(numbers), "message_added", DATA),
                )

        yield append


@contextmanager
def records(url: str) -> Iterator[Append]:
    """Appends of one record to a stream of a harnpy store."""
    with closing(open_store(url)) as store:
        stream = store.stream("session", "records", Plain())
        stream.append([record(1)], 0)

        def append(times: int) -> None:
            for _ in range(times):
                seq = stream.version
                stream.append([record(seq + 1)], seq)

        yield append
        store.delete("session", "records")


@contextmanager
def messages(url: str) -> Iterator[Append]:
    """Messages of a harnpy session on a store: checked, written, shown in its views."""
    with closing(open_store(url)) as store:
        session = StoredSession.begin("messages", store, World())

        def append(times: int) -> None:
            for _ in range(times):
                session.write(EventDraft(MESSAGE_ADDED, MESSAGE))

        yield append
        store.delete("session", "messages")


@contextmanager
def in_memory() -> Iterator[Append]:
    """Messages of a harnpy session in memory."""
    registry = SessionRegistry()
    registry.open("s")

    def append(times: int) -> None:
        for _ in range(times):
            registry.inject("s", MESSAGE)

    yield append


@contextmanager
def agents_sdk(file: Path) -> Iterator[Append]:
    """The OpenAI Agents SDK's `SQLiteSession`."""
    with peers_first():
        from agents import SQLiteSession
    loop = asyncio.new_event_loop()
    session = SQLiteSession("s", file)

    async def add(times: int) -> None:
        for _ in range(times):
            await session.add_items([MESSAGE])  # type: ignore[list-item]

    try:
        yield lambda times: loop.run_until_complete(add(times))
    finally:
        session.close()
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


@contextmanager
def sqlite_saver(file: Path) -> Iterator[Append]:
    """LangGraph's `SqliteSaver`: a checkpoint of the conversation behind each message."""
    from langgraph.checkpoint.sqlite import SqliteSaver

    with SqliteSaver.from_conn_string(str(file)) as saver:
        yield _checkpoints(saver)


@contextmanager
def memory_saver() -> Iterator[Append]:
    """LangGraph's `InMemorySaver`, likewise."""
    from langgraph.checkpoint.memory import InMemorySaver

    yield _checkpoints(InMemorySaver())


def _checkpoints(saver: Any) -> Append:
    from langchain_core.messages import HumanMessage
    from langgraph.checkpoint.base import empty_checkpoint

    said: list[Any] = []
    config: dict[str, Any] = {"configurable": {"thread_id": "s", "checkpoint_ns": ""}}
    steps = count(1)

    def append(times: int) -> None:
        nonlocal config
        for _ in range(times):
            step = next(steps)
            said.append(HumanMessage(MESSAGE["content"], id=str(step)))
            checkpoint = empty_checkpoint()
            checkpoint["channel_values"] = {"messages": list(said)}
            checkpoint["channel_versions"] = {"messages": step}
            config = saver.put(config, checkpoint, {"source": "loop", "step": step}, {"messages": step})

    return append
