"""What a parent's log says of children, whoever wrote it and in whatever order (10 §A1.15, §C10)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harnpy.session import EventDraft, SessionRuntime, child_runs
from harnpy.session.info import Child
from harnpy.storage.memory import MemoryStore

#: What may be said of a child, and what it is from there on; None: what it was.
SAID: dict[str, Callable[[Child], Any]] = {
    "requested": lambda child: child.requested("x", "fresh", "t", lease=f"child:{child.id}"),
    "running": lambda child: child.started("x"),
    "": lambda child: child.progressed("on it", "half way"),
    "blocked": lambda child: child.blocked("waits"),
    "completed": lambda child: child.completed("done"),
    "failed": lambda child: child.failed("broken"),
    "canceled": lambda child: child.canceled("off"),
    "merged": lambda child: child.merged(),
}
ENDS = ("blocked", "completed", "failed", "canceled")
STORIES = st.lists(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(list(SAID))), min_size=1))


@given(STORIES)
def test_the_last_word_counts_and_loads_say_the_same(story: list[list[tuple[str, str]]]) -> None:
    store = MemoryStore()
    with SessionRuntime(store) as runtime:
        session = runtime.create(id="p")
        status: dict[str, str] = {}
        asked: dict[str, int] = {}
        seq = 1
        for together in story:
            drafts = [EventDraft(*SAID[what](Child(id, f"s-{id}"))) for id, what in together]
            session.append(*drafts)
            for id, what in together:
                seq += 1
                status[id] = what or status.get(id, "requested")
                if what == "requested":
                    asked[id] = seq
                elif what in ENDS:
                    asked.pop(id, None)
        assert {run.child_id: run.status for run in child_runs(session)} == status
        assert session.open_children == asked
        runs = child_runs(session)
        fork = session.fork("f")
        assert (child_runs(fork), fork.open_children) == ([], {})
    with SessionRuntime(store) as runtime:
        loaded = runtime.get("p")
        assert (child_runs(loaded), loaded.open_children) == (runs, asked)
        assert runtime.get("f").open_children == {}
    for run in runs:
        assert (run.error == "broken") <= (run.status in ("failed", "merged"))
        assert (run.summary == "done") <= (run.status in ("completed", "merged"))
        assert run.session_id == f"s-{run.child_id}"
