"""Rule c of C12.1: what a store needs grows with what was said, and by nothing else. Spec: 10 §C4, §C12.1.

`bench/stored_bytes.py` measures the same up to 20,000 turns, where there are hundreds of compactions.
"""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harnpy.session.compaction import Compaction
from harnpy.session.stored import StoredSession
from harnpy.storage.memory import MemoryStore
from harnpy.world import World
from tests.session.test_snapshots import turn_of
from tests.storage.conftest import STORES
from tests.support import ROOT

SHORT, LONG, GROWTH = 100, 200, 1.05


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.syspath_prepend(ROOT / "bench")
    return runpy.run_path(str(ROOT / "bench/stored_bytes.py"))


@pytest.fixture
def size(
    url: str, bench: dict[str, Any], tmp_path: Path, request: pytest.FixtureRequest
) -> Callable[[], int]:
    """Counts the bytes of the store."""
    if url.startswith("postgresql:"):
        assert request.getfixturevalue("bare_postgres") == url  # deleted rows would take up room
        return lambda: bench["postgres"](url)
    if url.startswith("sqlite:"):
        return lambda: bench["sqlite"](tmp_path / "store.db")
    return lambda: bench["jsonl"](tmp_path / "store")


@pytest.mark.parametrize("url", [name for name in STORES if name != "memory"], indirect=True)
@pytest.mark.parametrize(("tool_format", "notes"), [("native", False), ("native", True), ("text", False)])
def test_c_storage_is_linear(
    url: str, size: Callable[[], int], bench: dict[str, Any], tool_format: str, notes: bool
) -> None:
    short, long = bench["converse"](url, size, [SHORT, LONG], tool_format, notes)
    most = bench["most"](url.partition(":")[0], tool_format)
    assert long.stored <= most * long.payload
    assert long.stored / long.turns <= GROWTH * short.stored / short.turns


def test_c_a_compaction_costs_the_same_however_many_there_were() -> None:
    """Bytes of the events, snapshots included, between one compaction and the next."""
    session = StoredSession.begin("s", MemoryStore(), World())
    rounds: list[int] = []
    for number in range(90):
        before = session.version
        for _ in range(15):
            turn_of(session, "x" * 100, "x" * 100)
        summary = f"{number:03} " + "y" * 2_000
        session.compact(Compaction(0, session.length - 4, summary, "truncate", 0, 0), None)
        rounds.append(sum(len(json.dumps(event.stored())) for event in session.events(before)))
    assert sum(rounds[-30:]) <= 1.02 * sum(rounds[:30])
