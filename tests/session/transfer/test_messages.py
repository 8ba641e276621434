"""Files of messages: OpenAI's, Anthropic's, Gemini's, Ollama's and ShareGPT's, in and out. Spec: 10 §C17.

The files are made by hand of what the services' types say.
"""

from __future__ import annotations

import json
import random
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy import AgentDef, LoopFactory, runtime
from harnpy.llm.call import Models
from harnpy.session import events as kinds
from harnpy.session.errors import SessionExists, TransferError
from harnpy.session.events import EventDraft
from harnpy.session.log import KIND
from harnpy.session.stored import StoredSession
from harnpy.session.transfer.blocks import blocks_of
from harnpy.session.transfer.directories import import_sessions
from harnpy.session.transfer.formats import export, format_of, import_, lost
from harnpy.session.transfer.messages import FAMILIES
from harnpy.storage import Store, open_store
from harnpy.storage.copying import all_names
from harnpy.world import World
from tests.counts import COUNT
from tests.llm.wire import ANTHROPIC, GEMINI, OPENAI, RESPONSES, Call, Say, Wire
from tests.wire.rules import check_request
from tests.wire.test_moves import configured, weather
from tests.worlds import world_with

Json = dict[str, Any]

#: A picture of one dot.
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
URL = f"data:image/png;base64,{DOT}"
CALLS = [
    {"id": id, "type": "function", "function": {"name": "look", "arguments": '{"at": "x"}'}}
    for id in ("c1", "c2")
]
TOLD = {"type": "output_text", "text": "It is red.", "annotations": []}
#: A file for each format; all but ShareGPT's say the same.
FILES: dict[str, Any] = {
    "openai-chat": [
        {"role": "system", "content": "Be short."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is it?"},
                {"type": "image_url", "image_url": {"url": URL}},
            ],
        },
        {"role": "assistant", "content": None, "refusal": None, "tool_calls": CALLS},
        {"role": "tool", "tool_call_id": "c1", "content": "red"},
        {"role": "tool", "tool_call_id": "c2", "content": "blue"},
        {"role": "assistant", "content": "It is red.", "reasoning_content": "It may be red."},
    ],
    "openai-responses": {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_767_225_600,
        "model": "gpt-5.1",
        "instructions": "Be short.",
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "What is it?"},
                    {"type": "input_image", "image_url": URL, "detail": "auto"},
                ],
            },
        ],
        "output": [
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA01"},
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "c1",
                "name": "look",
                "arguments": '{"at": "x"}',
            },
            {
                "type": "function_call",
                "id": "fc_2",
                "call_id": "c2",
                "name": "look",
                "arguments": '{"at": "x"}',
            },
            {"type": "function_call_output", "call_id": "c1", "output": "red"},
            {"type": "function_call_output", "call_id": "c2", "output": "blue"},
            {"type": "message", "id": "m_1", "role": "assistant", "status": "completed", "content": [TOLD]},
        ],
        "usage": {"input_tokens": 3, "output_tokens": 4},
    },
    "anthropic": {
        "model": "claude-opus-4-8",
        "system": [{"type": "text", "text": "Be short."}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is it?"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DOT}},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "It may be red.", "signature": "c2ln"},
                    {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "x"}},
                    {"type": "tool_use", "id": "c2", "name": "look", "input": {"at": "x"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": "red"},
                    {"type": "tool_result", "tool_use_id": "c2", "content": "blue"},
                ],
            },
            {"role": "assistant", "content": "It is red."},
        ],
    },
    "gemini": {
        "model": "models/gemini-3-pro",
        "systemInstruction": {"parts": [{"text": "Be short."}]},
        "contents": [
            {
                "role": "user",
                "parts": [
                    {"text": "What is it?"},
                    {"inline_data": {"mime_type": "image/png", "data": DOT}},
                ],
            },
            {
                "role": "model",
                "parts": [
                    {"text": "It may be red.", "thought": True},
                    {"functionCall": {"name": "look", "args": {"at": "x"}}, "thoughtSignature": "c2ln"},
                    {"functionCall": {"name": "look", "args": {"at": "x"}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "look", "response": {"output": "red"}}},
                    {"functionResponse": {"name": "look", "response": {"output": "blue"}}},
                ],
            },
            {"role": "model", "parts": [{"text": "It is red."}]},
        ],
    },
    "ollama": {
        "model": "qwen3",
        "messages": [
            {"role": "system", "content": "Be short."},
            {"role": "user", "content": "What is it?", "images": [DOT]},
            {
                "role": "assistant",
                "content": "",
                "thinking": "It may be red.",
                "tool_calls": [{"function": {"name": "look", "arguments": {"at": "x"}}}] * 2,
            },
            {"role": "tool", "tool_name": "look", "content": "red"},
            {"role": "tool", "tool_name": "look", "content": "blue"},
            {"role": "assistant", "content": "It is red."},
        ],
    },
    "sharegpt": {
        "id": "one",
        "conversations": [
            {"from": "system", "value": "Be short."},
            {"from": "human", "value": "What is it?"},
            {
                "from": "function_call",
                "value": json.dumps([{"name": "look", "arguments": {"at": "x"}}] * 2),
            },
            {"from": "observation", "value": "red"},
            {"from": "observation", "value": "blue"},
            {"from": "gpt", "value": "It is red."},
        ],
    },
}
#: The dialects whose services take what is written.
DIALECTS = {"openai-chat": OPENAI, "openai-responses": RESPONSES, "anthropic": ANTHROPIC, "gemini": GEMINI}
#: The id of each, without its format.
IDS = {"openai-responses": "resp_1", "sharegpt": "one"}


