"""Databases of frameworks: LangGraph's checkpoints, and the sessions of OpenAI's Agents SDK.

They are only read, and nothing in them is run: a pickled value is refused. Each thread is a conversation of
its own. Read by what langgraph-checkpoint-sqlite 3.1, langgraph-checkpoint-postgres 3.2 and openai-agents
0.24 write. Spec: 10 §C17.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from msgspec import DecodeError
from msgspec.msgpack import decode as from_msgpack

from harnpy.session import events as kinds
from harnpy.session.errors import TransferError
from harnpy.session.transfer import langchain, listed
from harnpy.session.transfer.blocks import as_text
from harnpy.session.transfer.listed import Listing, Thread
from harnpy.session.transfer.response_items import (
    from_response_item,
    from_response_output,
    from_response_parts,
)
from harnpy.version import install_command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from harnpy.session.transfer.foreign import Conversation, Json
    from harnpy.world import World

    #: Runs a query, whose values are ``?``, and returns its rows.
    Query = Callable[..., Sequence[Any]]

LANGGRAPH, AGENTS = "langgraph", "openai-agents"
#: How files are named that may be such a database.
SUFFIXES = (".db", ".sqlite", ".sqlite3")
_TABLES = {LANGGRAPH: {"checkpoints"}, AGENTS: {"agent_sessions", "agent_messages"}}


def is_url(path: str) -> bool:
    """Return whether a path is the address of a PostgreSQL database."""
    return path.startswith(("postgresql://", "postgres://"))


def tool_of(path: str, world: World) -> str | None:
    """Return whose database a file or an address is; None for one of somebody else, and for another file.

    Raises `TransferError` for an address that is none or can't be reached.
    """
    try:
        with opened(path, world) as query:
            tables = {name for (name,) in query(_POSTGRES_TABLES if is_url(path) else _SQLITE_TABLES)}
    except (OSError, TransferError):
        if is_url(path):
            raise
        return None
    found = next((tool for tool, needed in _TABLES.items() if needed <= tables), None)
    if found is None and is_url(path):
        raise TransferError("this database has no tables of LangGraph's or of the Agents SDK's")
    return found


_SQLITE_TABLES = "SELECT name FROM sqlite_master"
_POSTGRES_TABLES = "SELECT tablename::text FROM pg_tables WHERE schemaname = ANY(current_schemas(false))"


def threads(tool: str, path: str, world: World) -> Iterator[Thread]:
    """Yield the conversations of a database. Raises `TransferError` for one that can't be read."""
    read = {LANGGRAPH: _saved if is_url(path) else _checkpoints, AGENTS: _sessions}[tool]
    with opened(path, world) as query:
        yield from read(query)


@contextmanager
def opened(path: str, world: World) -> Iterator[Query]:
    """Open a database, to read, and yield what runs queries.

    A file is left without a trace, unless somebody is at work on it. Raises `TransferError`, as a query does.
    """
    if is_url(path):
        try:
            psycopg: Any = import_module("psycopg")
        except ImportError:
            raise TransferError(f"this needs psycopg: {install_command('postgres')}") from None
        error, connect = psycopg.Error, partial(psycopg.connect, path, autocommit=True)
    else:
        if not world.files.is_file(path):
            raise TransferError("this is no file")
        logs = [log for log in (f"{path}-wal", f"{path}-journal") if world.files.is_file(log)]
        for read in (path, *logs):
            world.files.reader(read).close()  # SQLite asks nobody
        quiet = not any(world.files.status(log).st_size for log in logs)
        name = f"file:{quote(world.files.real_path(path))}?mode=ro{'&immutable=1' if quiet else ''}"
        error, connect = sqlite3.Error, partial(sqlite3.connect, name, uri=True)

    def rows(query: str, *values: Any) -> list[Any]:
        try:
            found: list[Any] = connection.execute(query, values).fetchall()
        except (error, UnicodeDecodeError) as problem:  # a name that is no text breaks SQLite's message
            raise TransferError(_unreadable(problem)) from None
        return found

    try:
        connection = connect()
    except error as problem:
        raise TransferError(_unreadable(problem)) from None
    with closing(connection):
        if is_url(path):
            connection.read_only = True
            yield lambda query, *values: rows(query.replace("?", "%s"), *values)
        else:
            yield rows


def _unreadable(problem: Exception) -> str:
    return f"this is no database that can be read: {' '.join(str(problem).split())}"


# LangGraph. The newest checkpoint of a thread has all messages.


