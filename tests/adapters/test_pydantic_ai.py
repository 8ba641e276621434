"""pydantic-ai on harnpy's stores, with its own types and agents. Spec: 10 §C20."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai import Agent, messages
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationStore, InMemoryConversationStore
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    BinaryImage,
    ImageUrl,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RequestUsage

from harnpy.adapters.pydantic_ai import HarnpyConversationStore, HarnpyHistory
from harnpy.session.events import EventDraft
from harnpy.session.stored import StoredSession
from harnpy.session.transfer.formats import export
from harnpy.storage import Store, open_store
from harnpy.world import World

Opened = Callable[..., Store]

NOW = datetime(2026, 11, 29, 18, 0, tzinfo=UTC)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=4).flatmap(
    lambda text: st.sampled_from([text, text * 30])  # long ones are stored once
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | TEXT,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(TEXT | st.sampled_from(["$at", "$is"]), inner, max_size=2)
    ),
    max_leaves=4,
)
DICTS = st.dictionaries(TEXT, JSON, max_size=2)
IDS = st.sampled_from(["c1", "c2"])
FILES = st.builds(BinaryImage, data=st.binary(max_size=60), media_type=st.just("image/png")) | st.builds(
    ImageUrl, url=st.just("https://example.org/cat.png")
)
SERVICES = st.sampled_from([None, "anthropic"])
ARGUMENTS = st.sampled_from(['{"a": ', '{"a": 1}'])
RETURNS: st.SearchStrategy[Any] = st.builds(
    ToolReturnPart, tool_name=TEXT, content=JSON | st.lists(FILES, min_size=1, max_size=2), tool_call_id=IDS,
    metadata=st.none() | DICTS, timestamp=st.just(NOW),
    outcome=st.sampled_from(["success", "failed", "denied", "retried"]),
)  # fmt: skip
ASKED = st.one_of(
    st.builds(SystemPromptPart, content=TEXT, timestamp=st.just(NOW)),
    st.builds(UserPromptPart, content=TEXT | st.lists(TEXT | FILES, max_size=3), timestamp=st.just(NOW)),
    RETURNS,
)
ANSWERED: st.SearchStrategy[Any] = st.one_of(
    st.builds(TextPart, content=TEXT, provider_details=st.none() | DICTS),
    st.builds(ThinkingPart, content=TEXT, signature=st.none() | TEXT, provider_name=SERVICES),
    st.builds(ToolCallPart, tool_name=TEXT, args=st.none() | DICTS | ARGUMENTS, tool_call_id=IDS),
    st.builds(messages.FilePart, content=FILES.filter(lambda file: isinstance(file, BinaryImage))),
)  # fmt: skip
MESSAGES = st.one_of(
    st.builds(
        ModelRequest, parts=st.lists(ASKED, max_size=3), instructions=st.none() | TEXT,
        metadata=st.none() | DICTS,
    ),
    st.builds(
        ModelResponse, parts=st.lists(ANSWERED, max_size=3), timestamp=st.just(NOW),
        usage=st.builds(RequestUsage, input_tokens=st.integers(0, 9)), provider_name=SERVICES,
        model_name=st.sampled_from([None, "m"]), metadata=st.none() | DICTS,
    ),
)  # fmt: skip


def run(call: Any) -> Any:
    return asyncio.run(call)


def stored(store: Store, id: str = "s") -> StoredSession:
    session = StoredSession.load(id, store, World())
    assert session is not None
    return session


def said(*texts: str) -> list[Any]:
    return [ModelRequest(parts=[UserPromptPart(text, timestamp=NOW)]) for text in texts]


@given(st.lists(MESSAGES, max_size=4), st.integers(0, 4))
def test_what_comes_out_equals_what_went_in(given: list[Any], cut: int) -> None:
    store = open_store("memory:")
    # What pydantic-ai itself makes of them once they were JSON.
    there_and_back = ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(given))

    async def steps() -> Any:
        history = HarnpyHistory("s", store)
        await history.add(given[:cut])
        await history.add(given[cut:])
        assert await history.messages() == there_and_back
        return await HarnpyHistory("s", store).messages()

    found = run(steps())
    assert found == there_and_back
    assert ModelMessagesTypeAdapter.dump_json(found) == ModelMessagesTypeAdapter.dump_json(there_and_back)


FILE = BinaryImage(b"\xfb\xff" * 300, media_type="image/png")
TALK: list[Any] = [
    ModelRequest(parts=[SystemPromptPart("Be short."), UserPromptPart(["What is it?", FILE])]),
    ModelResponse(
        parts=[
            ThinkingPart("Look.", signature="sig", provider_name="anthropic"),
            ToolCallPart("look", {"at": "it"}, "c1"),
            ToolCallPart("look", '{"at": ', "c2"),
        ],
        model_name="claude",
        provider_name="anthropic",
    ),
    ModelRequest(
        parts=[ToolReturnPart("look", [1], "c1"), ToolReturnPart("look", "Again.", "c2", outcome="retried")]
    ),
    ModelResponse(parts=[TextPart("A cat.")]),
]


def test_it_is_a_session_in_the_shapes_of_sessions() -> None:
    store = open_store("memory:")
    run(HarnpyHistory("s", store).add(TALK))
    session = stored(store)
    context, asked, called, result, retried, answer = session.entries()
    assert (context.event_type, context.message["content"]) == ("context_added", "Be short.")
    assert asked.message["content"][1]["type"] == "image"
    assert [block["type"] for block in called.message["content"]] == ["thinking", "tool_use", "tool_use"]
    assert called.message["origin"]["model"] == "claude"
    assert (result.message["content"], retried.message["is_error"]) == ("[1]", True)
    assert answer.message["content"] == "A cat."
    logged = json.dumps([[event.data, event.metadata] for event in session.events()]).replace("_", "/")
    assert logged.count(asked.message["content"][1]["base64"]) == 1
    written = export(session, "pydantic-ai")
    assert ModelMessagesTypeAdapter.validate_json(written) == run(HarnpyHistory("s", store).messages())


def test_a_cleared_history_is_empty_and_its_log_whole() -> None:
    store = open_store("memory:")
    history = HarnpyHistory("s", store)
    run(history.add(TALK))
    run(history.clear())
    assert run(history.messages()) == []
    run(history.add(said("again")))
    assert run(HarnpyHistory("s", store).messages()) == said("again")
    assert len(stored(store).history(include_reset=True)) == 6  # five of the talk's, and this one


def test_what_programs_do_to_the_session_shows() -> None:
    store = open_store("memory:")
    history = HarnpyHistory("s", store)
    run(history.add(TALK))
    session = stored(store)
    session.append(EventDraft("message_added", {"role": "user", "content": "Which colour?"}))
    [*before, asked] = run(history.messages())
    assert before == run(HarnpyHistory("s", store).messages())[:-1] == TALK
    assert asked.parts[0].content == "Which colour?"
    session.fork("f")
    assert run(HarnpyHistory("f", store).messages())[:-1] == TALK
    session.trim(3)  # cuts a message of two parts: what is left of it is a message of its own
    retried, answer, _ = run(history.messages())
    assert [part.tool_call_id for part in retried.parts] == ["c2"]
    assert answer == TALK[-1]


def test_tasks_add_at_once_and_nothing_is_lost_or_torn(opened: Opened) -> None:
    store = opened()

    async def write() -> list[Any]:
        histories = [HarnpyHistory("s", store) for _ in range(3)]
        pairs = [said(f"{n}", f"{n}!") for n in range(9)]
        await asyncio.gather(*(histories[i % 3].add(pair) for i, pair in enumerate(pairs)))
        return await histories[0].messages()

    found = [message.parts[0].content for message in run(write())]
    assert sorted(found[::2]) == [f"{n}" for n in range(9)]
    for first, second in zip(found[::2], found[1::2], strict=True):
        assert second == first + "!"


def test_an_agent_goes_on_where_another_process_ended(opened: Opened) -> None:
    store = opened()
    agent = Agent(TestModel(), tools=[look])

    async def talk(text: str) -> Any:
        history = HarnpyHistory("s", store)
        result = await agent.run(text, message_history=await history.messages())
        await history.add(result.new_messages())
        return result

    run(talk("Where?"))
    last = run(talk("And now?"))
    assert run(HarnpyHistory("s", store).messages()) == last.all_messages()
    roles = [message["role"] for message in stored(store).messages()]
    assert roles == ["user", "assistant", "tool", "assistant", "user", "assistant"]


def look(at: str) -> str:
    """Look."""
    return f"{at} is there"


# Conversations, held against the store that pydantic-ai has for tests.


STEPS = st.tuples(
    st.sampled_from(["save", "save", "rewrite", "branch", "back", "fork", "delete"]),
    st.sampled_from(["a", "b"]), st.integers(0, 3),
)  # fmt: skip


async def step(store: ConversationStore, what: str, id: str, number: int, at: int) -> Any:
    """Do a step; return what can be compared of its result."""
    if what == "delete":
        return await store.delete(id)
    if what == "fork":
        return (await store.fork(id, at=number, new_conversation_id=f"{id}{at}")).messages
    loaded = await store.load(id)
    if what == "branch":
        revision = None if loaded is None else loaded.revision
        return (await store.branch(id, at=number, expected_revision=revision)).messages
    if what == "back":
        record = await store.read_record(id)
        if record is None or not record.branches:
            return None
        tip = record.branches[0]
        return (await store.branch(id, from_entry=tip, expected_revision=record.revision)).messages
    found = Conversation(conversation_id=id) if loaded is None else loaded
    if what == "rewrite":
        found.messages, found.new_message_index = found.messages[:number], None
    found.messages += said(*(f"{at}.{n}" for n in range(number)))
    found.usage.requests += 1
    return len(await store.save(found, scope=None if loaded else id))


async def seen(store: ConversationStore) -> Any:
    found = {}
    for record in await store.list_conversations():
        loaded = await store.load(record.conversation_id)
        assert loaded is not None
        facts = (record.scope, record.forked_from, len(record.branches), record.usage, loaded.revision)
        assert loaded.revision == record.revision
        found[record.conversation_id] = (loaded.messages, *facts[:-1])
    return found


@given(st.lists(STEPS, max_size=8))
def test_conversations_are_those_of_the_store_in_memory(steps: list[Any]) -> None:
    async def run_all(store: ConversationStore) -> list[Any]:
        results: list[Any] = []
        for at, (what, id, number) in enumerate(steps):
            try:
                results.append(await step(store, what, id, number, at))
            except UserError as error:
                results.append(type(error))
            results.append(await seen(store))
        return results

    kept = open_store("memory:")
    assert run(run_all(HarnpyConversationStore(kept))) == run(run_all(InMemoryConversationStore()))


def test_a_conversation_is_a_session_with_its_history_as_window(opened: Opened) -> None:
    store = opened()
    agent = Agent(TestModel())

    async def talk(text: str, at: int | None = None) -> Any:
        conversations = HarnpyConversationStore(store)
        found = await conversations.load("c") or Conversation(conversation_id="c")
        if at is not None:
            found = await conversations.branch("c", at=at, expected_revision=found.revision)
        await conversations.save(await agent.run(text, conversation=found))
        return await conversations.load("c")

    run(talk("one"))
    run(talk("two"))
    last = run(talk("three", at=2))
    session = stored(store, "c")
    asked = [message["content"] for message in session.messages() if message["role"] == "user"]
    assert asked == ["one", "three"]
    assert (session.info.agent_name, last.usage.requests) == ("pydantic-ai", 3)
    logged = [event.data["content"] for event in session.events() if event.type == "message_added"]
    assert "two" in logged
    # A fork of a program's is a conversation, too.
    session.fork("f")
    forked = run(HarnpyConversationStore(store).load("f"))
    assert forked.messages == last.messages
    run(HarnpyConversationStore(store).save(run(agent.run("four", conversation=forked)).conversation))
    assert len(run(HarnpyConversationStore(store).load("c")).messages) == 4


def test_of_two_writers_of_a_conversation_one_is_told(opened: Opened) -> None:
    store = opened()

    async def write() -> list[Any]:
        conversations = [HarnpyConversationStore(store) for _ in range(4)]
        await conversations[0].save(Conversation(conversation_id="c", messages=said("x")))
        loaded = [await each.load("c") for each in conversations]
        for found in loaded:
            assert found is not None
            found.messages += said("y")
        saves = (each.save(found) for each, found in zip(conversations, loaded, strict=True) if found)
        return await asyncio.gather(*saves, return_exceptions=True)

    results = run(write())
    assert sorted(type(each).__name__ for each in results) == ["ConversationConflict"] * 3 + ["list"]
    assert len(run(HarnpyConversationStore(store).load("c")).messages) == 2
