"""A fork in memory takes its share of the past when somebody looks at it; nobody sees it. Spec: 08 §1.4."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy.session import Session, SessionRegistry
from harnpy.session.resize import Resizing
from harnpy.session.resize_policy import ResizePolicy
from harnpy.session.view import View
from tests.worlds import world_with

CHANGES: dict[str, Callable[[SessionRegistry], object]] = {
    "inject": lambda store: store.inject("source", {"role": "user", "content": "more"}),
    "note": lambda store: store.append_event("source", {"kind": "seen"}),
    "trim": lambda store: store.trim("source", 2),
    "reset": lambda store: store.reset("source"),
    "compact": lambda store: store.compact("source", {"compact_strategy": "truncate", "keep_last": 1}),
    "scratchpad": lambda store: store.set_scratchpad("source", {"a": 1}),
    "fork": lambda store: store.fork("source", "another"),
    "fork the fork": lambda store: store.fork("fork", "grandchild"),
    "read": lambda store: store.snapshot_value("source"),
    "close": lambda store: store.close("source"),
    "fork onto it": lambda store: store.fork("other", "source"),
    "fork onto the fork": lambda store: store.fork("other", "fork"),
}


def filled() -> SessionRegistry:
    times = iter(range(10**9))
    store = SessionRegistry(world=world_with(now=lambda: 1_767_225_600.0 + next(times)))
    for id in ("source", "other"):
        store.open(id)
        for text in "abc":
            store.inject(id, {"role": "user", "content": text})
    return store


@given(st.lists(st.sampled_from([*CHANGES]), max_size=2), st.lists(st.sampled_from([*CHANGES]), max_size=4))
def test_it_is_what_it_would_have_been_at_once(before: list[str], after: list[str]) -> None:
    shown = []
    for is_looked_at in (True, False):
        store = filled()
        for change in before:
            if store.exists("source") and change not in ("close", "fork the fork", "fork onto the fork"):
                CHANGES[change](store)
        store.fork("source", "fork")
        if is_looked_at:
            assert store.by_id["fork"].session.view is not None
        for change in after:
            if store.exists("source"):
                CHANGES[change](store)
        shown.append([(*seen(store, id),) for id in store.ids()])
    assert shown[0] == shown[1]


def seen(store: SessionRegistry, id: str) -> list[Any]:
    session = store.session(id)
    assert session is not None
    events = [(event.id, event.type, event.timestamp, event.data, event.metadata) for event in session.read()]
    history = store.history(id, {"include_reset": True})
    return [id, store.snapshot_value(id), store.ancestry(id), history, events, session.revision]


def test_nothing_is_copied_until_somebody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    store, branches = filled(), []
    branch = View.branch
    monkeypatch.setattr(View, "branch", lambda view: branches.append(view) or branch(view))
    first, second = store.fork("source"), store.fork("source")
    assert (store.exists(first), store.ancestry("source")["child_ids"]) == (True, [first, second])  # type: ignore[index]
    assert branches == []
    assert store.length(first) == 3
    assert len(branches) == 1
    store.inject("source", {"role": "user", "content": "more"})
    assert len(branches) == 2
    assert (store.length(second), store.length("source")) == (3, 4)
    assert len(branches) == 2
    assert type(store.by_id[second].session) is Session


def test_one_that_goes_unseen_leaves_nothing_at_its_source() -> None:
    store = filled()
    source = store.by_id["source"].session
    store.discard(store.fork("source"))
    assert not source.late
    store.fork("source", "fork")
    fork = store.by_id["fork"].session
    store.clear()
    assert (source.late, fork.length) == ({}, 3)


def test_it_is_resized_as_its_source_was() -> None:
    store = filled()
    source = store.by_id["source"].session
    was = Resizing(ResizePolicy())
    source.resize_by(was)
    store.fork("source", "fork")
    store.fork("source", "other fork")
    source.resize_by(Resizing(ResizePolicy()))
    own = Resizing(ResizePolicy())
    store.by_id["other fork"].session.resize_by(own)
    assert store.by_id["fork"].session.resizing is was
    assert store.by_id["other fork"].session.resizing is own
    with pytest.raises(AttributeError):
        _ = store.by_id["fork"].session.no_such_thing  # type: ignore[attr-defined]


def test_a_registry_without_room_evicts_for_it() -> None:
    store = filled()
    store.set_cap(2)
    store.fork("source", "fork")
    assert store.ids() == ["source", "fork"]
    assert store.length("fork") == 3
