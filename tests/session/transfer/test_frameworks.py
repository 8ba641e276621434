"""Conversations of frameworks, in and out. Spec: 10 §C17.

`frameworks/` was written by the packages themselves, with our words; the programs that made it are beside it.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.session.log import KIND
from harnpy.session.stored import StoredSession
from harnpy.session.transfer import ai_sdk, langchain, listed, pydantic_ai
from harnpy.session.transfer.blocks import parts_of
from harnpy.session.transfer.directories import import_sessions
from harnpy.session.transfer.formats import export, format_of, import_, lost
from harnpy.storage import Store, open_store
from harnpy.storage.copying import all_names
from harnpy.world import World

HERE = Path(__file__).parent / "frameworks"
Json = dict[str, Any]
#: A list of messages of each format.
LISTS = {
    pydantic_ai.TOOL: "pydantic_ai.json",
    ai_sdk.TOOL: "ai_sdk.json",
    langchain.TOOL: "langchain.json",
}
#: Those that are written, too.
WRITTEN = tuple(LISTS)


def imported(*paths: Path, store: Store | None = None, **options: Any) -> tuple[Store, Any]:
    store = open_store("memory:") if store is None else store
    return store, import_sessions([str(path) for path in paths], store, **options)


def load(id: str, store: Store) -> StoredSession:
    session = StoredSession.load(id, store, World())
    assert session is not None
    return session


def fixture(tool: str) -> tuple[StoredSession, Any]:
    store, report = imported(HERE / LISTS[tool])
    [id] = report.imported
    assert report.errors == []
    return load(id, store), report


def shown(session: StoredSession) -> list[Any]:
    """What a model is shown: who says it, which blocks, by whose model; results by their calls."""
    found: list[Any] = []
    for message in session.window():
        for block in listed.all_blocks_of(message):
            if block["type"] == "tool_result":
                parts = parts_of(block["content"])
                found.append((block["tool_use_id"], bool(block.get("is_error")), parts))
            else:
                found.append((message["role"], block, message.get("origin")))
    return found


def written(session: StoredSession, format: str) -> StoredSession:
    text = export(session, format)
    assert format_of("x.json", text).name == format
    again = import_(text, open_store("memory:"), format)
    assert again is not None
    return again


def test_histories_of_pydantic_ai() -> None:
    session, report = fixture(pydantic_ai.TOOL)
    losses = [("metadata of texts", "1"), ("names of models", "2")]
    assert [(loss.kind, loss.detail) for loss in report.losses] == losses
    context, asked, answer, *results, failed, retried, last = session.entries()
    assert (context.event_type, context.message["content"]) == ("context_added", "Be short.")
    kinds = [block["type"] for block in asked.message["content"]]
    assert kinds == ["text", "image", "image", "document", "text"]
    # Its base64 is URL-safe; ours isn't.
    assert "/C/HgAGgwJ/lK3Q6w" in asked.message["content"][2]["base64"]
    assert [block["type"] for block in answer.message["content"]] == [
        "thinking",
        "text",
        "tool_use",
        "tool_use",
    ]
    assert answer.message["content"][3]["input"] == {"at": "blue"}
    assert answer.message["origin"]["base_url"] == "https://api.anthropic.com/v1"
    assert answer.event is not None
    assert answer.event.metadata["usage"] == {"input_tokens": 12, "output_tokens": 7}
    assert [result.message["content"] for result in results] == ['["warm"]', '{"warmth": null}']
    assert failed.message["content"][0]["id"] == retried.message["tool_call_id"]
    assert retried.message["is_error"] is True
    assert last.message["content"] == "Red is warm, blue is not a number."
    # Instructions are the system prompt, and go back as such; so what the system says first is context.
    assert session.get("system_prompt") == "Answer in one sentence."
    assert {each.get("instructions") for each in json.loads(export(session, pydantic_ai.TOOL))} == {
        "Answer in one sentence.",
        None,
    }


def test_pydantic_ai_reads_what_is_written() -> None:
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    session, _ = fixture(pydantic_ai.TOOL)
    text = export(session, pydantic_ai.TOOL)
    theirs = ModelMessagesTypeAdapter.validate_json((HERE / LISTS[pydantic_ai.TOOL]).read_bytes())
    ours = ModelMessagesTypeAdapter.validate_json(text)
    assert [[type(part) for part in each.parts] for each in ours] == [
        [type(part) for part in each.parts] for each in theirs
    ]
    assert ours[0].parts[1].content[2].data == theirs[0].parts[1].content[2].data  # type: ignore[union-attr,index]
    assert ours[1].usage.input_tokens == 12  # type: ignore[union-attr]
    again = import_(
        ModelMessagesTypeAdapter.dump_json(ours).decode(), open_store("memory:"), pydantic_ai.TOOL
    )
    assert again is not None
    assert shown(again) == shown(session)


def test_older_histories_of_pydantic_ai_and_numbers_that_json_lacks(tmp_path: Path) -> None:
    call = {"part_kind": "tool-call", "tool_name": "look", "args": '{"at": ', "tool_call_id": "c"}
    retry = {"part_kind": "retry-prompt", "tool_name": "look", "tool_call_id": "c", "content": "Say where."}
    back = {"part_kind": "tool-return", "tool_name": "look", "tool_call_id": "c", "content": [float("nan")]}
    messages = [
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "look"}]},
        {"kind": "response", "parts": [call]},
        {"kind": "request", "parts": [retry, back, {"part_kind": "new-kind"}]},
    ]
    file = tmp_path / "old.json"
    file.write_text(json.dumps(messages), encoding="utf-8")
    store, report = imported(file)
    _, called, retried, returned = load(report.imported[0], store).history()
    assert called["content"][0]["input"] == {"__unreadable": '{"at": '}
    assert (retried["content"], retried["is_error"]) == ("Say where.", True)
    assert returned["content"] == '["NaN"]'
    assert {loss.kind for loss in report.losses} == {"new-kind parts", "numbers that JSON lacks"}


def test_ui_messages_of_the_ai_sdk() -> None:
    session, report = fixture(ai_sdk.TOOL)
    assert {loss.kind for loss in report.losses} == {"names of files", "source-url parts"}
    asked, answer, result, failed, last, green = session.entries()
    assert session.get("system_prompt") == "Be short."
    assert [block["type"] for block in asked.message["content"]] == ["text", "image", "document"]
    # A step of the one message is a message, and each result in it another.
    assert [block["type"] for block in answer.message["content"]] == [
        "thinking",
        "text",
        "tool_use",
        "tool_use",
    ]
    assert answer.message["origin"]["model"] == "claude-opus-4-8"
    assert (result.message["content"], "is_error" in result.message) == ('{"warmth": 3}', False)
    assert failed.message["is_error"] is True
    assert last.message["content"] == "Red is warm, blue failed."
    assert green.message["content"] == "And green?"
    # The last call is unanswered: it is in the log alone.
    assert session.history(include_reset=True)[-1]["content"][0]["id"] == "c3"
    # Those that were imported go out under their own ids. npm's `ai` validates them (see make_ai_sdk.mjs).
    out = json.loads(export(session, ai_sdk.TOOL))
    assert [message["id"] for message in out] == ["msg-0", "msg-1", "msg-2", "msg-3"]
    assert [part["type"] for part in out[2]["parts"]].count("step-start") == 2


def test_a_chat_of_the_ai_sdk_and_what_was_denied(tmp_path: Path) -> None:
    denied = {"state": "output-denied", "approval": {"id": "a", "approved": False, "reason": "Not today."}}
    call = {"type": "dynamic-tool", "toolName": "look", "toolCallId": "c", "input": {}, **denied}
    messages = [
        {"id": "1", "role": "user", "parts": [{"type": "text", "text": "look"}]},
        {"id": "2", "role": "assistant", "parts": [call, {"type": "data-weather", "data": {}}]},
    ]
    file = tmp_path / "chat.json"
    file.write_text(json.dumps({"id": "talk", "messages": messages}), encoding="utf-8")
    store, report = imported(file)
    assert report.imported == ["ai-sdk-talk"]
    assert [loss.kind for loss in report.losses] == ["data-weather parts"]
    assert load("ai-sdk-talk", store).window()[-1]["content"] == "Not today."


def test_dumps_of_langchain() -> None:
    session, report = fixture(langchain.TOOL)
    assert {loss.kind for loss in report.losses} == {"citations", "errors of calls that can't be read"}
    asked, answer, result, failed, last = session.entries()
    assert session.get("system_prompt") == "Be short."
    kinds = [block["type"] for block in asked.message["content"]]
    assert kinds == ["text", "image", "image", "document"]
    kinds = [block["type"] for block in answer.message["content"]]
    assert kinds == ["thinking", "text", "tool_use", "tool_use"]
    # A call whose arguments can't be read is a call, and is answered.
    assert answer.message["content"][3]["input"] == {"__unreadable": '{"at": '}
    assert answer.message["origin"]["model"] == "claude-opus-4-8"
    assert answer.event is not None
    assert answer.event.metadata["usage"]["total_tokens"] == 19
    assert result.event is not None
    assert result.event.metadata["artifact"] == {"warmth": 3}
    assert failed.message["is_error"] is True
    assert (last.message["content"], last.message["reasoning"]) == ("Red is warm.", "One look was enough.")


def test_langchain_reads_what_is_written() -> None:
    from langchain_core.load import dumps
    from langchain_core.messages import messages_from_dict, messages_to_dict

    session, _ = fixture(langchain.TOOL)
    theirs = messages_from_dict(json.loads((HERE / LISTS[langchain.TOOL]).read_bytes()))
    ours = messages_from_dict(json.loads(export(session, langchain.TOOL)))
    assert [type(message) for message in ours] == [type(message) for message in theirs]
    assert [message.id for message in ours[1:3]] == ["h1", "run-1"]
    for mine, other in zip(ours, theirs, strict=True):
        for key in (
            "tool_calls",
            "tool_call_id",
            "artifact",
            "usage_metadata",
            "response_metadata",
            "status",
        ):
            assert getattr(mine, key, None) == getattr(other, key, None)
    # All that LangChain writes of a message is the same message: classes, dicts, and a state's flat ones.
    flat = {"messages": [{**each["data"]} for each in messages_to_dict(theirs)]}
    for text in (dumps(theirs), dumps({"messages": theirs}), json.dumps(flat)):
        assert format_of("x.json", text).name == langchain.TOOL
        again = import_(text, open_store("memory:"), langchain.TOOL)
        assert again is not None
        assert shown(again) == shown(session)


def test_older_messages_of_langchain(tmp_path: Path) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"at": "red"}'}}
    messages = [
        {"type": "chat", "data": {"content": "look", "role": "user"}},
        {"type": "AIMessageChunk", "data": {"content": "", "additional_kwargs": {"tool_calls": [call]}}},
        {"type": "tool", "data": {"content": [{"warmth": 3}], "tool_call_id": "c"}},
        {"type": "ai", "data": {"content": [{"type": "server_tool_call", "name": "search"}, "seen"]}},
    ]
    file = tmp_path / "old.json"
    file.write_text(json.dumps(messages), encoding="utf-8")
    store, report = imported(file)
    asked, called, result, last = load(report.imported[0], store).history()
    assert (asked["role"], asked["content"]) == ("user", "look")
    assert called["content"] == [{"type": "tool_use", "id": "c", "name": "look", "input": {"at": "red"}}]
    assert (result["content"], last["content"]) == ('{"warmth": 3}', "seen")
    assert [loss.kind for loss in report.losses] == ["server_tool_call blocks"]


def test_half_a_character_is_read_as_a_mark(tmp_path: Path) -> None:
    text = (HERE / LISTS[ai_sdk.TOOL]).read_text(encoding="utf-8")
    file = tmp_path / "half.json"
    file.write_text(text.replace("msg-1", "\\ud83d").replace("What is", "\\ud83d is"), encoding="utf-8")
    store, report = imported(file)
    assert report.errors == []
    asked = load(report.imported[0], store).history()[0]
    assert asked["content"][0]["text"] == "\ufffd is in it?"


def test_lists_are_found_below_a_folder(tmp_path: Path) -> None:
    (tmp_path / "below" / "deep").mkdir(parents=True)
    for name in LISTS.values():
        (tmp_path / "below" / "deep" / name).write_bytes((HERE / name).read_bytes())
    _, report = imported(tmp_path)
    assert sorted(id.partition("-")[0] for id in report.imported) == ["ai", "langchain", "pydantic"]
    assert report.errors == []


@pytest.mark.parametrize("tool", LISTS)
def test_a_list_that_grows_is_the_same_in_the_end(tool: str, tmp_path: Path) -> None:
    messages = json.loads((HERE / LISTS[tool]).read_bytes())
    file, store = tmp_path / "growing.json", open_store("memory:")
    # Until there is an answer, a list without an id has none that stays.
    for count in range(3, len(messages) + 1):
        file.write_text(json.dumps(messages[:count]), encoding="utf-8")
        _, report = imported(file, store=store)
        assert report.errors == []
    [id] = all_names(store, KIND)
    whole, _ = fixture(tool)
    assert load(id, store).window() == whole.window()
    _, again = imported(file, store=store)
    assert (again.imported, again.skipped) == ([], [str(file)])


@pytest.mark.parametrize("tool", LISTS)
def test_a_message_that_was_changed_begins_a_branch(tool: str, tmp_path: Path) -> None:
    store, first = imported(HERE / LISTS[tool])
    text = (HERE / LISTS[tool]).read_text(encoding="utf-8")
    file = tmp_path / "changed.json"
    file.write_text(text.replace("Red is warm", "Red is hot"), encoding="utf-8")
    _, report = imported(file, store=store)
    assert report.imported == first.imported
    session = load(report.imported[0], store)
    assert "Red is hot" in json.dumps(session.window())
    assert "Red is warm" not in json.dumps(session.window())
    assert "leaf_moved" in [event.type for event in session.events()]


@pytest.mark.parametrize("tool", WRITTEN)
def test_what_is_written_is_read_again(tool: str) -> None:
    session, _ = fixture(tool)
    assert shown(written(session, tool)) == shown(session)


WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8).filter(str.strip)
SERVICES: dict[str, tuple[str, list[Json]]] = {
    "anthropic": (
        "https://api.anthropic.com/v1",
        [
            {"type": "thinking", "thinking": "thought", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "b3BhcXVl"},
        ],
    ),
    "responses": (
        "https://api.openai.com/v1",
        [{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "Z0FB"}],
    ),
    "gemini": (
        "https://generativelanguage.googleapis.com/v1beta",
        [
            {"type": "thinking", "thinking": "thought", "thought_signature": "c2ln"},
            {"type": "text", "text": "signed", "thought_signature": "c2ln"},
        ],
    ),
    # An address of one's own.
    "openai": ("https://llm.example.com/v1", []),
}
IMAGE = {"type": "image", "media_type": "image/png", "base64": "aGk/aGk+"}


@st.composite
def conversations(draw: st.DrawFn) -> list[Json]:
    """Turns of a user and of a model of either service, whose calls have their results."""
    found: list[Json] = []
    for turn in range(draw(st.integers(1, 3))):
        asked: Any = draw(WORDS)
        if draw(st.booleans()):
            asked = [{"type": "text", "text": asked}, IMAGE]
        found.append({"role": "user", "content": asked})
        dialect = draw(st.sampled_from(sorted(SERVICES)))
        address, thoughts = SERVICES[dialect]
        answer: list[Json] = []
        for number in range(draw(st.integers(1, 4))):
            call = {
                "type": "tool_use",
                "id": f"t{turn}_{number}",
                "name": "look",
                "input": {"at": draw(WORDS)},
            }
            if dialect == "gemini" and draw(st.booleans()):
                call["thought_signature"] = "Y2FsbA=="
            answer.append(draw(st.sampled_from([{"type": "text", "text": "said"}, call, *thoughts])))
        origin = {"dialect": dialect, "base_url": address, "model": "m-1"}
        message = {"role": "assistant", "content": answer, "origin": origin}
        found.append({**message, "reasoning": draw(WORDS)} if draw(st.booleans()) else message)
        for block in answer:
            if block["type"] == "tool_use":
                failed = {"is_error": True} if draw(st.booleans()) else {}
                named = {"tool_call_id": block["id"], "name": "look"}
                said: Any = draw(WORDS)
                if not failed and draw(st.booleans()):
                    said = [{"type": "text", "text": said}, IMAGE]
                found.append({"role": "tool", **named, "content": said, **failed})
    return found


@pytest.mark.parametrize("tool", WRITTEN)
@settings(max_examples=25, deadline=None)
@given(messages=conversations())
def test_law_out_and_in_is_the_same(tool: str, messages: list[Json]) -> None:
    session = StoredSession.begin("s", open_store("memory:"), World())
    session.add_history(messages)
    assert shown(written(session, tool)) == shown(session)


@pytest.mark.parametrize("tool", WRITTEN)
def test_a_prompt_that_is_told_first_is_the_systems_and_goes_back(tool: str) -> None:
    session, _ = fixture(tool)
    session.set("system_prompt", "Be brief.")
    again = written(session, tool)
    assert again.get("system_prompt") == "Be brief."
    assert shown(again) == shown(session)
    assert export(again, tool) == export(session, tool).replace(session.id, again.id)


@pytest.mark.parametrize("tool", WRITTEN)
def test_what_a_list_cannot_hold_is_told(tool: str) -> None:
    session = StoredSession.begin("s", open_store("memory:"), World())
    session.add_history([{"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "hologram"}]}])
    cited = {"type": "text", "text": "x", "citations": [{"url": "https://example.com"}]}
    session.add_history([{"role": "assistant", "content": [cited]}])
    found = [(loss.kind, loss.detail) for loss in lost(session, tool)]
    assert ("hologram blocks", "1") in found
    assert ("keys of a service's own", "1") in found


@pytest.mark.parametrize("tool", LISTS)
def test_a_damaged_list_is_one_sentence_and_nothing_is_stored(tool: str, tmp_path: Path) -> None:
    data = (HERE / LISTS[tool]).read_bytes()
    chance, file = random.Random(32), tmp_path / "damaged.json"
    for _ in range(100):
        at, size = chance.randrange(len(data)), chance.choice([1, 1, 7, 300])
        damage = bytes(chance.choice(b'{}[]":,x0\\\n\xff') for _ in range(chance.choice([0, 1, 3])))
        file.write_bytes(data[:at] + damage + data[at + size :])
        store, report = imported(file, format=tool)
        assert bool(report.errors) != bool(list(all_names(store, KIND)))
        assert all(reason and "\n" not in reason for _, reason in report.errors)


@pytest.mark.parametrize("tool", LISTS)
def test_values_of_another_kind_are_one_sentence(tool: str, tmp_path: Path) -> None:
    """Each value of the file in turn is one that nobody expects there."""
    document = json.loads((HERE / LISTS[tool]).read_bytes())
    file = tmp_path / "odd.json"
    for number, (holder, key) in enumerate(list(places(document))):
        was, holder[key] = holder[key], ([], {}, 5, "x", None, [[]], True)[number % 7]
        file.write_text(json.dumps(document), encoding="utf-8")
        holder[key] = was
        store, report = imported(file, format=tool)
        assert len(report.errors) + len(list(all_names(store, KIND))) <= 1
        assert all(reason and "\n" not in reason for _, reason in report.errors)


def places(value: Any) -> Any:
    """Where each value of a document stands: what holds it, and its key there."""
    for key in value if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from places(value[key])