def load(id: str, store: Store) -> StoredSession:
    session = StoredSession.load(id, store, World())
    assert session is not None
    return session


def written(path: Path, value: Any) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def imported(*paths: Path, store: Store | None = None, **options: Any) -> tuple[Store, Any]:
    store = open_store("memory:") if store is None else store
    return store, import_sessions([str(path) for path in paths], store, **options)


def shown(session: StoredSession, *, numbered: bool = False) -> list[Any]:
    """What a model is shown, whatever its shape; thoughts have their origin. ``numbered``: calls have numbers
    for their ids."""
    ids: dict[str, str] = {}
    found: list[Any] = [session.get("system_prompt")]
    for entry in session.entries():
        message = entry.message
        told: list[Any] = []
        for block in blocks_of(message):
            block = {key: value for key, value in block.items() if key != "has_id"}
            for key in ("id", "tool_use_id"):
                if numbered and block["type"].startswith("tool") and key in block:
                    block[key] = ids.setdefault(block[key], f"call {len(ids)}")
            told.append(block)
        is_own = any(block["type"] in ("thinking", "reasoning") for block in told)
        role = "assistant" if message["role"] == "assistant" else "user"
        more = {key: message[key] for key in ("reasoning_content", "reasoning", "name") if key in message}
        found.append((role, entry.event_type, told, more, message.get("origin") if is_own else None))
    return found


@pytest.mark.parametrize("format", FILES)
def test_a_conversation_comes_in(format: str, tmp_path: Path) -> None:
    file = written(tmp_path / "talk.json", FILES[format])
    store, report = imported(file)
    id = f"{format}-{IDS.get(format, 'talk')}"
    assert (report.imported, report.errors, report.losses) == ([id], [], [])
    session = load(id, store)
    assert session.get("system_prompt") == "Be short."
    assert session.metadata["source"] == format
    told = [block for message in session.window() for block in blocks_of(message)]
    texts = [block["text"] for block in told if block["type"] == "text"]
    assert texts == ["What is it?", "It is red."]
    calls = [block for block in told if block["type"] == "tool_use"]
    results = [block for block in told if block["type"] == "tool_result"]
    assert [(call["name"], call["input"]) for call in calls] == [("look", {"at": "x"})] * 2
    assert [result["tool_use_id"] for result in results] == [call["id"] for call in calls]
    assert [result["content"] for result in results] == ["red", "blue"]
    if format != "sharegpt":
        assert [block["base64"] for block in told if block["type"] == "image"] == [DOT]
    _, again = imported(file, store=store)
    assert (again.imported, again.skipped) == ([], [str(file)])


