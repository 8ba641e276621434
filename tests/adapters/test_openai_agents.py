"""The OpenAI Agents SDK on harnpy's stores, through the SDK itself. Spec: 10 §C20."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
from agents.memory import Session, SessionSettings
from agents.testing import ScriptedModel, assistant_message
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from harnpy.adapters.openai_agents import HarnpySession, items_of, message_of
from harnpy.session.events import EventDraft
from harnpy.session.stored import StoredSession
from harnpy.session.transfer.directories import import_sessions
from harnpy.storage import Store, open_store
from harnpy.world import World
from tests.llm.wire import RESPONSES
from tests.session.transfer.test_databases import AGENTS
from tests.wire.rules import check_request

Opened = Callable[..., Store]

CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "add", "arguments": '{"a": 1}'}
RESULT = {"type": "function_call_output", "call_id": "call_1", "output": "3"}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": None}
ITEMS: list[Any] = [
    {"role": "user", "content": "What is 1 + 2?"},
    REASONING,
    CALL,
    RESULT,
    {
        "type": "message",
        "id": "m",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "3", "annotations": []}],
    },
]


def said(*texts: str) -> list[Any]:
    return [{"role": "user", "content": text} for text in texts]


def run(call: Any) -> Any:
    return asyncio.run(call)


def test_it_is_a_session_of_the_sdk(opened: Opened) -> None:
    session = HarnpySession("s", opened())
    assert isinstance(session, Session)
    assert session.session_id == "s"


def test_what_comes_out_equals_what_went_in(opened: Opened) -> None:
    store = opened()

    async def steps() -> None:
        session = HarnpySession("s", store)
        assert await session.get_items() == []
        assert await session.pop_item() is None
        await session.add_items([])
        await session.add_items(ITEMS[:2])
        await session.add_items(ITEMS[2:])
        assert await session.get_items() == ITEMS
        assert await HarnpySession("s", store).get_items() == ITEMS
        assert await HarnpySession("other", store).get_items() == []

    run(steps())


@given(st.dictionaries(st.text(), st.none() | st.booleans() | st.text(), max_size=4), st.sampled_from(ITEMS))
def test_items_are_messages_and_back(more: dict[str, Any], item: dict[str, Any]) -> None:
    whole = {**more, **item}
    assert items_of(message_of(whole)) == [whole]
    assert items_of(message_of(more)) == [more]


@pytest.mark.parametrize(
    ("limit", "left"), [(None, "abc"), (2, "bc"), (3, "abc"), (9, "abc"), (0, ""), (1, "c"), (-1, "abc")]
)
def test_a_limit_is_of_the_newest(opened: Opened, limit: int | None, left: str) -> None:
    session = HarnpySession("s", opened())
    run(session.add_items(said(*"abc")))
    assert run(session.get_items(limit)) == said(*left)


def test_the_limit_of_the_settings_holds_unless_one_is_given(opened: Opened) -> None:
    session = HarnpySession("s", opened(), session_settings=SessionSettings(limit=1))
    run(session.add_items(said(*"abc")))
    assert run(session.get_items()) == said("c")
    assert run(session.get_items(2)) == said("b", "c")


def test_items_are_popped_from_the_end_and_the_log_keeps_them(opened: Opened) -> None:
    store = opened()
    session = HarnpySession("s", store)
    run(session.add_items(ITEMS))
    for item in ITEMS[::-1]:
        assert run(session.pop_item()) == item
    assert run(session.pop_item()) is None
    run(session.add_items(said("again")))
    assert run(session.get_items()) == said("again")
    stored = StoredSession.load("s", store, World())
    assert stored is not None
    assert sum(event.type == "message_added" for event in stored.events()) == len(ITEMS) + 1


def test_a_cleared_session_is_empty_and_goes_on(opened: Opened) -> None:
    store = opened()
    session = HarnpySession("s", store)
    run(session.add_items(said(*"ab")))
    run(session.clear_session())
    assert run(session.get_items()) == []
    assert run(session.pop_item()) is None
    run(session.add_items(said("c")))
    assert run(session.get_items()) == said("c")
    assert run(HarnpySession("s", store).get_items()) == said("c")


def test_what_is_popped_behind_a_cut_stays_cut(opened: Opened) -> None:
    store = opened()
    session = HarnpySession("s", store)
    run(session.add_items(said(*"abcd")))
    stored = StoredSession.load("s", store, World())
    assert stored is not None
    stored.shrink("trim", stored.view.window.trimmed(2))
    assert run(session.get_items()) == said("c", "d")
    assert run(session.pop_item()) == said("d")[0]
    assert run(session.get_items()) == said("c")


def test_what_something_else_wrote_reads_as_items(opened: Opened) -> None:
    store = opened()
    session = HarnpySession("s", store)
    run(session.add_items(said("a")))
    stored = StoredSession.load("s", store, World())
    assert stored is not None
    call = {"id": "c", "function": {"name": "f", "arguments": "{}"}}
    stored.append(
        EventDraft("message_added", {"role": "assistant", "content": "look", "tool_calls": [call]}),
        EventDraft("message_added", {"role": "tool", "tool_call_id": "c", "content": "1"}),
    )
    call_item = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "c", "output": "1"}
    look = {"role": "assistant", "content": "look"}
    assert run(session.get_items()) == [*said("a"), look, call_item, result]
    assert run(session.pop_item()) == result
    assert run(session.pop_item()) == call_item
    assert run(session.get_items()) == [*said("a"), look]


def test_tasks_add_at_once_and_nothing_is_lost_or_torn(opened: Opened) -> None:
    store = opened()

    async def write() -> list[Any]:
        sessions = [HarnpySession("s", store) for _ in range(4)]
        pairs = [said(f"{n}-{i}", f"{n}-{i}!") for n in range(4) for i in range(5)]
        await asyncio.gather(*(sessions[i % 4].add_items(pair) for i, pair in enumerate(pairs)))
        return await sessions[0].get_items()

    found = [item["content"] for item in run(write())]
    assert len(found) == 40
    for first, second in zip(found[::2], found[1::2], strict=True):
        assert second == first + "!"


class Scripted(Model):
    """Calls `add` once, then answers."""

    def __init__(self) -> None:
        self.inputs: list[Any] = []

    async def get_response(self, *args: Any, **options: Any) -> ModelResponse:
        input = options["input"]
        self.inputs.append(input)
        asked = any(isinstance(item, dict) and item.get("type") == "function_call_output" for item in input)
        if asked:
            text = ResponseOutputText(annotations=[], text="three", type="output_text")
            message = ResponseOutputMessage(
                id="m", content=[text], role="assistant", status="completed", type="message"
            )
            return ModelResponse(output=[message], usage=Usage(), response_id=None)
        call = ResponseFunctionToolCall(
            arguments='{"a": 1, "b": 2}', call_id="call_1", name="add", type="function_call"
        )
        return ModelResponse(output=[call], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def test_an_agent_goes_on_where_another_process_ended(opened: Opened) -> None:
    set_tracing_disabled(True)
    store = opened()
    model = Scripted()

    async def talk(text: str) -> str:
        agent = Agent(name="a", model=model, tools=[function_tool(add)])
        result = await Runner.run(agent, text, session=HarnpySession("s", store))
        return str(result.final_output)

    assert run(talk("1 + 2?")) == "three"
    assert run(talk("again?")) == "three"
    kinds = [item.get("type", item.get("role")) for item in model.inputs[-1]]
    assert kinds == ["user", "function_call", "function_call_output", "message", "user"]
    stored = StoredSession.load("s", store, World())
    assert stored is not None
    assert [message["role"] for message in stored.messages()] == [
        "user", "assistant", "tool", "assistant", "user", "assistant",
    ]  # fmt: skip


def test_an_image_in_a_tools_result_of_ours_is_told() -> None:
    image = {"type": "image", "base64": "iVBORw==", "media_type": "image/png"}
    result = {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "seen:"}, image]}
    said = "seen:\n[image: image/png, 4 bytes, left out]"
    assert items_of(result) == [{"type": "function_call_output", "call_id": "a", "output": said}]


def test_an_imported_session_goes_on_in_the_sdk() -> None:
    store = open_store("memory:")
    import_sessions([str(AGENTS)], store)
    session = HarnpySession("openai-agents-talk", store)
    model = ScriptedModel([[assistant_message("It is green.")]])
    asyncio.run(Runner.run(Agent("desk", model=model), "And green?", session=session))
    items: list[Any] = asyncio.run(session.get_items())
    check_request(RESPONSES, {"input": [{"type": "message", **item} for item in items]})
    texts = [json.dumps(item) for item in items]
    told = (
        "What is red?",
        "I look.",
        "red",
        "blue",
        "warm",
        "cold",
        "Red is warm.",
        "aGk/aGk+",
        "And green?",
    )
    assert all(said in text for said, text in zip((*told, "It is green."), texts, strict=True))
