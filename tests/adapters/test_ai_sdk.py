"""Chats of the AI SDK: requests as `useChat` sends them, chunks as it reads them. Spec: 10 §C20."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy import AgentDef, LoopFactory, tool
from harnpy.adapters.ai_sdk import ChatApp
from harnpy.adapters.front_ends import front_end_tool
from harnpy.session import SessionRuntime
from harnpy.session.transfer.formats import export

Json = dict[str, Any]
#: Written by version 6 of `ai`.
CHAT = Path(__file__).parent.parent / "session/transfer/frameworks/ai_sdk.json"


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def requests(app: Any, *calls: tuple[str, str, Any], **more: Any) -> list[httpx2.Response]:
    """Send requests, one after the other: method, path, and what is sent as JSON unless it is None."""

    async def send() -> list[httpx2.Response]:
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://x") as client:
            bodies = [{} if sent is None else {"json": sent} for _, _, sent in calls]
            return [
                await client.request(method, path, **body, **more)
                for (method, path, _), body in zip(calls, bodies, strict=True)
            ]

    return asyncio.run(send())


def request(app: Any, method: str, path: str, sent: Any = None, **more: Any) -> httpx2.Response:
    return requests(app, (method, path, sent), **more)[0]


def user(id: str, text: str) -> Json:
    return {"id": id, "role": "user", "parts": [{"type": "text", "text": text}]}


def chat(app: Any, messages: list[Any], **more: Any) -> list[Json]:
    """Send messages as `DefaultChatTransport` does; return the chunks."""
    sent = {"id": "c", "messages": messages, "trigger": "submit-message", **more}
    response = request(app, "POST", "/", sent)
    assert response.status_code == 200, response.text
    assert response.headers["x-vercel-ai-ui-message-stream"] == "v1"
    *frames, last, end = response.text.split("\n\n")
    assert (last, end) == ("data: [DONE]", "")
    return [json.loads(frame.removeprefix("data: ")) for frame in frames]


def messages(app: Any) -> list[Json]:
    response = request(app, "GET", "/c")
    assert response.status_code == 200, response.text
    found: list[Json] = response.json()
    return found


def looped(*replies: Json, **options: Any) -> tuple[SessionRuntime, ChatApp, Any]:
    loops = LoopFactory(tools=[add])
    for reply in replies:
        loops.mock.add(reply)
    runtime = SessionRuntime("memory:", agents=loops)
    definition = AgentDef("a", model="mock/mock", options={"tool_format": "native"})
    return runtime, ChatApp(runtime, definition, **options), loops.mock


def test_an_answer_is_streamed_step_by_step_and_read_as_it_was_streamed() -> None:
    call = {"name": "add", "arguments": {"a": 1, "b": 2}}
    runtime, app, _ = looped({"text": "Let me see.", "tool_calls": [call]}, {"text": "Three."})
    start, *chunks, finish = chat(app, [user("u1", "1 + 2?")])
    assert (start["type"], finish) == ("start", {"type": "finish", "finishReason": "stop"})
    assert [chunk["type"] for chunk in chunks] == [
        "start-step", "text-start", "text-delta", "text-end", "tool-input-available", "tool-output-available",
        "finish-step", "start-step", "text-start", "text-delta", "text-end", "finish-step",
    ]  # fmt: skip
    asked, answer = messages(app)
    assert asked == user("u1", "1 + 2?")
    assert (answer["id"], answer["role"]) == (start["messageId"], "assistant")
    id = next(chunk["toolCallId"] for chunk in chunks if "toolCallId" in chunk)
    called = {"type": "tool-add", "toolCallId": id, "state": "output-available"}
    assert answer["parts"] == [
        {"type": "step-start"},
        {"type": "text", "text": "Let me see.", "state": "done"},
        {**called, "input": {"a": 1, "b": 2}, "output": "3"},
        {"type": "step-start"},
        {"type": "text", "text": "Three.", "state": "done"},
    ]
    assert [m["role"] for m in runtime.get("c").messages()] == ["user", "assistant", "tool", "assistant"]


def test_a_call_of_the_front_ends_tool_ends_the_answer_which_goes_on_with_its_output() -> None:
    calls = [{"name": "ask", "arguments": {}}, {"name": "fail", "arguments": {}}]
    tools = [front_end_tool("ask", "Ask the user."), front_end_tool("fail", "Fail.")]
    _, app, mock = looped({"text": "", "tool_calls": calls}, {"text": "Good."}, tools=tools)
    *_, finish = chat(app, [user("u1", "hi")])
    assert finish["finishReason"] == "tool-calls"
    asked, answer = messages(app)
    assert [part.get("state") for part in answer["parts"]] == [None, "input-available", "input-available"]
    _, ask, fail = answer["parts"]
    ask |= {"state": "output-available", "output": {"ok": True}}
    fail |= {"state": "output-error", "errorText": "no"}
    start, *_ = chat(app, [asked, answer])
    assert start["messageId"] == answer["id"]
    assert [m["content"] for m in mock.calls()[-1]["messages"][2:]] == ['{"ok": true}', "no"]
    answer["parts"] += [{"type": "step-start"}, {"type": "text", "text": "Good.", "state": "done"}]
    assert messages(app) == [asked, answer]
    assert chat(app, [asked, answer, user("u2", "more")])[0]["messageId"] != answer["id"]


def test_a_chat_that_ai_wrote_is_kept_as_it_is() -> None:
    runtime = SessionRuntime("memory:")
    app, saved = ChatApp(runtime), json.loads(CHAT.read_text(encoding="utf-8"))
    saved = saved["messages"] if isinstance(saved, dict) else saved
    assert request(app, "PUT", "/c", saved).status_code == 204
    assert messages(app) == saved
    # An export is what a model is shown: not the last call, which is open.
    assert json.loads(export(runtime.get("c"), "ai-sdk")) == saved[:-1]
    assert {"context_added", "message_added"} <= {event.type for event in runtime.get("c").events()}
    before = runtime.get("c").version
    request(app, "PUT", "/c", {"messages": saved})
    assert [e.type for e in runtime.get("c").events(before)] == ["action_executed"]  # nothing is new


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
JSON = st.none() | st.booleans() | TEXT | st.dictionaries(TEXT, TEXT, max_size=1)
TOOLS = st.fixed_dictionaries(
    {"type": st.sampled_from(["tool-f", "dynamic-tool"]), "toolCallId": st.sampled_from(["a", "b"])},
    optional={
        "state": st.sampled_from(["input-streaming", "input-available", "output-available", "output-error"]),
        "input": JSON, "output": JSON, "errorText": TEXT, "toolName": TEXT,
    },
)  # fmt: skip
URLS = st.sampled_from(["https://example.org/a.png", "data:image/png;base64," + "aGk" * 40])
PARTS = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": TEXT}, optional={"state": TEXT}),
    st.fixed_dictionaries({"type": st.just("reasoning"), "text": TEXT}),
    st.fixed_dictionaries({"type": st.just("file"), "mediaType": st.just("image/png"), "url": URLS}),
    st.fixed_dictionaries({"type": st.sampled_from(["step-start", "data-x", "source-url"])}),
    TOOLS,
)
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "system"]), "parts": st.lists(PARTS, max_size=3)},
        optional={"metadata": JSON},
    ),
    max_size=4,
).map(lambda given: [{"id": f"m{n}", **message} for n, message in enumerate(given)])


@given(MESSAGES, st.integers(0, 4), MESSAGES)
def test_messages_come_out_equal(given: list[Json], cut: int, other: list[Json]) -> None:
    """Added bit by bit, and replaced by others, of which some may be the same."""
    put, added, found, replaced, again = requests(
        ChatApp(SessionRuntime("memory:")),
        ("PUT", "/c", given[:cut]),
        ("POST", "/c", given[cut:]),
        ("GET", "/c", None),
        ("PUT", "/c", other),
        ("GET", "/c", None),
    )
    assert [each.status_code for each in (put, added, replaced)] == [204] * 3
    assert (found.json(), again.json()) == (given, other)


def test_calls_in_text_format_are_not_shown() -> None:
    loops = LoopFactory(tools=[add])
    loops.mock.add({"text": "<tool_call>\nadd({ a: 1, b: 2 })\n</tool_call>"})
    loops.mock.add({"text": "Three."})
    definition = AgentDef("a", model="mock/mock", options={"tool_format": "text"})
    app = ChatApp(SessionRuntime("memory:", agents=loops), definition)
    chunks = chat(app, [user("u1", "1 + 2?")])
    assert [chunk["delta"] for chunk in chunks if chunk["type"] == "text-delta"] == ["Three."]
    texts = [part["text"] for part in messages(app)[1]["parts"] if part["type"] == "text"]
    assert texts == ["Three."]


def test_what_a_front_end_takes_back_stays_in_the_log() -> None:
    runtime, app, _ = looped(*({"text": f"{n}"} for n in range(3)))
    chat(app, [user("u1", "one")])
    chat(app, [user("u1", "one")], trigger="regenerate-message")
    assert [part["text"] for part in messages(app)[1]["parts"][1:]] == ["1"]
    chat(app, [user("u1", "other")])
    session = runtime.get("c")
    assert [message["content"] for message in session.messages()] == ["other", "2"]
    logged = [event.data["content"] for event in session.events() if event.type == "message_added"]
    assert logged == ["one", "0", "1", "other", "2"]


def test_the_last_message_alone_is_enough() -> None:
    _, app, mock = looped({"text": "0"}, {"text": "1"})
    for n in range(2):
        response = request(app, "POST", "/", {"id": "c", "message": user(f"u{n}", f"{n}?")})
        assert response.status_code == 200
    assert [message["content"] for message in mock.calls()[-1]["messages"]] == ["0?", "0", "1?"]


def test_a_compaction_takes_nothing_from_the_front_end() -> None:
    runtime, app, mock = looped({"text": "0"}, {"text": "1"})
    chat(app, [user("u1", "one")])
    runtime.get("c").trim(1)
    chat(app, [*messages(app), user("u2", "two")])
    assert [message["content"] for message in mock.calls()[-1]["messages"]] == ["0", "two"]
    assert [message["id"] for message in messages(app)][::2] == ["u1", "u2"]


def test_chats_are_listed_by_their_owner_and_hidden_when_deleted() -> None:
    runtime = SessionRuntime("memory:")
    app = ChatApp(runtime, session_id=lambda scope, id: f"{dict(scope['headers'])[b'x-me'].decode()}/{id}")
    for owner, id in (("ann", "1"), ("bob", "1"), ("ann", "x/y")):
        assert request(app, "PUT", f"/{id}", [user("u", owner)], headers={"x-me": owner}).status_code == 204
    [second, first] = request(app, "GET", "/", headers={"x-me": "ann"}).json()["chats"]
    assert (first["id"], second["id"]) == ("1", "x/y")
    assert request(app, "GET", "/x/y", headers={"x-me": "ann"}).json() == [user("u", "ann")]
    assert request(app, "DELETE", "/1", headers={"x-me": "ann"}).status_code == 204
    assert request(app, "GET", "/1", headers={"x-me": "ann"}).status_code == 404
    assert request(app, "PUT", "/1", [], headers={"x-me": "ann"}).status_code == 410
    assert request(app, "GET", "/1", headers={"x-me": "bob"}).json() == [user("u", "bob")]
    assert runtime.get("ann/1").messages() == [{"role": "user", "content": "ann"}]


def test_errors_are_chunks_that_tell_no_secrets() -> None:
    def agent(messages: list[Json]) -> Any:
        yield "half"
        raise ValueError("secret")

    sent: list[Any] = []

    async def receive() -> Any:
        if sent:
            await asyncio.Event().wait()
        sent.append({})
        body = {"id": "c", "messages": [user("u", "hi")]}
        return {"type": "http.request", "body": json.dumps(body).encode()}

    async def send(message: Any) -> None:
        sent.append(message)

    app = ChatApp(SessionRuntime("memory:"), agent)
    with pytest.raises(ValueError, match="secret"):  # which is for the server's log
        asyncio.run(app({"type": "http", "method": "POST", "path": "/x", "root_path": "/x"}, receive, send))
    text = b"".join(each.get("body", b"") for each in sent).decode()
    assert '"text-end"' in text
    assert '{"type":"error","errorText":"the agent failed"}' in text
    assert "secret" not in text


@pytest.mark.parametrize(
    ("method", "path", "sent", "status", "why"),
    [
        ("GET", "/none", None, 404, "there is no chat 'none'"),
        ("PATCH", "/c", None, 405, "GET, PUT, POST, DELETE"),
        ("DELETE", "/", None, 405, "GET, POST"),
        ("POST", "/", [], 400, "the chat's `id`"),
        ("POST", "/", {"id": "", "messages": []}, 400, "the chat's `id`"),
        ("POST", "/", {"id": "c"}, 400, "message 1 must be an object with an `id`"),
        ("PUT", "/c", "text", 400, "must be a list"),
        ("PUT", "/c", [user("", "x")], 400, "message 1 must be an object with an `id`"),
        ("PUT", "/c", [{"id": "a", "role": "tool", "parts": []}], 400, "message 1: `role`"),
        ("PUT", "/c", [user("a", "x"), {"id": "b", "role": "user", "parts": [1]}], 400, "message 2: `parts`"),
        ("PUT", "/%0A", [], 400, "Invalid session ID"),
        ("PUT", "/c", json.loads("[" * 400 + "]" * 400), 400, "message 1 must be"),
    ],
)
def test_what_is_refused_is_told_in_a_sentence(
    method: str, path: str, sent: Any, status: int, why: str
) -> None:
    runtime = SessionRuntime("memory:")
    response = request(ChatApp(runtime, lambda _: "ok"), method, path, sent)
    assert response.status_code == status
    assert why in response.json()["error"]
    assert runtime.list().items == []


@pytest.mark.parametrize(("depth", "status"), [(200, 204), (900, 400)])
def test_what_is_nested_too_deeply_is_refused(depth: int, status: int) -> None:
    app = ChatApp(SessionRuntime("memory:"))
    message = {**user("a", "x"), "metadata": {"deep": json.loads("[" * depth + "]" * depth)}}
    response = request(app, "PUT", "/c", [message])
    assert response.status_code == status
    if status == 204:
        assert messages(app) == [message]


def test_messages_that_are_there_keep_their_words_unless_the_chat_is_put() -> None:
    app = ChatApp(SessionRuntime("memory:"))
    request(app, "PUT", "/c", [user("a", "x")])
    assert request(app, "POST", "/c", user("a", "x")).status_code == 204
    assert request(app, "POST", "/c", user("a", "y")).status_code == 409
    assert messages(app) == [user("a", "x")]
    assert request(app, "GET", "/c/stream").status_code == 204
    assert "no agent" in request(app, "POST", "/", {"id": "c", "messages": []}).json()["error"]