def test_what_only_a_service_understands_is_kept_with_whose_it_is(tmp_path: Path) -> None:
    files = [written(tmp_path / f"{format}.json", value) for format, value in FILES.items()]
    store, report = imported(*files)
    thoughts: dict[str, tuple[Json, Any, Json]] = {
        str(session.metadata["source"]): (blocks_of(message)[0], message.get("origin"), message)
        for session in (load(id, store) for id in report.imported)
        for message in session.window()
        if message["role"] == "assistant"
        and (blocks_of(message)[0]["type"] in ("thinking", "reasoning") or message.keys() & {"reasoning"})
    }
    assert thoughts["anthropic"][0]["signature"] == "c2ln"
    assert thoughts["anthropic"][1]["model"] == "claude-opus-4-8"
    assert thoughts["openai-responses"][0]["encrypted_content"] == "gAAAA01"
    assert thoughts["openai-responses"][1]["model"] == "gpt-5.1"
    assert blocks_of(thoughts["gemini"][2])[1]["thought_signature"] == "c2ln"
    assert thoughts["gemini"][1]["model"] == "gemini-3-pro"
    assert thoughts["ollama"][2]["reasoning"] == "It may be red."
    usage = [
        e.metadata["usage"]
        for e in load("openai-responses-resp_1", store).events()
        if e.metadata.get("usage")
    ]
    assert usage == [{"input_tokens": 3, "output_tokens": 4}]


def test_the_usual_addresses_are_those_of_the_providers() -> None:
    known = Models(world_with()).config.known_providers
    assert known.configuration("anthropic").base_url == FAMILIES["anthropic"].address
    assert known.configuration("openai").base_url == FAMILIES["openai-responses"].address
    assert known.configuration("gemini").base_url == f"{FAMILIES['gemini'].address}/openai"


@pytest.mark.parametrize("format", FILES)
def test_what_is_written_is_read_again(format: str, tmp_path: Path) -> None:
    store, report = imported(written(tmp_path / "talk.json", FILES[format]))
    session = load(report.imported[0], store)
    text = export(session, format)
    assert format_of("x.json", text).name == format
    assert format_of("x.jsonl", text).name == format
    again = import_(text, open_store("memory:"), format)
    assert again is not None
    assert shown(again, numbered=format == "sharegpt") == shown(session, numbered=format == "sharegpt")
    assert export(again, format) == text
    expected = {"openai-responses": ["usage of answers"], "sharegpt": ["ids of calls"]}
    assert [loss.kind for loss in lost(session, format)] == expected.get(format, [])


# Other forms of the same files.


COMPLETION = {
    "id": "chatcmpl-7",
    "object": "chat.completion",
    "created": 1_767_225_600,
    "model": "gpt-4o",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hi."}}],
    "usage": {"prompt_tokens": 3},
    "service_tier": "default",
}


def test_a_chat_completion(tmp_path: Path) -> None:
    store, report = imported(written(tmp_path / "x.json", COMPLETION))
    assert report.imported == ["openai-chat-chatcmpl-7"]
    assert [str(loss) for loss in report.losses] == [
        "openai-chat-chatcmpl-7: keys of the file: 1 service_tier"
    ]
    [event] = [e for e in load(report.imported[0], store).events() if e.type == kinds.MESSAGE_ADDED]
    assert event.metadata == {"usage": {"prompt_tokens": 3}, "stop_reason": "stop"}
    assert event.moment == COMPLETION["created"]


ANSWERS: dict[str, Json] = {
    "anthropic-msg_1": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-4-8",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"}, {"type": "text", "text": "Hi."}
        ],
        "stop_reason": "end_turn", "usage": {"input_tokens": 3},
    },
    "gemini-r1": {
        "responseId": "r1", "modelVersion": "gemini-3-pro", "usageMetadata": {"promptTokenCount": 3},
        "candidates": [{"content": {"parts": [{"text": "Hi.", "thoughtSignature": "c2ln"}]}}],
    },
    "ollama-x": {
        "model": "qwen3", "created_at": "2026-01-01T00:00:00Z", "done": True, "done_reason": "stop",
        "eval_count": 3,
        "message": {"role": "assistant", "content": "Hi.", "thinking": "hm"},
    },
}  # fmt: skip


