"""The verbs as functions, and as the registry's methods (08 §1.1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from harnpy.builtins import catalog
from harnpy.session import (
    InvalidArgument,
    SessionNotFound,
    SessionRegistry,
    SessionRuntime,
    verbs,
    workspaces,
)
from harnpy.storage import open_store

PREFIX = "agent_session_"


@pytest.mark.parametrize("name", [name for name in catalog.names() if name.startswith(PREFIX)])
def test_every_builtin_is_a_method_of_the_same_name(name: str) -> None:
    assert callable(getattr(SessionRegistry, name.removeprefix(PREFIX)))


def test_verbs_work_on_residents_alone() -> None:
    registry = SessionRegistry()
    workspaces.open_session(registry, "s")
    verbs.inject_shared(registry, "s", {"role": "user", "content": "hi"})
    assert verbs.fork(registry, "s", "t") == "t"
    assert verbs.length(registry, "t") == 1
    assert list(registry.by_id) == ["s", "t"]


def test_a_method_refuses_in_the_name_of_its_builtin() -> None:
    with pytest.raises(InvalidArgument, match=r"^agent_session_fork: `dst` must not be empty$"):
        SessionRegistry().fork("s", " ")
    with pytest.raises(SessionNotFound, match=r"^agent_session_inject: unknown session id 's'$"):
        SessionRegistry().inject("s", {"role": "user"})
    with pytest.raises(InvalidArgument, match=r"^agent_subscribe: `session_id` must not be empty$"):
        SessionRegistry().subscribe("", print)


def test_a_refusal_inside_a_callback_keeps_its_own_name() -> None:
    registry = SessionRegistry()
    registry.open("s")
    for text in "abcd":
        registry.inject("s", {"role": "user", "content": text})
    options = {"keep_last": 1, "custom_compactor": lambda archived: registry.length("gone")}
    with pytest.raises(SessionNotFound, match=r"^agent_session_length: unknown session id 'gone'$"):
        registry.compact("s", options)


def test_a_pinned_session_is_never_evicted() -> None:
    registry = SessionRegistry(cap=1)
    registry.get_or_open("kept")
    with registry.pinned("kept"):
        registry.get_or_open("next")
        assert registry.ids() == ["kept", "next"]
    registry.get_or_open("last")
    assert "kept" not in registry.by_id


@pytest.mark.parametrize("url", ["sqlite:{}/s.db", "jsonl:{}/s"])
def test_a_session_that_another_was_forked_onto_has_one_parent_everywhere(url: str, tmp_path: Path) -> None:
    store = open_store(url.format(tmp_path) + "?durability=relaxed")
    registry = SessionRegistry()
    for id in ("root", "new", "old"):
        registry.open(id, {"store": store})
    registry.fork("root", "src")
    registry.fork("old", "dst")
    registry.fork("new", "dst")
    registry.fork("src", "dst")
    registry.fork("dst", "below")
    for sessions in (registry, SessionRegistry()):
        for id in ("root", "src", "old", "dst", "below"):
            sessions.open(id, {"store": store})
        assert sessions.ancestry("dst") == {"parent_id": "src", "child_ids": ["below"], "root_id": "root"}
        assert sessions.ancestry("old") == {"parent_id": None, "child_ids": [], "root_id": "old"}
    with SessionRuntime(store) as runtime:
        assert [info.id for info in runtime.lineage("below")] == ["root", "src", "dst", "below"]
        assert [info.depth for info in runtime.lineage("dst")] == [0, 1, 2]
        assert [info.id for info in runtime.children("old")] == []
        dst = runtime.info("dst")
        assert (dst.parent_id, dst.fork_seq, dst.fork_event_id) == ("src", 0, None)
        assert runtime.get("dst").info == dst
    store.close()
