"""Conversations that are too long to be held: they are stored append by append, and shown when all is there.

Spec: 10 §C17.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harnpy.session.log import KIND
from harnpy.session.stored import StoredSession
from harnpy.session.transfer import foreign
from harnpy.session.transfer.directories import import_sessions
from harnpy.storage import Store, open_store
from harnpy.storage.contract import HeadQuery, all_heads
from harnpy.world import World

HERE = Path(__file__).parent / "transcripts"
THREE = ("claude_code/11111111-1111-4111-8111-111111111111.jsonl", "codex")


@pytest.fixture(params=["memory", "jsonl", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    urls = {"memory": "memory:", "jsonl": f"jsonl:{tmp_path}/log", "sqlite": f"sqlite:{tmp_path}/log.db"}
    url = urls.get(request.param) or request.getfixturevalue("postgres")
    opened = open_store(url)
    yield opened
    opened.close()


def seen(store: Store) -> dict[str, Any]:
    """Return what each session of a store holds, but for what counts its appends."""
    found = {}
    for head in all_heads(store, HeadQuery(KIND)):
        session = StoredSession.load(head.name, store, World())
        assert session is not None
        events = [(event.id, event.type, event.data, event.metadata) for event in session.events()]
        found[head.name] = (events, session.messages(), session.metadata)
    return found


def test_a_long_conversation_is_as_one_that_is_stored_at_once(
    store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    paths = [str(HERE / name) for name in THREE]
    at_once = open_store("memory:")
    assert not import_sessions(paths, at_once).errors
    monkeypatch.setattr(foreign, "_MOST", 3)
    report = import_sessions(paths, store)
    assert report.errors == []
    whole = seen(store)
    assert whole == seen(at_once)
    assert store.fsck().clean
    # Nothing of it is left under another name, and what a collection takes isn't needed.
    store.gc()
    assert seen(store) == whole
    assert import_sessions(paths, store).imported == []


def test_what_fails_in_the_middle_leaves_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(foreign, "_MOST", 3)
    path = tmp_path / "talk.jsonl"
    shutil.copy(HERE / THREE[0], path)
    rows = [json.loads(line) for line in path.read_text().splitlines() if '"agentId"' not in line]
    last = next(row for row in reversed(rows) if row["type"] == "user" and "uuid" in row)
    last["message"]["content"] = [{"type": "text", "text": 2**70}]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    report = import_sessions([str(path)], store)
    assert len(report.errors) == 1
    assert report.imported == []
    assert store.kinds().get(KIND, 0) == 0
    assert store.fsck().clean


def test_a_long_conversation_is_checked_like_a_short_one(
    store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    base = {"sessionId": "s", "timestamp": "2026-01-05T09:30:00Z"}
    cut = {"type": "system", "subtype": "compact_boundary", "uuid": "k", "logicalParentUuid": "a"}
    summary = {"type": "user", "uuid": "s", "parentUuid": "k", "isCompactSummary": True}
    lines = [
        {**base, "type": "user", "uuid": "a", "message": {"role": "user", "content": "go"}},
        {**base, **cut},
        {**base, **summary, "message": {"role": "user", "content": 5}},
    ]
    path = tmp_path / "talk.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    for most in (1, 2000):
        monkeypatch.setattr(foreign, "_MOST", most)
        [(_, reason)] = import_sessions([str(path)], store).errors
        assert reason == "the summary of a compaction is neither a text nor blocks"
        assert store.kinds().get(KIND, 0) == 0