@pytest.mark.parametrize("id", ANSWERS)
def test_an_answer_alone(id: str, tmp_path: Path) -> None:
    store, report = imported(written(tmp_path / "x.json", ANSWERS[id]))
    assert (report.imported, report.errors, report.losses) == ([id], [], [])
    [message] = load(id, store).window()
    assert [block["text"] for block in blocks_of(message) if block["type"] == "text"] == ["Hi."]
    models = {"anthropic-msg_1": "claude-opus-4-8", "gemini-r1": "gemini-3-pro"}
    assert message.get("origin", {}).get("model") == models.get(id)


def test_a_last_line_that_was_cut_off_is_listed(tmp_path: Path) -> None:
    whole = json.dumps({"messages": [{"role": "user", "content": "q"}]})
    _, report = imported(written(tmp_path / "x.jsonl", f"{whole}\n{whole[:20]}"))
    assert report.imported == ["openai-chat-x-1"]
    assert [str(loss) for loss in report.losses] == ["openai-chat-x-1: lines: line 2 was cut off"]


def test_lines_of_fine_tuning_are_a_conversation_each(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a", "weight": 0}]
    lines = "".join(json.dumps({"messages": said, "tools": [{}]}) + "\n" for _ in range(2))
    file = written(tmp_path / "tune.jsonl", lines)
    _, report = imported(file)
    assert report.imported == ["openai-chat-tune-1", "openai-chat-tune-2"]
    assert [loss.detail for loss in report.losses] == ["1 weight", "1 tools"] * 2
    # All of them or none.
    file.write_text(lines + json.dumps({"messages": [{"role": "narrator", "content": "x"}]}) + "\n")
    _, whole = imported(file, format="openai-chat")
    assert whole.imported == []
    [(_, reason)] = whole.errors
    assert reason.startswith("line 3: message 1: its role is 'narrator', and can be system, developer, user")
    _, part = imported(file, format="openai-chat", partial=True)
    assert part.imported == report.imported
    assert "no messages" in [loss.detail for loss in part.losses]


def test_the_items_of_a_conversation_are_listed_newest_first(tmp_path: Path) -> None:
    items = [*FILES["openai-responses"]["input"], *FILES["openai-responses"]["output"]]
    data = [{"type": "message", **item} for item in items]
    listed = {"object": "list", "data": data[::-1], "first_id": "m_1", "last_id": "m_0", "has_more": True}
    store, report = imported(written(tmp_path / "listed.json", listed))
    assert [loss.detail for loss in report.losses] == ["1 has_more"]
    _, straight = imported(written(tmp_path / "straight.json", data), store=store)
    assert shown(load(report.imported[0], store)) == shown(load(straight.imported[0], store))


def test_what_the_service_has_of_a_response_is_listed(tmp_path: Path) -> None:
    more = {"previous_response_id": "resp_0", "conversation": {"id": "conv_1"}}
    text = "\ufeff" + json.dumps({**FILES["openai-responses"], **more})
    _, report = imported(written(tmp_path / "x.json", text))
    assert report.imported == ["openai-responses-resp_1"]
    assert [loss.detail for loss in report.losses] == ["1 conversation, 1 previous_response_id"]


def test_a_list_of_conversations_and_one_of_answers(tmp_path: Path) -> None:
    talks = [FILES["sharegpt"], {**FILES["sharegpt"], "id": "two"}]
    _, report = imported(written(tmp_path / "x.json", talks))
    assert report.imported == ["sharegpt-one", "sharegpt-two"]
    _, twice = imported(written(tmp_path / "x.json", [FILES["sharegpt"]] * 2))
    said = [{"role": "user", "content": "Hi."}, ANSWERS["anthropic-msg_1"]]
    store, _ = imported(written(tmp_path / "y.json", said))
    [_, answer] = load("anthropic-y", store).window()
    assert answer["origin"]["model"] == "claude-opus-4-8"
    assert twice.errors == [(str(tmp_path / "x.json"), "2 conversations in it have the id sharegpt-one")]
    with pytest.raises(
        TransferError, match="there are 2 conversations in it: import_sessions makes a session of each"
    ):
        import_(json.dumps(talks), open_store("memory:"), "sharegpt")


@pytest.mark.parametrize(
    ("said", "format"),
    [
        ([{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}], "openai-chat"),
        ([{"role": "user", "content": [{"type": "text", "text": "q"}]}], "openai-chat"),
        ([{"role": "user", "content": "q", "images": [DOT]}], "ollama"),
        ([{"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]}], "anthropic"),
        ([{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}], "openai-responses"),
        ([{"role": "user", "parts": [{"text": "q"}]}], "gemini"),
        ([{"from": "human", "value": "q"}], "sharegpt"),
        ({"messages": [{"role": "user", "content": "q"}], "system": "s"}, "anthropic"),
    ],
)  # fmt: skip
def test_a_format_is_seen_by_what_is_in_the_file(said: Any, format: str) -> None:
    assert format_of("x.json", json.dumps(said)).name == format


def test_text_alone_is_the_same_in_each_format_that_it_could_be(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    file = written(tmp_path / "x.json", said)
    windows = []
    for format in ("auto", "openai-chat", "anthropic", "ollama"):
        store, report = imported(file, format=format)
        windows.append(load(report.imported[0], store).window())
    assert windows == [said] * 4


def test_a_mixed_file_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    said = [*FILES["openai-chat"][2:4], FILES["anthropic"]["messages"][2]]
    store, report = imported(written(tmp_path / "x.json", said))
    assert [reason for _, reason in report.errors] == [
        "it has messages of anthropic and of openai-chat: name the one that it is by `format` or `--format`"
    ]
    assert list(all_names(store, KIND)) == []


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ({"role": "narrator", "content": "x"}, "message 1: its role is 'narrator', and can be system, "),
        ({"role": "user", "content": {"text": "x"}}, "message 1: `content` is no list of objects"),
        ({"role": "user", "content": [{"type": "odd"}]}, "message 1: it has a part whose type is 'odd'"),
        ({"role": "assistant", "tool_calls": [{"id": "c"}]}, "message 1: it has a call without a function"),
        ({"role": "tool", "content": "x"}, "message 1: it is the result of a tool that wasn't called"),
        ("x", "message 1: it is no object"),
    ],
)
def test_what_makes_no_sense_is_refused_or_listed(item: Any, reason: str, tmp_path: Path) -> None:
    file = written(tmp_path / "x.json", [item, {"role": "user", "content": "q"}])
    store, report = imported(file, format="openai-chat")
    [(_, said)] = report.errors
    assert said.startswith(reason)
    assert list(all_names(store, KIND)) == []
    store, part = imported(file, format="openai-chat", partial=True)
    assert [loss.kind for loss in part.losses] == ["messages"]
    assert load("openai-chat-x", store).window() == [{"role": "user", "content": "q"}]


@pytest.mark.parametrize(("format", "said"), [
    ("openai-chat", {"messages": [{"role": "developer", "content": "s"}]}),
    ("openai-chat", {"messages": [{"role": "system", "content": "s"}]}),
    ("openai-responses", {"instructions": "s", "input": []}),
    ("openai-responses", {"input": [
        {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "s"}]}]}),
    ("anthropic", {"system": "s", "messages": []}),
    ("gemini", {"systemInstruction": {"parts": [{"text": "s"}]}, "contents": []}),
    ("sharegpt", {"conversations": [{"from": "system", "value": "s"}]}),
])  # fmt: skip
def test_a_prompt_is_written_where_it_stood(format: str, said: Json) -> None:
    key = FAMILIES[format].key
    asked = json.loads(export(session_of([{"role": "user", "content": "q"}]), format))[key]
    file = {**said, key: [*said[key], *asked]}
    session = import_(json.dumps(file), open_store("memory:"), format)
    assert session is not None
    assert session.get("system_prompt") == "s"
    assert json.loads(export(session, format)) == file


# Files that grow, and change.


@pytest.mark.parametrize("format", FILES)
def test_a_file_that_grows_is_the_same_in_the_end(format: str, tmp_path: Path) -> None:
    whole = FILES[format] if isinstance(FILES[format], dict) else {"messages": FILES[format]}
    key = FAMILIES[format].key if format != "openai-responses" else "output"
    file, store = tmp_path / "talk.json", open_store("memory:")
    for count in range(2, len(whole[key]) + 1):
        _, report = imported(written(file, {**whole, key: whole[key][:count]}), store=store, format=format)
        assert report.errors == []
    [id] = report.imported
    other, again = imported(file, format=format)
    assert again.imported == [id]
    assert shown(load(id, store)) == shown(load(id, other))


def test_a_changed_message_is_a_branch_and_another_conversation_is_refused(tmp_path: Path) -> None:
    said = [{"role": "user" if n % 2 == 0 else "assistant", "content": str(n)} for n in range(5)]
    file, store = tmp_path / "talk.json", open_store("memory:")
    imported(written(file, [{"role": "system", "content": "s"}, *said]), store=store)
    changed = [*said[:2], {"role": "user", "content": "else"}]
    _, report = imported(written(file, [{"role": "system", "content": "new"}, *changed]), store=store)
    session = load("openai-chat-talk", store)
    assert report.imported == [session.id]
    assert session.window() == changed
    assert session.get("system_prompt") == "new"
    assert len(session.history(include_reset=True)) == 6
    session.set("system_prompt", "mine")
    _, same = imported(file, store=store)
    assert (same.imported, load(session.id, store).get("system_prompt")) == ([], "mine")
    _, other = imported(written(file, [{"role": "user", "content": "Another."}]), store=store)
    assert [reason for _, reason in other.errors] == [
        "the session openai-chat-talk is another conversation: import it with another id (--id), "
        "or with --on-conflict rename"
    ]


def test_two_files_of_one_name_are_no_one_session(tmp_path: Path) -> None:
    paths = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        paths.append(written(tmp_path / folder / "talk.json", [{"role": "user", "content": "Hi."}]))
    _, report = imported(tmp_path)
    assert report.imported == ["openai-chat-talk"]
    assert report.errors == [
        (str(paths[1]), f"openai-chat-talk is the session of {paths[0]}: give this file's another id (--id)")
    ]


def test_ids_that_are_taken(tmp_path: Path) -> None:
    store, _ = imported(written(tmp_path / "x.json", FILES["sharegpt"]))
    with pytest.raises(SessionExists):
        import_(json.dumps(FILES["sharegpt"]), store, "sharegpt", on_conflict="error")
    assert import_(json.dumps(FILES["sharegpt"]), store, "sharegpt") is None


# Out, and in again.


WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8).filter(str.strip)
IMAGE = {"type": "image", "media_type": "image/png", "base64": DOT}


