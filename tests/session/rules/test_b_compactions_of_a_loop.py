"""Rule b in a running loop: others append, cut, fork and close while it compacts its conversation.

Each text that was ever said is in the log once. What somebody has cut away is in no later request, in no
summary either; everything else is there. Spec: 10 §C12.1 b.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from harnpy import Vm
from harnpy.session import Session
from harnpy.session import events as kinds
from harnpy.session.stored import StoredSession
from harnpy.storage import Store
from harnpy.storage.memory import MemoryStore
from harnpy.world import World
from tests.clock import simulated_time
from tests.llm.wire import OPENAI
from tests.session.rules.loops import requests_told
from tests.session.rules.provider_rules import assert_accepted
from tests.session.shapes import said
from tests.storage.conftest import STORES

Dict = dict[str, Any]

PROGRAM = """
let handler = { args -> return "<tool ${args.n}>" }
let tools = tool_define(tool_registry(), "work", "", {parameters: {}, handler: handler})
for n in [1, 2, 3] { llm_mock({text: "<reply ${n}>", tool_calls: [{name: "work", arguments: {n: n}}]}) }
llm_mock({text: "<done>"})
agent_loop("<go>", nil, {
  session_id: "s", provider: "mock", tools: tools, tool_format: "native",
  auto_compact: true, compact_threshold: 1, compact_keep_last: 3, compact_keep_first: 0,
  compact_strategy: "custom", compact_callback: { archived -> summary(archived) },
})
"""


class Talk:
    """A loop's session, and what others do to it."""

    def __init__(self, store: Store) -> None:
        self.store = None if isinstance(store, MemoryStore) else store
        self.vm = Vm()
        self.sessions = self.vm.sessions
        self.numbers = count()
        self.said: list[str] = []
        #: What was cut away.
        self.gone: set[str] = set()
        self.forks: dict[str, list[str]] = {}
        self.sessions.get_or_open("s", self.store or False)
        for _ in range(6):
            self.say()

    @property
    def session(self) -> Session:
        session = self.sessions.session("s")
        assert session is not None
        return session

    def elsewhere(self) -> Session:
        """The session as another process has it; in memory there is none."""
        if self.store is None:
            return self.session
        loaded = StoredSession.load("s", self.store, World())
        assert loaded is not None
        return loaded

    # What others do.

    def say(self) -> None:
        self.sessions.inject("s", said("user", self._new_text()))

    def say_elsewhere(self) -> None:
        self.elsewhere().add_history(said("user", self._new_text()))

    def set_elsewhere(self) -> None:
        self.elsewhere().set("memo", next(self.numbers))

    def reset(self) -> None:
        self._cut(self.session, Session.reset)

    def reset_elsewhere(self) -> None:
        self._cut(self.elsewhere(), Session.reset)

    def trim(self) -> None:
        self._cut(self.session, lambda session: session.trim(2))

    def trim_elsewhere(self) -> None:
        self._cut(self.elsewhere(), lambda session: session.trim(2))

    def clean_window(self) -> None:
        self._cut(self.session, Session.clean_window)

    def compact(self) -> None:
        self.sessions.compact("s", {"keep_last": 2, "custom_compactor": gist})

    def fork(self) -> None:
        id = self.sessions.fork("s", f"fork {next(self.numbers)}")
        self.forks[id] = texts(self.session.messages())

    def close(self) -> None:
        self.sessions.close("s")

    def _cut(self, session: Session, cut: Callable[[Session], object]) -> None:
        before = everything(session.messages())
        cut(session)
        after = everything(session.messages())
        self.gone |= {text for text in tokens(before) if text not in after}

    def _new_text(self) -> str:
        text = f"<{next(self.numbers)}>"
        self.said.append(text)
        return text

    # The loop.

    def run(self, meddle: Callable[[], None]) -> None:
        """Run the loop; whenever it writes a summary, that happens."""

        def summary(archived: list[Dict]) -> str:
            meddle()
            return gist(archived)

        self.vm.register("summary(archived: list) -> string", summary)
        with simulated_time(), requests_told(self._check_request):
            self.vm.run_source(PROGRAM)

    def _check_request(self, messages: list[Dict]) -> None:
        assert_accepted(messages, OPENAI)
        shown = everything(messages)
        assert not [text for text in self.gone if text in shown], "what is gone came back"

    def check(self, session: Session) -> None:
        assert_accepted(session.messages(), OPENAI)
        assert_accepted(session.window(), OPENAI)
        written = texts([event.body for event in session.events() if event.type == kinds.MESSAGE_ADDED])
        assert sorted(written) == sorted(set(written)), "said once"
        assert {*self.said, "<go>", "<done>"} <= set(written)
        shown = everything(session.messages())
        there = {text for text in written if text in shown}
        assert there == set(written) - self.gone


def gist(archived: list[Dict]) -> str:
    return everything(archived)


def everything(messages: list[Dict]) -> str:
    return "+".join(texts(messages))


def texts(messages: list[Dict]) -> list[str]:
    return [message["content"] for message in messages]


def tokens(text: str) -> list[str]:
    """The texts, each in angle brackets, that are in a text."""
    return [f"<{piece.partition('>')[0]}>" for piece in text.split("<")[1:]]


MEDDLING = [name for name in vars(Talk) if not name.startswith("_") and name not in ("session", "elsewhere")]
MEDDLING = [name for name in MEDDLING if name not in ("run", "check", "close")]


@pytest.mark.parametrize("what", MEDDLING)
def test_b_a_loops_compaction_loses_nothing_and_brings_nothing_back(what: str, store: Store) -> None:
    store.delete("session", "s")
    talk = Talk(store)
    talk.run(getattr(talk, what))
    talk.check(talk.session)
    talk.check(talk.elsewhere())
    for id, was in talk.forks.items():
        fork = talk.sessions.session(id)
        assert fork is not None
        assert texts(fork.messages()) == was


def test_b_a_session_that_is_closed_while_its_loop_compacts_stays_closed(store: Store) -> None:
    store.delete("session", "s")
    talk = Talk(store)
    talk.run(lambda: talk.close() if talk.sessions.exists("s") else None)
    assert not talk.sessions.exists("s")
    if talk.store is not None:
        written = [e.body["content"] for e in talk.elsewhere().events() if e.type == kinds.MESSAGE_ADDED]
        assert {*talk.said, "<go>"} <= set(written)


@pytest.mark.parametrize("url", [name for name in STORES if name != "memory"], indirect=True)
@pytest.mark.parametrize("what", ["say_elsewhere", "set_elsewhere"])
def test_b_another_process_writes_before_each_append_of_a_loop(
    what: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.delete("session", "s")
    talk = Talk(store)
    own, write, attempts = talk.session, StoredSession._write, count()

    def meddled(session: StoredSession, drafts: Any, seen: int) -> Any:
        if session is own and next(attempts) % 2 == 0:  # the next attempt succeeds
            getattr(talk, what)()
        return write(session, drafts, seen)

    monkeypatch.setattr(StoredSession, "_write", meddled)
    talk.run(lambda: None)
    monkeypatch.undo()
    talk.check(talk.session)
    talk.check(talk.elsewhere())
