"""Agents for AG-UI's front ends, by the protocol's own types. Spec: 10 §C20."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from ag_ui.core import Event
from ag_ui.core import Message as AgUiMessage
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from harnpy import AgentDef, LoopFactory, tool
from harnpy.adapters.ag_ui import AgUiApp
from harnpy.adapters.front_ends import PENDING
from harnpy.eventlog import StoreEventLog
from harnpy.eventlog.bearer import BearerSessions
from harnpy.eventlog.http import BearerAuth
from harnpy.session import SessionRuntime
from harnpy.storage.errors import Unsupported

Json = dict[str, Any]
Post = Callable[..., list[Json]]

EVENT: TypeAdapter[Any] = TypeAdapter(Event)
MESSAGE: TypeAdapter[Any] = TypeAdapter(AgUiMessage)
ASK = {"name": "ask", "description": "Ask the user.", "parameters": {"type": "object", "properties": {}}}


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def request(app: Any, method: str, path: str, **sent: Any) -> httpx2.Response:
    return requests(app, (method, path, sent))[0]


def requests(app: Any, *calls: tuple[str, str, Json]) -> list[httpx2.Response]:
    async def send() -> list[httpx2.Response]:
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://x") as client:
            return [await client.request(method, path, **sent) for method, path, sent in calls]

    return asyncio.run(send())


def body(messages: list[Any], **more: Any) -> Json:
    return {"threadId": "t", "runId": "r", "messages": messages, "tools": [], "context": [], **more}


def post(app: Any, messages: list[Any], **more: Any) -> list[Json]:
    """Run once; return the events, which are the protocol's."""
    return events_of(request(app, "POST", "/", json=body(messages, **more)))


def events_of(response: httpx2.Response) -> list[Json]:
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "text/event-stream"
    events = [json.loads(frame.removeprefix("data: ")) for frame in response.text.split("\n\n") if frame]
    for event in events:
        EVENT.validate_python(event)
    return events


def types(events: list[Json]) -> list[str]:
    return [event["type"] for event in events]


def user(id: str, text: str) -> Json:
    return {"id": id, "role": "user", "content": text}