def origin_of(format: str) -> Json:
    family = FAMILIES[format]
    return {"dialect": family.dialect, "base_url": family.address, "model": "m-1"}


#: What a model of each service says that only it understands, with a text and a call as it tells them.
OWN: dict[str, list[Json]] = {
    "anthropic": [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}],
    "openai-responses": [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"},
        {"type": "text", "text": "said", "content": {"type": "output_text", "annotations": []},
         "item": {"id": "m_1", "status": "completed"}},
    ],
    "gemini": [
        {"type": "thinking", "thinking": "hm", "thought_signature": "c2ln"},
        {"type": "text", "text": "said", "thought_signature": "c2ln"},
    ],
}  # fmt: skip


#: The key of a message that has a model's reasoning.
REASONING = {"openai-chat": "reasoning_content", "ollama": "reasoning"}
#: The formats that say that a call has failed.
WITH_FAILURES = ("anthropic", "gemini")


@st.composite
def talks(draw: st.DrawFn, *services: str) -> list[Json]:
    """Turns of a user and of models of these services, in what a format holds if there is one only."""
    found: list[Json] = []
    is_one = len(services) == 1
    for turn in range(draw(st.integers(1, 4))):
        user: list[Json] = [{"type": "text", "text": draw(WORDS)}]
        if services != ("sharegpt",) and draw(st.booleans()):
            user.append(IMAGE)
        found.append({"role": "user", "content": user})
        if not is_one and draw(st.booleans()):
            found[-1]["name"] = draw(st.sampled_from(["Ada", "tool"]))
        service = draw(st.sampled_from(services))
        own = draw(st.lists(st.sampled_from(OWN[service]), max_size=2)) if service in OWN else []
        # What only one service understands is no message for the others.
        answer = [*own] if own and is_one else [*own, {"type": "text", "text": draw(WORDS)}]
        answer += [
            {"type": "tool_use", "id": f"t{turn}{number}", "name": "look", "input": {"at": draw(WORDS)}}
            for number in range(draw(st.integers(0, 2)))
        ]
        message: Json = {"role": "assistant", "content": answer}
        if own:
            message["origin"] = origin_of(service)
        if is_one and service in REASONING and draw(st.booleans()):
            message[REASONING[service]] = draw(WORDS)
        found.append(message)
        calls = [block for block in answer if block["type"] == "tool_use"]
        for call in calls:
            result: Json = {"role": "tool", "tool_call_id": call["id"], "content": draw(WORDS)}
            if not (is_one and service not in WITH_FAILURES) and draw(st.booleans()):
                result["is_error"] = True
            if not is_one and draw(st.booleans()):
                result["content"] = [{"type": "text", "text": draw(WORDS)}, IMAGE]
            found.append(result)
        if draw(st.booleans()) and calls:
            found.append({"role": "assistant", "content": draw(WORDS)})
    return found


