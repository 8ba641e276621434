"""Session runtimes on tapes (13 §4): the same again, with nothing behind it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from harnpy import AgentDef, runtime
from harnpy.agent.factory.loops import LoopFactory
from harnpy.llm.errors import CallError
from harnpy.llm.reply import Reply
from harnpy.llm.request import Request
from harnpy.session.errors import InvalidArgument
from harnpy.session.runtime import SessionRuntime
from harnpy.tape import TapeDiverged, TapeError, read_tape

AGENT = AgentDef("a", model="p/m", options={"tool_format": "native", "llm_retries": 0})


class Outside:
    """A model and a tool that count, and never say the same twice."""

    def __init__(self) -> None:
        self.calls = 0
        self.ran: list[str] = []

    async def complete(self, request: Request) -> Reply:
        self.calls += 1
        last = request.messages[-1]
        if "fail" in str(last["content"]):
            raise CallError("auth", "no such key")
        calls = []
        if last["role"] == "user" and "weather" in str(last["content"]):
            calls = [{"id": f"c{self.calls}", "name": "weather", "arguments": {"city": "Oslo"}}]
        return Reply(
            text="" if calls else f"answer {self.calls}",
            model="m",
            provider="p",
            requested_model="m",
            input_tokens=3,
            output_tokens=2,
            tool_calls=calls,
            stop_reason="tool_calls" if calls else "stop",
        )

    def weather(self, city: str) -> dict[str, Any]:
        """The weather of a city."""
        self.ran.append(city)
        return {"city": city, "degrees": len(self.ran) + self.calls}

    def runtime(self, url: str | None = None, **how: Any) -> SessionRuntime:
        loops = LoopFactory(providers={"p": self}, tools=[self.weather])
        return runtime(url, agents=loops, **how)


def conversation(desk: SessionRuntime, *prompts: str) -> list[str]:
    """What a program sees of a conversation: answers, errors, and all events with their ids and times."""
    session = desk.create(AGENT)
    seen = []
    for prompt in prompts:
        try:
            seen.append(desk.send(session.id, prompt).text)
        except CallError as error:
            seen.append(str(error))
    seen += [
        f"{event.type} {event.id} {event.moment} {event.data}" for event in desk.get(session.id).events()
    ]
    desk.close()
    return seen


PROMPTS = ("hello", "weather?", "fail", "thanks")


@pytest.fixture
def tape(tmp_path: Path) -> str:
    return str(tmp_path / "run.tape")


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_conversation_is_the_same_again(kind: str, tape: str, tmp_path: Path) -> None:
    outside, url = Outside(), "memory:" if kind == "memory" else f"sqlite:{tmp_path}/s.db"
    seen = conversation(outside.runtime(url, record=tape), *PROMPTS)
    assert (outside.calls, outside.ran) == (5, ["Oslo"])
    again = Outside()
    assert conversation(again.runtime(replay=tape), *PROMPTS) == seen
    assert (again.calls, again.ran) == (0, [])


def test_a_session_of_a_store_is_as_it_was_then(tape: str, tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/s.db"
    with Outside().runtime(url) as desk:
        id = desk.create(AGENT).id
        desk.send(id, "hello")

    def go_on(desk: SessionRuntime) -> tuple[str, int]:
        with desk:
            return desk.send(id, "and now?").text, desk.get(id).version

    first = go_on(Outside().runtime(url, record=tape))
    with Outside().runtime(url) as desk:
        desk.send(id, "something else")
    again = Outside()
    assert go_on(again.runtime(replay=tape)) == first
    assert again.calls == 0


def test_threads_are_told_apart_by_their_names(tape: str) -> None:
    def talk(desk: SessionRuntime, order: list[int]) -> dict[int, list[str]]:
        seen: dict[int, list[str]] = {}

        def one(n: int) -> None:
            session = desk.create(AGENT)
            seen[n] = [session.id, *(desk.send(session.id, f"{prompt} {n}").text for prompt in PROMPTS[:2])]

        for n in order:  # one after the other, in another order each time
            thread = Thread(target=one, args=[n], name=f"talk-{n}")
            thread.start()
            thread.join()
        desk.close()
        return seen

    first = talk(Outside().runtime("memory:", record=tape), [1, 2, 3])
    assert talk(Outside().runtime(replay=tape), [3, 1, 2]) == first


@pytest.mark.parametrize(
    ("prompts", "said"),
    [
        (("hello", "rain?"), "the model is asked with another message: recorded was user: weather?, now it"),
        (("hello", "weather?", "thanks", "fail"), "another message: recorded was user: fail, now it"),
        ((*PROMPTS, "more"), "has ended there, and now it"),
    ],
)
def test_what_differs_is_said(tape: str, prompts: tuple[str, ...], said: str) -> None:
    conversation(Outside().runtime("memory:", record=tape), *PROMPTS)
    with pytest.raises(TapeDiverged, match=re.escape(said)):
        conversation(Outside().runtime(replay=tape), *prompts)


def test_a_tape_has_its_name_when_the_runtime_is_closed(tape: str) -> None:
    desk = Outside().runtime("memory:", record=tape)
    desk.create(AGENT)
    assert not Path(tape).exists()
    assert read_tape(f"{tape}.partial").end is None
    desk.close()
    end = read_tape(tape).end
    assert end is not None
    assert end.status == "completed"


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda tape: Outside().runtime(record=tape, replay=tape), InvalidArgument),
        (lambda tape: runtime(record=tape, agents=object()), InvalidArgument),
        (lambda tape: Outside().runtime(replay=tape), TapeError),
    ],
)
def test_what_is_no_way_to_make_one(make: Callable[[str], Any], error: type[Exception], tape: str) -> None:
    with pytest.raises(error):
        make(tape)


def test_keys_do_not_reach_the_tape(tape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", "wordy and known")
    key = "sk-proj-9f8B2kQ7vX4mT1zR6wL0"
    prompts = (f"my key is {key}", "mine is wordy and known", f"weather? {key} " + "x" * 300)
    conversation(Outside().runtime("memory:", record=tape), *prompts)
    data = Path(tape).read_text()
    assert key not in data
    assert "wordy and known" not in data
    again = Outside()
    assert len(conversation(again.runtime(replay=tape), *prompts)) > len(prompts)
    assert again.calls == 0