def answer(events: list[Json]) -> Json:
    """The text that the run's last message has, as a front end keeps it."""
    id = next(event["messageId"] for event in events if event["type"] == "TEXT_MESSAGE_START")
    text = "".join(event["delta"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT")
    return {"id": id, "role": "assistant", "content": text}


def looped(*replies: Json, store: str = "memory:", **definition: Any) -> tuple[SessionRuntime, AgUiApp, Any]:
    loops = LoopFactory(tools=[add])
    for reply in replies:
        loops.mock.add(reply)
    runtime = SessionRuntime(store, agents=loops)
    options = {"options": {"tool_format": "native"}, **definition}
    return runtime, AgUiApp(runtime, AgentDef("a", model="mock/mock", **options)), loops.mock


def test_a_call_of_the_front_ends_tool_ends_the_run_and_its_result_comes_with_the_next_input(
    tmp_path: Path,
) -> None:
    calls = [{"name": "ask", "arguments": {}}, {"name": "add", "arguments": {"a": 1, "b": 2}}]
    runtime, app, mock = looped(
        {"text": "Let me see.", "tool_calls": calls}, {"text": "Yes: 3."}, {"text": "Again."},
        store=f"sqlite:{tmp_path}/s.db",
    )  # fmt: skip
    messages = [{"id": "s", "role": "system", "content": "Be kind."}, user("u1", "Is it what you want?")]
    events = post(app, messages, tools=[ASK])
    assert types(events) == [
        "RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END",
        "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_START", "TOOL_CALL_ARGS",
        "TOOL_CALL_END", "TOOL_CALL_RESULT", "RUN_FINISHED",
    ]  # fmt: skip
    asked, added = (event for event in events if event["type"] == "TOOL_CALL_START")
    assert asked["parentMessageId"] == answer(events)["id"]
    assert events[-1]["outcome"] == {"type": "success", "pendingToolCallIds": [asked["toolCallId"]]}
    assert events[-1]["usage"][0]["outputTokens"] > 0
    result = events[-2]
    assert (result["toolCallId"], result["content"]) == (added["toolCallId"], "3")

    said = answer(events)
    said["toolCalls"] = [
        {"id": call["toolCallId"], "type": "function", "function": {"name": name, "arguments": "{}"}}
        for call, name in ((asked, "ask"), (added, "add"))
    ]
    there = {"id": result["messageId"], "role": "tool", "toolCallId": added["toolCallId"], "content": "3"}
    back = {"id": "x", "role": "tool", "toolCallId": asked["toolCallId"], "content": "yes"}
    messages += [said, there, back]
    events = post(app, messages, tools=[ASK])
    assert answer(events)["content"] == "Yes: 3."
    roles = [message["role"] for message in mock.calls()[-1]["messages"]]
    assert roles == ["user", "user", "assistant", "tool", "tool"]  # what the system says is the user's here
    shown = [entry.message["content"] for entry in runtime.get("t").entries()]
    assert shown == ["Be kind.", "Is it what you want?", "Let me see.", "yes", "3", "Yes: 3."]
    runtime.evict("t")
    assert [entry.message["content"] for entry in runtime.get("t").entries()] == shown
    assert any(PENDING in json.dumps(event.data) for event in runtime.get("t").events())

    # A call that nobody answered: the conversation goes on all the same.
    messages += [answer(events), user("u2", "Go on.")]
    runtime.get("t").trim(1)
    assert answer(post(app, messages))["content"] == "Again."
    assert [each["id"] for each in post(app, [])[1]["messages"]][:-1] == [each["id"] for each in messages]


def test_what_a_front_end_takes_back_stays_in_the_log() -> None:
    runtime, app, _ = looped(*({"text": f"{n}"} for n in range(4)))
    first = post(app, [user("u1", "one")])
    talk = [user("u1", "one"), answer(first), user("u2", "two")]
    post(app, talk)
    assert answer(post(app, talk))["content"] == "2"  # once more
    assert [message["content"] for message in runtime.get("t").messages()] == ["one", "0", "two", "2"]
    post(app, [user("u1", "other")])  # edited
    session = runtime.get("t")
    assert [message["content"] for message in session.messages()] == ["other", "3"]
    assert session.execution_status == "completed"
    logged = [message["content"] for message in session.history(include_reset=True)]
    assert {"one", "0", "two", "1", "2", "other", "3"} <= {*logged} | {
        event.data["content"] for event in session.events() if event.type == "message_added"
    }


def test_calls_in_text_format_are_not_shown() -> None:
    call = "<tool_call>\nadd({ a: 1, b: 2 })\n</tool_call>"
    replies = [{"text": call}, {"text": "Three."}, {"text": "Four."}]
    runtime, app, _ = looped(*replies, options={"tool_format": "text"})
    events = post(app, [user("u1", "1 + 2?")])
    assert types(events)[1:-1] == ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]
    assert answer(events)["content"] == "Three."
    talk = [user("u1", "1 + 2?"), answer(events)]
    assert post(app, [])[1]["messages"] == talk
    version = runtime.get("t").version
    assert answer(post(app, [*talk, user("u2", "2 + 2?")]))["content"] == "Four."
    assert "leaf_moved" not in [event.type for event in runtime.get("t").events(version)]


def test_a_front_end_that_knows_nothing_gets_the_conversation() -> None:
    runtime, app, mock = looped({"text": "0"}, {"text": "1"})
    first = answer(post(app, [user("u1", "one")]))
    started, snapshot, finished = post(app, [])
    assert (started["type"], finished["type"]) == ("RUN_STARTED", "RUN_FINISHED")
    assert snapshot["messages"] == [user("u1", "one"), first]
    assert len(mock.calls()) == 1
    events = post(app, [user("u2", "two")])
    assert events[1]["messages"] == [user("u1", "one"), first, user("u2", "two")]
    assert len(runtime.get("t").messages()) == 4


def test_a_compaction_takes_nothing_from_the_front_end() -> None:
    runtime, app, mock = looped({"text": "0"}, {"text": "1"}, {"text": "2"})
    talk = [user("u1", "one")]
    for n in range(2):
        talk += [answer(post(app, talk)), user(f"u{n + 2}", f"{n}?")]
    runtime.get("t").trim(1)
    events = post(app, talk)
    assert types(events)[1] == "TEXT_MESSAGE_START"
    assert [message["content"] for message in mock.calls()[-1]["messages"]] == ["1", "1?"]
    assert [m["content"] for m in post(app, [])[1]["messages"]] == ["one", "0", "0?", "1", "1?", "2"]


def test_nobody_goes_back_behind_a_history_that_was_replaced() -> None:
    runtime, app, _ = looped({"text": "0"}, {"text": "1"})
    talk = [user("u1", "one"), answer(post(app, [user("u1", "one")]))]
    session = runtime.get("t")
    session.set_history([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}])
    [_, snapshot, _] = post(app, [])
    before = session.version
    kept = [{**snapshot["messages"][0]}, user("u9", "else")]
    response = request(app, "POST", "/", json=body(kept))
    assert (response.status_code, session.version) == (409, before)
    assert "its history was replaced" in response.json()["error"]
    assert answer(post(app, [*talk, user("u2", "two")]))["content"] == "1"


TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)
SOURCES = st.fixed_dictionaries({
    "type": st.just("data"), "value": st.sampled_from(["aGk=", "aGk" * 40]), "mimeType": st.just("image/png"),
}) | st.fixed_dictionaries({"type": st.sampled_from(["url", "file"]), "value": TEXT})  # fmt: skip
PARTS = st.fixed_dictionaries({"type": st.just("text"), "text": TEXT}) | st.fixed_dictionaries({
    "type": st.sampled_from(["image", "audio", "video", "document"]), "source": SOURCES,
})  # fmt: skip
CONTENT = TEXT | st.lists(PARTS, max_size=2)
CALLS = st.fixed_dictionaries({
    "id": st.sampled_from(["c1", "c2"]), "type": st.just("function"),
    "function": st.fixed_dictionaries({"name": TEXT, "arguments": st.sampled_from(["{}", '{"a": '])}),
})  # fmt: skip
MORE = {"name": TEXT, "metadata": st.dictionaries(TEXT, st.none() | TEXT, max_size=1)}


def message(role: str, optional: Any = MORE, **fields: Any) -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries({"role": st.just(role), **fields}, optional=optional)


MESSAGES = st.lists(
    st.one_of(
        message("user", content=CONTENT),
        message("system", content=TEXT),
        message("developer", content=TEXT),
        message("assistant", {**MORE, "content": TEXT, "toolCalls": st.lists(CALLS, max_size=2)}),
        message("tool", {"error": TEXT}, content=CONTENT, toolCallId=st.sampled_from(["c1", "c2"])),
        message("reasoning", {"encryptedValue": TEXT}, content=TEXT),
        message("activity", {}, activityType=TEXT, content=st.dictionaries(TEXT, TEXT, max_size=1)),
    ),
    min_size=1,
    max_size=5,
).map(lambda messages: [{"id": f"m{n}", **each} for n, each in enumerate(messages)])


@given(MESSAGES, st.integers(0, 5))
def test_messages_come_out_equal(messages: list[Json], cut: int) -> None:
    """Also when they come bit by bit."""
    sent = [body(messages[:cut]), body(messages), body([])]
    app = AgUiApp(SessionRuntime("memory:"), lambda _: None)
    *_, last = requests(app, *(("POST", "/", {"json": each}) for each in sent))
    found = events_of(last)[1]["messages"]
    assert [MESSAGE.validate_python(each) for each in found] == [
        MESSAGE.validate_python(each) for each in messages
    ]


def test_state_is_the_memo_and_context_a_part_of_the_system_prompt() -> None:
    runtime, app, mock = looped({"text": "0"}, {"text": "1"}, system_prompt="Be short.")
    seen = [{"description": "The page", "value": "prices"}]
    post(app, [user("u1", "one")], state={"cart": 1}, context=seen)
    assert runtime.get("t").memo == {"cart": 1}
    assert mock.calls()[-1]["system"].startswith("Be short.\n\nThe page:\nprices")
    runtime.get("t").set_memo({"cart": 2})
    _, snapshot, *_ = post(app, [user("u2", "two")], state={})
    assert snapshot == {"type": "STATE_SNAPSHOT", "snapshot": {"cart": 2}}
    assert "The page" not in mock.calls()[-1]["system"]


def test_an_agent_that_is_a_function_changes_the_state_and_fails_by_name() -> None:
    def agent(messages: list[Json], turn: Any) -> Any:
        turn.session.set_memo({"n": 1})
        yield "half"
        raise ValueError("secret")

    app = AgUiApp(SessionRuntime("memory:"), agent)
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    with pytest.raises(ValueError, match="secret"):  # which is for the server's log
        asyncio.run(app(SCOPE, arriving(user("u1", "one")), send))
    text = b"".join(each.get("body", b"") for each in sent).decode()
    events = [json.loads(frame.removeprefix("data: ")) for frame in text.split("\n\n") if frame]
    assert types(events) == [
        "RUN_STARTED", "STATE_SNAPSHOT", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END",
        "RUN_ERROR",
    ]  # fmt: skip
    assert "secret" not in text
    assert not sent[-1].get("more_body")