def session_of(messages: list[Json], system: str | None = None) -> StoredSession:
    session = StoredSession.begin("s", open_store("memory:"), World())
    if system is not None:
        session.set("system_prompt", system)
    session.append(*(EventDraft(kinds.MESSAGE_ADDED, message) for message in messages))
    return session


def out_and_in(session: StoredSession, format: str) -> StoredSession:
    again = import_(export(session, format), open_store("memory:"), format)
    assert again is not None
    return again


@pytest.mark.parametrize("format", FILES)
@settings(max_examples=COUNT.examples(15), deadline=None)
@given(data=st.data())
def test_law_out_and_in_is_the_same(format: str, data: st.DataObject) -> None:
    session = session_of(data.draw(talks(format)), data.draw(st.none() | WORDS))
    assert {loss.kind for loss in lost(session, format)} <= (
        {"ids of calls"} if format == "sharegpt" else set()
    )
    numbered = format == "sharegpt"
    assert shown(out_and_in(session, format), numbered=numbered) == shown(session, numbered=numbered)


@pytest.mark.parametrize("format", FILES)
@settings(max_examples=COUNT.examples(15), deadline=None)
@given(data=st.data())
def test_law_what_a_format_does_not_hold_is_listed(format: str, data: st.DataObject) -> None:
    messages = data.draw(talks(*OWN))
    session = session_of(messages, data.draw(st.none() | WORDS))
    if data.draw(st.booleans()):
        context = {"content": "Noted.", "kind": "harness", "placement": "history"}
        session.append(EventDraft(kinds.CONTEXT_ADDED, context))
        session.append(EventDraft(kinds.MESSAGE_ADDED, {"role": "user", "content": "So?"}))
    if shown(out_and_in(session, format)) != shown(session):
        assert lost(session, format)


