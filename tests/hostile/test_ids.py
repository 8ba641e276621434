"""Texts that aren't Unicode, as Python's surrogates make them, wherever a session is named or asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harnpy.faults import Fault
from harnpy.session import EventDraft, InvalidSessionId, SessionQuery, SessionRegistry, SessionRuntime
from harnpy.storage import Store
from tests.session.conftest import opened, store, uptime, url

__all__ = ["opened", "store", "uptime", "url"]

BAD = "s\ud800"
_CREATED = {"created_at": "2026-01-05T09:30:00Z"}
#: What would make a session of that id, or name one as a parent.
MAKERS: list[Callable[[SessionRuntime], Any]] = [
    lambda runtime: runtime.create(id=BAD),
    lambda runtime: runtime.get("s").fork(BAD),
    lambda runtime: runtime.save_ancestry({"session_id": BAD, **_CREATED}),
    lambda runtime: runtime.save_ancestry({"session_id": "q", "parent_session_id": BAD, **_CREATED}),
    lambda runtime: SessionRegistry().open(BAD, {"store": runtime.store}),
]
READERS: list[Callable[[SessionRuntime], Any]] = [
    *(
        lambda runtime, name=name: getattr(runtime, name)(BAD)
        for name in ("get", "open", "exists", "info", "delete", "lineage", "parent", "children", "evict")
    ),
    lambda runtime: runtime.send(BAD, "hi", agent=lambda messages: "ho"),
    lambda runtime: runtime.search("x", BAD),
    lambda runtime: runtime.search(BAD),
    *(
        lambda runtime, name=name: runtime.list(SessionQuery(**{name: BAD}))
        for name in ("parent", "agent", "after")
    ),
    lambda runtime: runtime.open("s", until=BAD),
    *(
        lambda runtime, name=name: getattr(runtime.get("s"), name)(BAD)
        for name in ("pin", "unpin", "move_leaf", "branch", "find_tool", "tool_fence", "resize", "set_task")
    ),
    lambda runtime: runtime.get("s").fork(label=BAD),
    lambda runtime: runtime.get("s").set(f"metadata.{BAD}", 1),
    lambda runtime: runtime.get("s").append(EventDraft("x", {BAD: BAD}, {BAD: 1}, id=BAD, turn=BAD)),
    lambda runtime: runtime.execute("s", lambda session: None, idempotency_key=BAD),
]


def test_an_id_that_is_no_unicode(store: Store) -> None:
    with SessionRuntime(store) as runtime:
        runtime.create(id="s")
        for make in MAKERS:
            with pytest.raises(InvalidSessionId) as caught:
                make(runtime)
            str(caught.value).encode()
        for read in READERS:
            try:
                read(runtime)
            except Fault:
                continue
        assert BAD not in [info.id for info in runtime.list(SessionQuery(deleted=True)).items]
        call = {"tool": "t", "id": "c", "idempotency_key": BAD}
        runtime.get("s").append(EventDraft("tool_started", call))
        assert runtime.get("s").find_tool(BAD) is not None
