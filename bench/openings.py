"""A long session whose window was compacted now and then, and what it costs to open it (`storage.py`)."""

from __future__ import annotations

from contextlib import closing
from time import perf_counter

from harnpy import Vm
from harnpy.session import events as kinds
from harnpy.session.compaction import Compaction
from harnpy.session.events import EventDraft
from harnpy.session.stored import StoredSession
from harnpy.storage import open_store
from harnpy.world import World

QUESTION = {"role": "user", "content": "q" * 500}
ANSWER = {"role": "assistant", "content": "a" * 1_500}
#: A window that grows beyond the first keeps the second.
MOST, KEPT = 200, 50

TURN = """
let s = agent_session_open("long", {store: "%s"})
llm_mock({text: "Here you are."})
agent_loop("And now?", nil, {session_id: s, provider: "mock"})
"""


def build(url: str, length: int) -> None:
    """Make a session with at least that many events, a recent snapshot among them."""
    with closing(open_store(url)) as store:
        session = StoredSession.begin("long", store, World())
        session.set("system_prompt", "be brief")
        while session.seq < length:
            (turn,) = session.write(EventDraft(kinds.TURN_STARTED, {"agent_id": "a"}))
            session.write(
                EventDraft(kinds.MESSAGE_ADDED, QUESTION, turn=turn),
                EventDraft(kinds.STEP_STARTED, {"agent_id": "a", "iteration": 1}, turn=turn),
            )
            session.write(
                EventDraft(kinds.STEP_COMPLETED, {"agent_id": "a", "iteration": 1}, turn=turn),
                EventDraft(kinds.MESSAGE_ADDED, ANSWER, turn=turn),
            )
            if session.length > MOST:
                text = f"what was said up to {session.seq}"
                session.compact(Compaction(0, session.length - KEPT, text, "truncate", 0, 0), None)
            session.write(EventDraft(kinds.TURN_COMPLETED, {"turn_stop_reason": "completed"}, turn=turn))


def opened(url: str) -> tuple[float, float, float]:
    """The milliseconds until a session is open, until its window is there, and of one with its whole log."""
    with closing(open_store(url)) as store:
        store.head("session", "nobody")  # connected
        begin = perf_counter()
        session = StoredSession.load("long", store, World())
        assert session is not None
        there = perf_counter()
        session.window()
        shown = perf_counter()
        session.history()
        known = perf_counter()
    return (there - begin) * 1e3, (shown - begin) * 1e3, (known - shown) * 1e3


def turned(url: str) -> float:
    """The milliseconds of a program's first turn: `agent_session_open`, and a loop of one step."""
    vm = Vm()
    vm.run_source("agent_loop('warm', nil, {provider: 'mock'})".replace("'", '"'))
    begin = perf_counter()
    vm.run_source(TURN % url)
    took = perf_counter() - begin
    vm.sessions.stores.close()
    return took * 1e3
