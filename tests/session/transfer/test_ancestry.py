"""Where sessions stand whose logs are elsewhere (10 §A1.11)."""

from __future__ import annotations

from typing import Any

import pytest

from harnpy.session import InvalidArgument, SessionError, SessionRuntime
from harnpy.session.errors import TransferError
from harnpy.storage import Store

ROOT: dict[str, Any] = {"session_id": "root", "created_at": "2026-01-01T00:00:00Z"}
LEAF: dict[str, Any] = {
    "session_id": "leaf",
    "parent_session_id": "middle",
    "branch_label": "try",
    "fork_reason": "to see",
    "depth": 2,
    "created_at": "2026-01-02T00:00:00Z",
}


def test_a_record_is_a_session_that_has_a_place(store: Store) -> None:
    runtime = SessionRuntime(store)
    assert runtime.save_ancestry(LEAF)
    info = runtime.info("leaf")
    assert (info.parent_id, info.branch_label, info.fork_reason, info.depth) == ("middle", "try", "to see", 2)
    assert (info.created_at, info.seq, info.revision) == ("2026-01-02T00:00:00.000000Z", 1, 1)
    assert runtime.parent("leaf") is None
    assert runtime.save_ancestry({**LEAF, "session_id": "middle", "parent_session_id": "root", "depth": 1})
    assert runtime.save_ancestry(ROOT)
    assert [each.id for each in runtime.lineage("leaf")] == ["root", "middle", "leaf"]


def test_what_is_there_is_kept(store: Store) -> None:
    runtime = SessionRuntime(store)
    session = runtime.create("helper", id="leaf", seed={"content": "hi"})
    assert not runtime.save_ancestry(LEAF)
    assert (runtime.info("leaf").parent_id, len(session.messages())) == (None, 1)


@pytest.mark.parametrize(
    ("record", "text"),
    [
        ({"session_id": " ", "created_at": "2026-01-01T00:00:00Z"}, "session ancestry missing session id"),
        ({"created_at": "2026-01-01T00:00:00Z"}, "session ancestry missing session id"),
        ({"session_id": "a"}, 'session ancestry "a" missing created_at'),
        ({**LEAF, "parent_session_id": 7}, "`parent_session_id` must be text, got int"),
        ([], "a record of the ancestry is a dict, got list"),
    ],
)
def test_what_is_no_record(record: Any, text: str) -> None:
    runtime = SessionRuntime("memory:")
    with pytest.raises(InvalidArgument, match=text):
        runtime.save_ancestry(record)
    assert runtime.list().items == []


def test_a_time_that_is_none() -> None:
    runtime = SessionRuntime("memory:")
    with pytest.raises(TransferError, match="yesterday"):
        runtime.save_ancestry({**ROOT, "created_at": "yesterday"})
    assert runtime.list().items == []


def test_a_circle_is_named() -> None:
    runtime = SessionRuntime("memory:")
    for id, parent in (("a", "b"), ("b", "a")):
        assert runtime.save_ancestry({**ROOT, "session_id": id, "parent_session_id": parent})
    with pytest.raises(SessionError, match='session ancestry "a": cycle detected at "a"'):
        runtime.lineage("a")
