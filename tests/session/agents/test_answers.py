"""What agents may give, and what becomes of it: every value from every kind of function, in both faces
(10 §C7.1)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harnpy.session import AgentError, Reply, SessionRuntime, TurnResult, Waiting
from harnpy.session.aio import AsyncSessionRuntime

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
ASKS = {"role": "assistant", "content": "", "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "7"}
HI = {"role": "assistant", "content": "hi"}


def function(value: Any) -> Callable[..., Any]:
    def agent(messages: Any) -> Any:
        return value

    return agent


def coroutine(value: Any) -> Callable[..., Any]:
    async def agent(messages: Any) -> Any:
        await asyncio.sleep(0)
        return value

    return agent


def generator(value: Any) -> Callable[..., Any]:
    def agent(messages: Any) -> Iterator[Any]:
        for piece in pieces(value):
            if isinstance(piece, Waiting):
                raise piece
            yield piece

    return agent


def async_generator(value: Any) -> Callable[..., Any]:
    async def agent(messages: Any) -> AsyncIterator[Any]:
        for piece in pieces(value):
            await asyncio.sleep(0)
            if isinstance(piece, Waiting):
                raise piece
            yield piece

    return agent


def pieces(value: Any) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, str):
        return [value[:1], value[1:]]
    return value if isinstance(value, list) else [value]


KINDS = (function, coroutine, generator, async_generator)
FACES = ("sync", "aio")
Kind = Callable[[Any], Callable[..., Any]]


def send(face: str, url: str, agent: Any, prompt: Any = "go", **options: Any) -> TurnResult:
    if face == "sync":
        with SessionRuntime(url) as runtime:
            runtime.open("s", create=True)
            return runtime.send("s", prompt, agent=agent, **options)

    async def run() -> TurnResult:
        async with AsyncSessionRuntime(url) as runtime:
            await runtime.open("s", create=True)
            return await runtime.send("s", prompt, agent=agent, **options)

    return asyncio.run(run())


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory:" if request.param == "memory" else f"sqlite:{tmp_path}/s.db?durability=relaxed"


ANSWERS: dict[str, tuple[Any, list[dict[str, Any]]]] = {
    "text": ("hi", [HI]),
    "nothing said": ("", []),
    "blank": (" ", []),
    "message": (HI, [HI]),
    "messages": ([ASKS, RESULT, HI], [ASKS, RESULT, HI]),
    "reply": (Reply("hi"), [HI]),
    "reply of messages": (Reply(messages=[ASKS, RESULT, HI]), [ASKS, RESULT, HI]),
    "empty reply": (Reply(), []),
    "none": (None, []),
}


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("kind", KINDS)
def test_answers(kind: Kind, face: str, url: str) -> None:
    for name, (value, messages) in ANSWERS.items():
        result = send(face, url, kind(value))
        assert result.messages == messages, name
        assert (result.status, result.stop_reason, result.steps) == ("completed", "completed", 1), name
        assert result.text == ("hi" if messages else ""), name


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_reply_says_what_it_took_and_how_it_ended(kind: Kind, face: str, url: str) -> None:
    used = {"input_tokens": 2, "output_tokens": 1, "total_tokens": 3}
    reply = Reply("hi", usage=used, cost=0.5, model="m", stop_reason="max_turns_hit")
    result = send(face, url, kind(reply))
    assert (result.status, result.stop_reason) == ("stopped", "max_turns_hit")
    assert (result.usage, result.cost, result.steps) == (used, 0.5, 1)
    if url != "memory:":
        with SessionRuntime(url) as runtime:
            events = runtime.get("s").events()
        shown = [event.type for event in events[1:]]
        assert shown == [
            "turn_started", "message_added", "step_started", "step_completed", "message_added",
            "turn_completed", "action_executed",
        ]  # fmt: skip
        assert events[3].data == {"agent_id": "agent", "iteration": 1, "model": "m"}
        assert events[6].data["usage"] == used


#: Value, and what is wrong with it, where it is returned.
WRONG: dict[str, tuple[Any, str]] = {
    "int": (3, "agent agent returned int: expected text, a message, a list of messages, Reply or None"),
    "tuple": ((HI,), "agent agent returned tuple: expected text"),
    "list": ([HI, 3], "agent agent returned list with int: expected text"),
    "role": ({"role": "user", "content": "x"}, "agent agent returned a message of role 'user': expected"),
    "no role": ({"content": "x"}, "agent agent returned a message of role None: expected"),
    "no payload": ({"role": "assistant", "content": " "}, "returned an assistant message with no content"),
    "unanswered": (ASKS, "agent agent returned the call 'c1' without its result"),
    "left behind": ([ASKS, HI], "agent agent returned the call 'c1' without its result"),
    "unasked": (RESULT, "agent agent returned a result that answers no call: 'c1'"),
    "twice": ([ASKS, RESULT, RESULT], "returned a result that answers no call: 'c1'"),
    "usage": (Reply("x", usage={"a": "b"}), "Reply whose `usage` is dict: expected a dict of numbers"),
    "text": (Reply(3), "returned a Reply whose `text` is int: expected text"),
    "model": (Reply("x", model=3), "returned a Reply whose `model` is int: expected text or None"),
    "end": (Reply("x", stop_reason=None), "returned a Reply whose `stop_reason` is NoneType: expected text"),
    "cost": (Reply("x", cost=True), "returned a Reply whose `cost` is bool: expected a number"),
}


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("kind", [function, coroutine])
def test_what_is_no_answer_fails_the_turn_and_none_of_it_is_kept(
    kind: Kind, face: str, tmp_path: Path
) -> None:
    url = f"sqlite:{tmp_path}/s.db?durability=relaxed"
    for value, text in WRONG.values():
        with pytest.raises(AgentError) as raised:
            send(face, url, kind(value))
        assert text in raised.value.message
        assert raised.value.code == "agent"
    with SessionRuntime(url) as runtime:
        session = runtime.get("s")
        assert [message["content"] for message in session.messages()] == ["go"] * len(WRONG)
        ends = [event.data for event in session.events() if event.type == "turn_completed"]
    assert {end["turn_stop_reason"] for end in ends} == {"failed"}
    assert ends[0]["error"] == WRONG["int"][1]


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("kind", [generator, async_generator])
def test_what_may_not_be_yielded(kind: Kind, face: str) -> None:
    for items, text in (
        (["a", 3], "agent agent yielded int: expected text, a message or Reply"),
        ([[HI]], "agent agent yielded list with dict: expected text, a message or Reply"),
        ([None], "agent agent yielded NoneType: expected"),
        ([Reply("a"), "b"], "agent agent yielded str after its Reply"),
        ([ASKS, "and"], "agent agent returned the call 'c1' without its result"),
        ([RESULT], "answers no call"),
        ([ASKS], "agent agent returned the call 'c1' without its result"),
    ):
        with pytest.raises(AgentError, match=text):
            send(face, "memory:", kind(items))


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("kind", [generator, async_generator])
def test_who_waits_may_leave_a_call_open(kind: Kind, face: str) -> None:
    """What is waited for may be its result; until then the log has one that says that there is none."""
    result = send(face, "memory:", kind([ASKS, Waiting("approval")]))
    assert (result.status, result.messages) == ("waiting", [ASKS])


def test_what_was_answered_is_a_copy() -> None:
    own: dict[str, Any] = {"role": "assistant", "content": [{"type": "text", "text": "hi"}]}

    def agent(messages: Any) -> Iterator[Any]:
        yield own
        own["content"][0]["text"] = "changed"

    assert send("sync", "memory:", agent).text == "hi"


def test_a_reply_takes_a_text_or_messages() -> None:
    with pytest.raises(ValueError, match="`text` or `messages`, not both"):
        Reply("a", messages=[])


def test_pieces_are_one_message_and_whole_messages_stand_between_them(url: str) -> None:
    def agent(messages: Any) -> Iterator[Any]:
        yield from ("I ", "ask", ASKS, RESULT, "It is ", "7", Reply(usage={"input_tokens": 1}))

    seen: list[str] = []
    result = send("sync", url, agent, stream=seen.append)
    said = {"role": "assistant", "content": "I ask"}
    assert result.messages == [said, ASKS, RESULT, {"role": "assistant", "content": "It is 7"}]
    assert (result.text, result.usage, seen) == ("It is 7", {"input_tokens": 1}, ["I ", "ask", "It is ", "7"])