@pytest.mark.parametrize("format", DIALECTS)
@settings(max_examples=COUNT.examples(15), deadline=None)
@given(data=st.data())
def test_law_a_service_takes_what_is_written(format: str, data: st.DataObject) -> None:
    messages = data.draw(talks(*OWN))
    body = json.loads(export(session_of(messages), format))
    for message in body["messages"] if format == "anthropic" else []:
        if isinstance(message["content"], str):  # as the rules read it
            message["content"] = [{"type": "text", "text": message["content"]}]
    check_request(DIALECTS[format], body)


def test_an_imported_conversation_goes_on_with_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    answers = Say("", (Call("weather", '{"city": "Oslo"}'),)), Say("Rain.")
    with ExitStack() as stack:
        wires = {name: stack.enter_context(Wire(dialect, *answers)) for name, dialect in DIALECTS.items()}
        factory = LoopFactory(tools=[weather], host=configured(wires, tmp_path))
        desk = stack.enter_context(runtime("memory:", agents=factory))
        for name in wires:
            file = written(tmp_path / f"{name}.json", FILES[name])
            [id] = import_sessions([str(file)], desk.store).imported
            result = desk.send(id, "And the weather?", agent=AgentDef("a", model=f"{name}/m-1"))
            assert result.status == "completed"
        asked = {name: [request.body for request in wire.requests] for name, wire in wires.items()}
    for name, bodies in asked.items():
        assert len(bodies) == 2
        for body in bodies:
            check_request(DIALECTS[name], body)
            assert all(said in json.dumps(body) for said in ("What is it?", "look", "red", "It is red."))
        assert "rain in Oslo" in json.dumps(bodies[-1])


