"""The Claude Agent SDK's transcripts on harnpy's stores, by its own contract. Spec: 10 §C20."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("claude_agent_sdk")

import claude_agent_sdk as sdk

from harnpy.adapters.claude_agent_sdk import HarnpySessionStore, session_id
from harnpy.session.errors import InvalidSessionId
from harnpy.session.events import EventDraft
from harnpy.session.stored import StoredSession
from harnpy.session.transfer.directories import import_sessions
from harnpy.storage import Store, open_store
from harnpy.world import World

Opened = Callable[..., Store]
Json = dict[str, Any]

#: Written by Claude Code 2.1.
TRANSCRIPTS = Path(__file__).parent.parent / "session/transfer/transcripts/claude_code"
WHOLE = sorted(TRANSCRIPTS.glob("*.jsonl"))
KEY: Any = {"project_key": "-home-me", "session_id": "8f179c85-da74-459b-9dae-3d9d45ede6ff"}
AGENT: Any = {**KEY, "subpath": "subagents/agent-1"}


def run(call: Any) -> Any:
    return asyncio.run(call)


def rows(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def stored(store: Store, key: Any = KEY) -> StoredSession:
    session = StoredSession.load(session_id(key), store, World())
    assert session is not None
    return session


def test_it_keeps_the_contract_of_the_sdk(opened: Opened) -> None:
    from claude_agent_sdk.testing import run_session_store_conformance

    made = iter(range(100))
    run(run_session_store_conformance(lambda: Apart(opened(), next(made))))


class Apart(HarnpySessionStore):
    """A store for each clause of the contract: the tests' database is one, and projects tell them apart."""

    def __init__(self, store: Store, number: int) -> None:
        super().__init__(store)
        self._number = number

    def _own(self, key: Any) -> Any:
        return {**key, "project_key": f"{self._number} {key['project_key']}"}

    async def append(self, key: Any, entries: Any) -> None:
        await super().append(self._own(key), entries)

    async def load(self, key: Any) -> Any:
        return await super().load(self._own(key))

    async def list_sessions(self, project_key: str) -> Any:
        return await super().list_sessions(f"{self._number} {project_key}")

    async def list_session_summaries(self, project_key: str) -> Any:
        return await super().list_session_summaries(f"{self._number} {project_key}")

    async def delete(self, key: Any) -> None:
        await super().delete(self._own(key))

    async def list_subkeys(self, key: Any) -> Any:
        return await super().list_subkeys(self._own(key))


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: path.stem[:8])
@given(st.data())
def test_a_transcript_is_the_session_that_an_import_makes(path: Path, data: st.DataObject) -> None:
    lines = rows(path)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(lines)), max_size=3)))
    store, other = open_store("memory:"), open_store("memory:")

    async def steps() -> None:
        adapter = HarnpySessionStore(store)
        for start, end in zip([0, *cuts], [*cuts, len(lines)], strict=True):
            await adapter.append(KEY, lines[start:end])
        assert await adapter.load(KEY) == lines
        assert await HarnpySessionStore(store).load(KEY) == lines

    run(steps())
    imported = next(iter(import_sessions([str(path)], other).imported))
    there = StoredSession.load(imported, other, World())
    assert there is not None
    assert stored(store).messages() == there.messages()
    assert stored(store).window() == there.window()
    assert stored(store).metadata["source"] == "claude-code"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(st.characters(), max_size=50),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "$at", "$half"]), inner)
    ),
    max_leaves=4,
)
LINES = st.fixed_dictionaries(
    {"type": st.sampled_from(["user", "assistant", "system", "x"])},
    optional={
        "uuid": st.sampled_from(["u1", "u2", "u3", "u4"]),
        "parentUuid": st.sampled_from(["u1", "u2"]),
        "sessionId": st.just("s"),
        "timestamp": st.just("2026-11-29T18:00:00Z"),
        "message": st.fixed_dictionaries({"role": st.just("user"), "content": JSON}) | JSON,
    },
)


@given(st.lists(st.lists(LINES, max_size=4), max_size=3))
def test_lines_come_out_equal_whatever_they_are(batches: list[list[Any]]) -> None:
    async def steps() -> Any:
        store = open_store("memory:")
        for batch in batches:
            await HarnpySessionStore(store).append(KEY, batch)
        return await HarnpySessionStore(store).load(KEY)

    expected: list[Any] = []
    for line in (line for batch in batches for line in batch):
        if "uuid" not in line or all(line["uuid"] != each.get("uuid") for each in expected):
            expected.append(line)
    assert run(steps()) == (expected or None)


