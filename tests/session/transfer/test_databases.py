"""Databases of LangGraph and OpenAI's Agents SDK. Spec: 10 §C17.

`frameworks/*.db` were written by the packages themselves, with our words; the programs that made them are
beside them.
"""

from __future__ import annotations

import json
import pickle
import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec.msgpack
import psycopg
import pytest

from harnpy.session.log import KIND
from harnpy.session.stored import StoredSession
from harnpy.session.transfer.directories import import_sessions
from harnpy.storage import Store, open_store
from harnpy.storage.copying import all_names
from harnpy.world import World

HERE = Path(__file__).parent / "frameworks"
GRAPHS, AGENTS = HERE / "langgraph.db", HERE / "openai_agents.db"


def imported(path: Path, store: Store | None = None, **options: Any) -> tuple[Store, Any]:
    store = open_store("memory:") if store is None else store
    return store, import_sessions([str(path)], store, **options)


def load(id: str, store: Store) -> StoredSession:
    session = StoredSession.load(id, store, World())
    assert session is not None
    return session


def copied(path: Path, directory: Path) -> Path:
    return Path(shutil.copy(path, directory / path.name))


def test_threads_of_langgraph() -> None:
    store, report = imported(GRAPHS)
    assert (report.imported, report.errors) == (["langgraph-one", "langgraph-user 2/b"], [])
    assert [(loss.kind, loss.detail) for loss in report.losses] == [("other channels", "1")]
    asked, answer, result, last = load("langgraph-one", store).entries()
    assert load("langgraph-one", store).get("system_prompt") == "Be short."
    assert asked.message["content"] == "What is red?"
    call = {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "red"}}
    assert answer.message["content"] == [{"type": "text", "text": "I look."}, call]
    assert answer.event is not None
    assert answer.event.metadata["usage"]["total_tokens"] == 19
    assert (result.message["tool_call_id"], result.message["content"]) == ("c1", "warm")
    assert last.message["content"] == "It is warm."


def test_what_a_thread_waits_for_is_unanswered() -> None:
    store, _ = imported(GRAPHS)
    session = load("langgraph-user 2/b", store)
    assert session.history()[-1]["content"][1]["id"] == "c1"
    [asked] = (event.data for event in session.events() if event.type == "external_input")
    assert (asked["prompt"], asked["status"]) == ('{"ask": "May I look at red?"}', "pending")
    answered = (event.type for event in load("langgraph-one", store).events())
    assert "external_input" not in answered


def test_sessions_of_the_agents_sdk() -> None:
    store, report = imported(AGENTS)
    assert sorted(report.imported) == ["openai-agents-other", "openai-agents-talk"]
    assert [loss.kind for loss in report.losses] == ["reasoning of a model that isn't told"]
    talk = load("openai-agents-talk", store)
    _, answer, first, second, last, image = talk.window()
    assert [block["type"] for block in answer["content"]] == ["text", "tool_use", "tool_use"]
    assert answer["reasoning"] == "Look first."
    assert [first["content"], second["content"]] == ["warm", "cold"]
    assert last["content"] == "Red is warm."
    assert image["content"][1] == {"type": "image", "media_type": "image/png", "base64": "aGk/aGk+"}
    assert talk.event(2).time > 1_700_000_000_000_000


@pytest.mark.parametrize("source", [GRAPHS, AGENTS])
def test_imported_again_only_what_is_new_is_added(source: Path) -> None:
    store, first = imported(source)
    before = {id: load(id, store).version for id in first.imported}
    _, again = imported(source, store)
    assert (again.imported, len(again.skipped)) == ([], len(before))
    assert {id: load(id, store).version for id in before} == before