@pytest.mark.parametrize("format", FILES)
def test_a_damaged_file_is_one_sentence_and_nothing_is_stored(format: str, tmp_path: Path) -> None:
    chance = random.Random(f"{format} {COUNT.seed}")
    file, data = tmp_path / "talk.json", json.dumps(FILES[format]).replace(DOT, "iVBORw0KGgo").encode()
    for number in range(COUNT.damaged_messages):
        at, size = chance.randrange(len(data)), chance.choice([1, 1, 7, 300])
        damage = bytes(chance.choice(b'{}[]":,x0\\\n\xff') for _ in range(chance.choice([0, 1, 3])))
        file.write_bytes(data[:at] + damage + data[at + size :])
        check_damaged(file, ("auto", format)[number % 2])


@pytest.mark.parametrize("format", FILES)
def test_a_file_with_another_value_in_it_is_one_sentence(format: str, tmp_path: Path) -> None:
    chance = random.Random(f"{format} {COUNT.seed}")
    for number in range(COUNT.damaged_messages):
        value = json.loads(json.dumps(FILES[format]))
        place: Any = value
        keys: list[tuple[Any, Any]] = []
        while isinstance(place, dict | list) and place and (not keys or chance.random() < 0.8):
            keys.append((place, chance.choice(list(place) if isinstance(place, dict) else range(len(place)))))
            place = place[keys[-1][1]]
        inside, key = chance.choice(keys)
        inside[key] = chance.choice([None, True, 7, 1e400, 2**70, "", "x", [], {}, [[]], [{}], {"x": [None]}])
        file = written(tmp_path / "talk.json", json.dumps(value))
        check_damaged(file, ("auto", format)[number % 2])


def check_damaged(file: Path, format: str) -> None:
    """Import a file that may be damaged, whole and in part."""
    store, report = imported(file, format=format)
    assert bool(report.errors) != bool(list(all_names(store, KIND)))
    for _, reason in report.errors:
        assert reason
        assert "\n" not in reason.removeprefix("Cannot load JSON content or file path not existed.\n")
    store, partial = imported(file, format=format, partial=True)
    assert len(partial.errors) <= 1
    assert bool(partial.errors) != bool(list(all_names(store, KIND)))
    for id in partial.imported:
        load(id, store).window()


LISTED: dict[str, tuple[Any, set[str]]] = {
    "openai-chat": (
        [
            {"role": "user", "content": [{"type": "text", "text": "q", "cache_control": {}}]},
            {
                "role": "assistant",
                "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}", "strict": True}}],
            },
            {"role": "tool", "tool_call_id": "c", "name": "f", "content": "r"},
        ],
        {"keys of parts", "keys of calls", "names of tools"},
    ),
    "openai-responses": (
        [{"role": "user", "content": [{"type": "input_text", "text": "q", "note": 1}]}],
        {"keys of parts"},
    ),
    "gemini": (
        {
            "contents": [
                {"role": "user", "parts": [{"text": "q"}]},
                {"role": "model", "parts": [{"functionCall": {"id": "c", "name": "f", "args": {}}}]},
                {
                    "role": "user",
                    "parts": [
                        {
                            "functionResponse": {
                                "id": "c", "name": "f", "response": {"output": "r"}, "scheduling": "SILENT",
                            }
                        }
                    ],
                },
            ]
        },
        {"keys of results"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("format", LISTED)
def test_what_a_message_says_beside_the_usual_is_listed(format: str, tmp_path: Path) -> None:
    given, kinds = LISTED[format]
    (tmp_path / "talk.json").write_text(json.dumps(given), encoding="utf-8")
    report = import_sessions([str(tmp_path / "talk.json")], open_store("memory:"), format)
    assert report.errors == []
    assert {loss.kind for loss in report.losses} == kinds


def test_of_several_conversations_all_come_in_or_none(tmp_path: Path) -> None:
    path, store = tmp_path / "talks.jsonl", open_store("memory:")

    def write(*said: list[str]) -> None:
        lines = [{"messages": [{"role": "user", "content": text} for text in each]} for each in said]
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")

    write(["a"], ["b"])
    assert len(import_sessions([str(path)], store).imported) == 2
    write(["a", "more"], ["another one"])
    report = import_sessions([str(path)], store)
    assert report.imported == []
    assert "is another conversation" in report.errors[0][1]