#: The extensions of MessagePack with which LangGraph writes objects.
_ONE, _MANY, _NAMED, _MADE, _MODEL_1, _MODEL, _ARRAY, _SNAPSHOT = range(8)
_QUESTION = "__interrupt__"


_NEWEST = (
    "SELECT thread_id, max(checkpoint_id) FROM checkpoints WHERE checkpoint_ns = '' "
    "GROUP BY thread_id ORDER BY thread_id"
)
_BELOW = (
    "SELECT thread_id, count(DISTINCT checkpoint_ns) FROM checkpoints WHERE checkpoint_ns <> '' "
    "GROUP BY thread_id"
)


def _checkpoints(query: Query) -> Iterator[Thread]:
    def thread(id: str, checkpoint: str) -> Conversation:
        [(sort, data)] = query(
            "SELECT type, checkpoint FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = '' "
            "AND checkpoint_id = ?",
            id,
            checkpoint,
        )
        writes = query(
            "SELECT task_id, channel, type, value FROM writes WHERE thread_id = ? AND checkpoint_ns = '' "
            "AND checkpoint_id = ? ORDER BY task_id, idx",
            id,
            checkpoint,
        )
        return _state(id, _value(sort, data), writes, below.get(id, 0))

    below = dict(query(_BELOW))
    for id, checkpoint in query(_NEWEST):
        yield Thread(str(id), lambda id=id, checkpoint=checkpoint: thread(id, checkpoint))  # type: ignore[misc]


#: The channels of a thread's checkpoint in a namespace that stand in rows of their own, in PostgreSQL.
VALUES = (
    "SELECT b.channel, b.type, b.blob FROM checkpoints c "
    "CROSS JOIN LATERAL jsonb_each_text(c.checkpoint -> 'channel_versions') v "
    "JOIN checkpoint_blobs b ON b.thread_id = c.thread_id AND b.checkpoint_ns = c.checkpoint_ns "
    "AND b.channel = v.key AND b.version = v.value "
    "WHERE c.thread_id = ? AND c.checkpoint_ns = ? AND c.checkpoint_id = ?"
)


def _saved(query: Query) -> Iterator[Thread]:
    """The same from PostgreSQL, where channels stand in rows of their own."""

    def thread(id: str, checkpoint: str) -> Conversation:
        [(state,)] = query(
            "SELECT checkpoint FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = '' "
            "AND checkpoint_id = ?",
            id,
            checkpoint,
        )
        blobs = query(VALUES, id, "", checkpoint)
        values = {channel: _value(sort, data) for channel, sort, data in blobs if sort != "empty"}
        writes = query(
            "SELECT task_id, channel, type, blob FROM checkpoint_writes WHERE thread_id = ? "
            "AND checkpoint_ns = '' AND checkpoint_id = ? ORDER BY task_id, idx",
            id,
            checkpoint,
        )
        known = {**state, "channel_values": {**(state.get("channel_values") or {}), **values}}
        return _state(id, known, writes, below.get(id, 0))

    below = dict(query(_BELOW))
    for id, checkpoint in query(_NEWEST.replace("checkpoint_id)", 'checkpoint_id COLLATE "C")')):
        yield Thread(str(id), lambda id=id, checkpoint=checkpoint: thread(id, checkpoint))  # type: ignore[misc]


def _state(id: str, checkpoint: Any, writes: Sequence[Any], below: int) -> Conversation:
    """Return the conversation of a thread's newest checkpoint; ``writes`` are (task, channel, type, value).

    ``below`` is how many graphs below it have checkpoints of their own. Raises `TransferError`.
    """
    listing = Listing(LANGGRAPH)
    values = checkpoint["channel_values"]
    time = listed.time_of(checkpoint.get("ts"))
    channel = next((name for name, value in values.items() if _are_messages(value)), None)
    messages = [] if channel is None else values[channel]
    for number, message in enumerate(messages, 1):
        langchain.take(listing, message, f"message {number} of thread '{id}'", time)
    answered = {task for task, name, _, _ in writes if name == "__resume__"}
    for task, name, sort, data in writes:
        if name == _QUESTION and task not in answered:
            _ask(listing, _value(sort, data), time)
    others = sum(name != channel and not name.startswith(("branch:", "__")) for name in values)
    if others:
        listing.lose("other channels", others)
    if below:
        listing.lose("graphs below", below)
    return listing.conversation(id)