SCOPE: Json = {"type": "http", "method": "POST", "path": "/"}


def arriving(*messages: Json, gone: asyncio.Event | None = None) -> Callable[[], Any]:
    """What a server receives: a body, and in the end that the client has left."""
    coming = [{"type": "http.request", "body": json.dumps(body([*messages])).encode()}]

    async def receive() -> Any:
        if not coming:
            await (asyncio.Event() if gone is None else gone).wait()
        return coming.pop() if coming else {"type": "http.disconnect"}

    return receive


def test_a_client_that_leaves_cancels_the_turn() -> None:
    runtime = SessionRuntime("memory:")
    begun = asyncio.Event()

    async def agent(messages: list[Json]) -> str:
        begun.set()
        await asyncio.Event().wait()
        return "never"

    async def send(message: Any) -> None:
        pass

    asyncio.run(AgUiApp(runtime, agent)(SCOPE, arriving(user("u1", "one"), gone=begun), send))
    [end] = [event for event in runtime.get("t").events() if event.type == "turn_completed"]
    assert end.data["turn_stop_reason"] == "cancelled"


def test_runs_on_one_thread_wait_for_each_other_and_see_their_own_events_alone() -> None:
    async def agent(messages: list[Json]) -> Any:
        for piece in ("a", "b"):
            await asyncio.sleep(0.005)
            yield f"{len(messages)}{piece}"

    app = AgUiApp(SessionRuntime("memory:"), agent)

    async def call() -> list[str]:
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://x") as client:
            sent = [client.post("/", json=body([user(f"u{n}", "go")])) for n in range(2)]
            return [each.text for each in await asyncio.gather(*sent)]

    texts = asyncio.run(call())
    for text in texts:
        events = [json.loads(frame.removeprefix("data: ")) for frame in text.split("\n\n") if frame]
        assert types(events).count("TEXT_MESSAGE_CONTENT") == 2
        assert len({event["messageId"] for event in events if "messageId" in event}) == 1
    assert texts[0] != texts[1]


@pytest.mark.parametrize(
    ("method", "path", "sent", "status", "why"),
    [
        ("GET", "/", b"", 405, "this takes POST, not GET"),
        ("POST", "/x", b"", 404, "there is nothing at this path: POST a RunAgentInput to /"),
        ("POST", "/", b"{", 400, "the body: "),
        ("POST", "/", b"[1]", 400, "the body is no RunAgentInput"),
        ("POST", "/", json.dumps({**body([]), "threadId": 1}), 400, "look at `threadId`"),
        ("POST", "/", json.dumps(body([{"id": "a", "role": "x"}])), 400, "look at `messages.0`"),
        ("POST", "/", json.dumps(body([], threadId="a\n")), 400, "Invalid session ID"),
        (
            "POST",
            "/",
            json.dumps(body([], resume=[{"interruptId": "i", "status": "resolved"}])),
            400,
            "to resume",
        ),
        ("POST", "/", b" " * 2000, 413, "the body has more than 1000 bytes"),
        ("POST", "/", b"[" * 900, 400, "the body: "),
    ],
)
def test_what_is_refused_is_told_in_a_sentence(
    method: str, path: str, sent: Any, status: int, why: str
) -> None:
    runtime = SessionRuntime("memory:")
    response = request(AgUiApp(runtime, lambda _: None, max_body=1000), method, path, content=sent)
    assert response.status_code == status
    assert why in response.json()["error"]
    assert runtime.list().items == []


def test_who_may_call_is_for_bearer_auth_and_whose_thread_it_is_for_the_application() -> None:
    runtime = SessionRuntime("memory:")
    tokens = BearerSessions(StoreEventLog(runtime.store))
    app = AgUiApp(
        runtime, lambda _: "ok", session_id=lambda scope, thread: f"{scope['auth_principal']}/{thread}"
    )
    guarded = BearerAuth(app, tokens, static_keys={"key": "ann"})
    assert request(guarded, "POST", "/", json=body([user("u", "hi")])).status_code == 401
    headers = {"authorization": "Bearer key"}
    assert request(guarded, "POST", "/", json=body([user("u", "hi")]), headers=headers).status_code == 200
    assert [info.id for info in runtime.list().items] == ["ann/t"]


def test_a_definition_needs_a_loop() -> None:
    with pytest.raises(Unsupported, match="LoopFactory"):
        AgUiApp(SessionRuntime("memory:"), AgentDef("a"))
