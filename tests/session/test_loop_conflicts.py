"""What others write into a session on a store while a loop compacts it, or ends.

Spec: 10 §C9, §C12.1 b.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harnpy.agent.loop.make_loop import run_loop
from harnpy.agent.runtime import Runtime
from harnpy.session import SessionRegistry
from harnpy.session.loop_conversation import SessionConversation
from tests.storage.conftest import url_of
from tests.worlds import models_with

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Act = Callable[[SessionRegistry], Any]


@pytest.fixture(params=["jsonl", "sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a store that two registries can share."""
    return url_of(request.param, request, tmp_path)


CUTS: dict[str, Act] = {
    "trim": lambda others: others.trim("s", 1),
    "reset": lambda others: others.reset("s"),
    "compact": lambda others: others.compact("s", {"keep_last": 1}),
}


class Shared:
    """A session on a store, held by two registries: the loop's, and ``others``'."""

    def __init__(self, url: str) -> None:
        self.sessions, self.others = SessionRegistry(), SessionRegistry()
        for registry in (self.sessions, self.others):
            registry.open("s", {"store": url})
        for number in range(3):
            self.others.inject("s", {"role": "user", "content": f"question {number}"})
            self.others.inject("s", {"role": "assistant", "content": f"answer {number}"})

    def loop(self, **options: Any) -> list[str]:
        """Run a loop with one reply. Return the messages of the session afterwards, as text."""
        models = models_with({})
        models.mock.add({"text": "ok"})
        given = {"provider": "mock", "session_id": "s", **options}
        result = run_loop(Runtime(models, self.sessions), "go", "sys", given)
        assert result["status"] == "done"
        return [message["content"] for message in self.others.snapshot("s")["messages"]]

    def events(self) -> list[Any]:
        session = self.others.session("s")
        assert session
        return session.events()

    def compacting(self, act: Act) -> dict[str, Any]:
        """Options of a loop that compacts at once; ``act`` is done while the summary is written."""

        def summarise(_: Any) -> str:
            act(self.others)
            return "short"

        when = {"compact_threshold": 0, "compact_keep_last": 2}
        return {"auto_compact": True, "compact_callback": summarise, **when}


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_a_cut_while_a_loop_compacts_is_taken_in(url: str, cut: Act) -> None:
    shared = Shared(url)
    said = shared.loop(**shared.compacting(cut))
    assert said[-1] == "ok"
    assert "short" not in said
    cuts = ("compaction_triggered", "history_replaced")
    assert sum(event.type in cuts for event in shared.events()) == 1


def test_a_message_while_a_loop_compacts_is_kept(url: str) -> None:
    shared = Shared(url)
    hint = {"role": "user", "content": "by the way"}
    said = shared.loop(**shared.compacting(lambda others: others.inject("s", hint)))
    assert said[0].endswith("short")
    assert said[-2:] == ["by the way", "ok"]


def test_a_message_while_a_loop_ends_doesnt_stop_it(url: str) -> None:
    shared = Shared(url)
    conversation = SessionConversation("s", shared.sessions)
    conversation.begin(None, "text")
    shared.others.inject("s", {"role": "user", "content": "late"})
    conversation.end("completed", 1, ["a skill"])
    assert [event.type for event in shared.events()][-3:] == [
        "message_added",
        "turn_completed",
        "register_set",
    ]