def _ask(listing: Listing, interrupts: Any, time: int) -> None:
    """Take in what a thread waits for: nobody has answered it."""
    for each in interrupts if isinstance(interrupts, list) else [interrupts]:
        told = each.get("kwargs", {}) if isinstance(each, dict) else {"value": each}
        asked = as_text(told.get("value"))
        data = {"prompt": asked, "status": "pending", "request_id": str(told.get("id") or "") or None}
        listing.note(kinds.EXTERNAL_INPUT, data, time)


def _are_messages(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and isinstance(value[0], dict)
        and langchain.fields_of(value[0]) is not None
    )


def _value(sort: Any, data: Any) -> Any:
    """Return a value as LangGraph keeps it, objects as what they were made of. Nothing is made of it."""
    if sort == "msgpack" and isinstance(data, (bytes, memoryview)):
        try:
            return from_msgpack(data, ext_hook=_extension)
        except (DecodeError, RecursionError):
            raise TransferError("a checkpoint isn't MessagePack") from None
    if sort == "json":
        return listed.read_document(data)
    if sort in (None, "null", "empty"):
        return None
    raise unread(sort)


def unread(sort: Any) -> TransferError:
    """Return the error of a value that only the program that wrote it can read."""
    return TransferError(f"a checkpoint is kept as '{sort}', which harnpy doesn't read: nothing in it is run")


def _extension(code: int, data: memoryview) -> Any:
    value = from_msgpack(bytes(data), ext_hook=_extension)
    if code in (_MODEL, _MODEL_1, _NAMED):
        return {"type": "constructor", "id": [value[1]], "kwargs": value[2]}
    return value[2] if code in (_ONE, _MANY, _MADE) else value if code == _SNAPSHOT else None


# OpenAI's Agents SDK: items of the Responses API, a row each.


def _sessions(query: Query) -> Iterator[Thread]:
    def session(id: str) -> Conversation:
        items = query(
            "SELECT id, message_data, created_at FROM agent_messages WHERE session_id = ? ORDER BY id", id
        )
        return _items(id, items)

    for (id,) in query("SELECT session_id FROM agent_sessions ORDER BY created_at, session_id"):
        yield Thread(str(id), lambda id=id: session(id))  # type: ignore[misc]


def _items(id: str, rows: Sequence[Any]) -> Conversation:
    listing = Listing(AGENTS)
    answer = _Answer(listing)
    for number, text, created in rows:
        item, time = listed.read_document(text, listing), _moment(created)
        if not isinstance(item, dict) or ("type" not in item and "role" not in item):
            raise TransferError(f"row {number} is no item of a session: an encrypted one can't be read")
        kind = item.get("type", "message")
        if kind == "message" and item.get("role") != "assistant":
            answer.end()
            content = from_response_parts(item.get("content"))
            if item.get("role") == "user":
                listing.say({"role": "user", "content": content}, number, time)
            else:
                listing.instruct(listed.text_of(content), number, time)
        elif str(kind).endswith("_call_output"):
            answer.end()
            said = from_response_output(item)
            listing.say({key: said[key] for key in ("role", "tool_call_id", "content")}, number, time)
        else:
            answer.take(item, number, time)
    answer.end()
    return listing.conversation(id)


class _Answer:
    """What a model said at once, on several rows. Nobody tells which model that was."""

    def __init__(self, listing: Listing) -> None:
        self._listing = listing
        self._blocks: list[Json] = []
        self._thoughts: list[str] = []
        self._place: tuple[Any, int] = (None, 0)

    def take(self, item: Json, number: int, time: int) -> None:
        self._place = (number, time)
        for block in from_response_item(item):
            if block.get("type") == "text":
                self._blocks.append({"type": "text", "text": block["text"]})
            elif block.get("type") == "tool_use":
                self._blocks.append({key: block[key] for key in ("type", "id", "name", "input")})
            elif block.get("type") == "reasoning":
                if block.get("encrypted_content"):
                    self._listing.lose("reasoning of a model that isn't told")
                if text := listed.summary_of(block):
                    self._thoughts.append(text)
            else:
                self._listing.lose(f"{block.get('type')} items")

    def end(self) -> None:
        """End the message that the items are of."""
        if self._blocks or self._thoughts:
            message = listed.answer(self._blocks, self._thoughts, None)
            self._listing.say(message, *self._place)
        self._blocks, self._thoughts = [], []


def _moment(text: Any) -> int:
    """Return a time of SQLite's, which is in UTC."""
    return listed.time_of(f"{text}".replace(" ", "T").removesuffix("Z") + "Z")