def test_what_programs_add_stays_as_a_branch() -> None:
    store = open_store("memory:")
    lines = rows(WHOLE[0])
    adapter = HarnpySessionStore(store)
    run(adapter.append(KEY, lines[:-4]))
    session = stored(store)
    session.append(EventDraft("message_added", {"role": "user", "content": "from a program"}))
    session.fork("f")
    run(adapter.append(KEY, lines[-4:]))
    assert run(adapter.load(KEY)) == lines
    said = [message["content"] for message in stored(store).messages()]
    assert "from a program" not in said
    assert any(
        message["content"] == "from a program" for message in stored(store).history(include_reset=True)
    )


def test_a_transcript_of_an_agent_belongs_to_its_session() -> None:
    store = open_store("memory:")
    adapter = HarnpySessionStore(store)
    [path] = TRANSCRIPTS.glob("*/subagents/*.jsonl")
    run(adapter.append(KEY, rows(WHOLE[0])))
    run(adapter.append(AGENT, rows(path)))
    session = stored(store, AGENT)
    assert session.info.parent_id == session_id(KEY)
    assert [message["role"] for message in session.messages()][:2] == ["user", "assistant"]
    assert run(adapter.list_subkeys(KEY)) == ["subagents/agent-1"]


def test_keys_are_sessions_ids() -> None:
    assert session_id({"project_key": "a/b", "session_id": "c"}) == "claude-code/a%2Fb/c"
    assert session_id({"project_key": "a", "session_id": "b/c"}) == "claude-code/a/b%2Fc"
    long = session_id({"project_key": "x" * 207, "session_id": KEY["session_id"]})
    assert len(long) < 100
    store = HarnpySessionStore(open_store("memory:"))
    run(store.append({"project_key": "x" * 207, "session_id": "a/b"}, [{"type": "x"}]))
    assert [each["session_id"] for each in run(store.list_sessions("x" * 207))] == ["a/b"]
    with pytest.raises(InvalidSessionId):
        run(store.append({"project_key": "a", "session_id": "b\n"}, [{"type": "x"}]))


def test_tasks_append_at_once_and_nothing_is_lost_or_torn(opened: Opened) -> None:
    store = opened()

    async def write() -> Any:
        adapters = [HarnpySessionStore(store) for _ in range(3)]
        pairs: list[Any] = [[{"type": "x", "n": n}, {"type": "y", "n": n}] for n in range(9)]
        await asyncio.gather(*(adapters[i % 3].append(KEY, pair) for i, pair in enumerate(pairs)))
        return await adapters[0].load(KEY)

    found = run(write())
    assert sorted(line["n"] for line in found[::2]) == [*range(9)]
    assert [line["n"] for line in found[::2]] == [line["n"] for line in found[1::2]]


def test_the_sdk_reads_renames_forks_and_deletes_what_is_there(tmp_path: Path) -> None:
    store = HarnpySessionStore(open_store("memory:"))
    project = sdk.project_key_for_directory(str(tmp_path))
    path = WHOLE[-1]
    id = path.stem

    async def steps() -> None:
        await store.append({"project_key": project, "session_id": id}, rows(path))
        messages = await sdk.get_session_messages_from_store(store, id, directory=str(tmp_path))
        assert {message.type for message in messages} == {"user", "assistant"}
        [there] = await store.list_sessions(project)
        assert there["mtime"] == pytest.approx(time.time() * 1000, abs=60_000)
        await sdk.rename_session_via_store(store, id, "Renamed", directory=str(tmp_path))
        forked = await sdk.fork_session_via_store(store, id, directory=str(tmp_path))
        listed = await sdk.list_sessions_from_store(store, directory=str(tmp_path))
        assert {each.session_id for each in listed} == {id, forked.session_id}
        assert "Renamed" in [each.custom_title for each in listed]
        summaries = await store.list_session_summaries(project)
        assert {each["session_id"] for each in summaries} == {id, forked.session_id}
        await sdk.delete_session_via_store(store, id, directory=str(tmp_path))
        assert await store.load({"project_key": project, "session_id": id}) is None
        assert [each["session_id"] for each in await store.list_sessions(project)] == [forked.session_id]

    run(steps())