def test_a_session_that_grew_while_it_is_open(tmp_path: Path) -> None:
    file = copied(AGENTS, tmp_path)
    store, _ = imported(file)
    with closing(sqlite3.connect(file)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        row = ("other", '{"role": "assistant", "content": "It is a colour."}')
        writer.execute("INSERT INTO agent_messages (session_id, message_data) VALUES (?, ?)", row)
        writer.commit()
        assert (tmp_path / f"{file.name}-wal").stat().st_size > 0
        _, report = imported(file, store)
    assert report.imported == ["openai-agents-other"]
    assert load("openai-agents-other", store).window()[-1]["content"] == "It is a colour."


def test_a_thread_that_was_trimmed_goes_on_as_a_branch(tmp_path: Path) -> None:
    file = copied(GRAPHS, tmp_path)
    store, _ = imported(file)
    with closing(sqlite3.connect(file)) as writer:
        query = (
            "SELECT checkpoint FROM checkpoints WHERE thread_id = 'one' ORDER BY checkpoint_id DESC LIMIT 1"
        )
        [(data,)] = writer.execute(query)
        state = msgspec.msgpack.decode(data)
        del state["channel_values"]["messages"][:2]
        update = "UPDATE checkpoints SET checkpoint = ? WHERE thread_id = 'one'"
        writer.execute(update, (msgspec.msgpack.encode(state),))
        writer.commit()
    _, report = imported(file, store)
    assert (report.imported, report.errors) == (["langgraph-one"], [])
    window = load("langgraph-one", store).window()
    assert [message["role"] for message in window] == ["assistant", "tool", "assistant"]


def test_a_database_is_left_as_it_is_and_found_in_a_folder(tmp_path: Path) -> None:
    file = copied(GRAPHS, tmp_path)
    (tmp_path / "ours.db").write_bytes(b"no database")
    before = file.read_bytes()
    _, report = imported(tmp_path)
    assert (len(report.imported), report.errors) == (2, [])
    assert file.read_bytes() == before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["langgraph.db", "ours.db"]


#: The tables of langgraph-checkpoint-postgres 3.2.0, as far as they are read.
TABLES = """
CREATE TABLE checkpoints (
    thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT, parent_checkpoint_id TEXT, checkpoint JSONB,
    metadata JSONB);
CREATE TABLE checkpoint_blobs (
    thread_id TEXT, checkpoint_ns TEXT, channel TEXT, version TEXT, type TEXT, blob BYTEA);
CREATE TABLE checkpoint_writes (
    thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT, task_id TEXT, idx INTEGER, channel TEXT,
    type TEXT, blob BYTEA, task_path TEXT);
"""


@contextmanager
def moved_to(url: str) -> Iterator[None]:
    """Write what the file has as `PostgresSaver` does: channels but for plain values in rows of their own."""
    try:
        _move_to(url)
        yield
    finally:
        with psycopg.connect(url) as server:
            server.execute("DROP TABLE checkpoints, checkpoint_blobs, checkpoint_writes")


def _move_to(url: str) -> None:
    with psycopg.connect(url) as server, closing(sqlite3.connect(GRAPHS)) as file:
        server.execute(TABLES)
        checkpoints = (
            "SELECT thread_id, checkpoint_id, parent_checkpoint_id, checkpoint, metadata FROM checkpoints"
        )
        for thread, id, parent, data, metadata in file.execute(checkpoints):
            state = msgspec.msgpack.decode(data)
            values, versions = state.pop("channel_values"), state["channel_versions"]
            state["channel_values"] = {key: values.pop(key) for key in list(values) if key == "count"}
            row = (thread, "", id, parent, json.dumps(state), metadata.decode())
            server.execute("INSERT INTO checkpoints VALUES (%s, %s, %s, %s, %s, %s)", row)
            for name, value in values.items():
                blob = (thread, "", name, versions[name], "msgpack", msgspec.msgpack.encode(value))
                server.execute("INSERT INTO checkpoint_blobs VALUES (%s, %s, %s, %s, %s, %s)", blob)
        writes = (
            "SELECT thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, value, task_path "
            "FROM writes"
        )
        for row in file.execute(writes):
            server.execute("INSERT INTO checkpoint_writes VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)", row)


def test_threads_of_langgraph_on_a_server(bare_postgres: str) -> None:
    path: Any = bare_postgres
    _, nothing = imported(path)
    reason = "this database has no tables of LangGraph's or of the Agents SDK's"
    assert [told for _, told in nothing.errors] == [reason]
    with moved_to(bare_postgres):
        store, report = imported(path)
    file, same = imported(GRAPHS)
    assert (report.imported, report.errors, report.losses) == (same.imported, [], same.losses)
    for id in report.imported:
        assert load(id, store).window() == load(id, file).window()
    assert "external_input" in [event.type for event in load("langgraph-user 2/b", store).events()]


def test_a_password_is_told_to_nobody() -> None:
    path: Any = "postgresql://me:hush-hush@127.0.0.1:1/graphs"
    _, report = imported(path)
    [(name, reason)] = report.errors
    assert "hush-hush" not in name + reason
    assert reason.startswith("this is no database that can be read: ")


class Bomb:
    """Whoever unpickles it raises an error that no test expects."""

    def __reduce__(self) -> Any:
        return (exec, ("raise AssertionError('it was run')",))


def test_a_pickled_thread_is_refused_and_the_others_come_in(tmp_path: Path) -> None:
    file = copied(GRAPHS, tmp_path)
    with closing(sqlite3.connect(file)) as writer:
        update = "UPDATE checkpoints SET type = 'pickle', checkpoint = ? WHERE thread_id = 'one'"
        writer.execute(update, (pickle.dumps(Bomb()),))
        writer.commit()
    _, report = imported(file)
    assert report.imported == ["langgraph-user 2/b"]
    reason = "a checkpoint is kept as 'pickle', which harnpy doesn't read: nothing in it is run"
    assert report.errors == [(f"{file}: one", reason)]


def test_objects_of_any_class_are_only_read(tmp_path: Path) -> None:
    """A class that a checkpoint names isn't imported, and what it has is no message."""
    file = copied(GRAPHS, tmp_path)
    made = msgspec.msgpack.encode(["os", "system", "exit 1"])
    values = {"other": msgspec.msgpack.Ext(0, made)}
    state = msgspec.msgpack.encode({"v": 4, "ts": "2026-01-01T00:00:00+00:00", "channel_values": values})
    with closing(sqlite3.connect(file)) as writer:
        writer.execute("UPDATE checkpoints SET checkpoint = ? WHERE thread_id = 'one'", (state,))
        writer.commit()
    _, report = imported(file)
    assert (report.imported, report.errors) == (["langgraph-user 2/b"], [])


def test_a_file_that_is_no_database_is_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "no.db"
    file.write_text("no database")
    for format in ("langgraph", "openai-agents"):
        _, report = imported(file, format=format)
        [(path, reason)] = report.errors
        assert path == str(file)
        assert reason.startswith("this is no database that can be read: ")
    _, report = imported(tmp_path / "missing.db", format="langgraph")
    assert [reason for _, reason in report.errors] == ["this is no file"]


@pytest.mark.parametrize("source", [GRAPHS, AGENTS])
def test_a_damaged_database_is_a_sentence_for_each_thread(source: Path, tmp_path: Path) -> None:
    data, chance, file = source.read_bytes(), random.Random(32), tmp_path / source.name
    tool = {GRAPHS: "langgraph", AGENTS: "openai-agents"}[source]
    for _ in range(100):
        at, size = chance.randrange(len(data)), chance.choice([1, 16, 300])
        file.write_bytes(data[:at] + chance.randbytes(size) + data[at + size :])
        store, report = imported(file, format=tool)
        assert len(list(all_names(store, KIND))) == len(report.imported)
        assert all(reason and "\n" not in reason for _, reason in report.errors)
