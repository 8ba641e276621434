"""What others write into a session on a store while a loop compacts it, or ends.

Spec: 10 §C9, §C12.1 b.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harnpy.agent.loop.loop import run_loop
from harnpy.agent.runtime import Runtime
from harnpy.session import SessionRegistry
from harnpy.session.conversation import SessionConversation
from harnpy.session.prompt import Prompt
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


def same(message: dict[str, Any]) -> dict[str, Any]:
    return message


@pytest.mark.parametrize("what", ["message", "cut"])
def test_what_comes_between_a_request_and_its_step_is_taken_in(url: str, what: str) -> None:
    shared = Shared(url)
    loop = SessionConversation("s", shared.sessions)
    loop.begin("sys", "text")
    loop.add({"role": "user", "content": "go"})
    first = list(loop.sent(same))
    assert [message["content"] for message in first][-2:] == ["answer 2", "go"]
    if what == "message":
        shared.others.inject("s", {"role": "user", "content": "late"})
    else:
        shared.others.trim("s", 1)
    assert not loop.step_started("mock", "m", 0, Prompt("sys"))
    assert [event.type for event in shared.events()].count("step_started") == 0
    loop.replaced()
    loop.arrivals()
    sent = list(loop.sent(same))
    assert loop.step_started("mock", "m", 0, Prompt("sys"))
    session = shared.sessions.session("s")
    assert session
    assert sent == session.window()
    texts = [message["content"] for message in sent]
    assert sorted(texts[-2:]) == (["go", "late"] if what == "message" else ["answer 2", "go"])
    started = next(event for event in session.events() if event.type == "step_started")
    assert started.data["prompt_cache"]["stable_messages"] == len(sent)
    loop.end("completed")
