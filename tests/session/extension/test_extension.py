"""`SessionExtension`: which session is active, what requests show of it and leave in it.

Spec: 10 §A2.5, §A2.8, §C8.1, §C9.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

import pytest

from harnpy.session import (
    AgentDef,
    InvalidArgument,
    Session,
    SessionExtension,
    SessionRuntime,
    current_session_id,
)
from harnpy.session.extension import RequestPrompt
from harnpy.session.resize_policy import ResizePolicy
from harnpy.storage import Store
from tests.session.shapes import said

Make = Callable[..., SessionExtension]
HI, HELLO = said("user", "hi"), said("assistant", "hello")


class Full:
    """A stream that takes no more."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def append(self, *given: Any, **more: Any) -> None:
        raise OSError("disk full")


@pytest.fixture(params=["alone", "runtime"])
def extension(request: pytest.FixtureRequest) -> Iterator[Make]:
    """Makes extensions over one runtime on memory, or over none."""
    with SessionRuntime("memory:") as runtime:
        yield lambda **options: SessionExtension(
            runtime if request.param == "runtime" else None, "clerk", **options
        )


def asked(extension: SessionExtension, text: str = "hi", result: Any = "hello") -> RequestPrompt:
    prompt = extension.prepare({"input": text})
    extension.finish(prompt, result)
    return prompt


def told(extension: SessionExtension) -> list[tuple[str, dict[str, Any]]]:
    found: list[tuple[str, dict[str, Any]]] = []
    for name in ("activated", "deactivated", "applied_to_request", "context_appended"):
        extension.events.on(f"session_{name}", lambda name, data: found.append((name, data)))
    return found


def test_the_life_of_a_request(extension: Make) -> None:
    agent = extension()
    heard = told(agent)
    session = agent.activate("s")
    assert (agent.session, agent.sessions, session.id) == (session, {"s": session}, "s")
    assert agent.settings["runtime.session_id"] == "s"
    session.set_memo({"name": "Ada", "n": 1})
    slots = {"input": "hi"}
    prompt = agent.prepare(slots)
    assert slots == {"input": "hi", "chat_history": [], "CHAT SESSION MEMO": {"name": "Ada", "n": 1}}
    assert (prompt.request is slots, prompt.session, current_session_id()) == (True, session, "s")
    agent.finish(prompt, "hello")
    assert agent.chat_history == session.messages() == [HI, HELLO]
    session.set_memo(None)
    assert agent.prepare(prompt).slots() == {"input": "hi", "chat_history": [HI, HELLO]}
    agent.deactivate()
    assert (agent.session, agent.chat_history, agent.sessions) == (None, [], {"s": session})
    assert "runtime.session_id" not in agent.settings
    agent.deactivate()
    id = {"session_id": "s"}
    assert heard == [
        ("session_activated", {**id, "agent_name": "clerk"}),
        ("session_applied_to_request", {**id, "context_window_size": 0, "memo_size": 2}),
        (
            "session_context_appended",
            {**id, "has_user_content": True, "has_assistant_content": True, "context_window_size": 2},
        ),
        ("session_applied_to_request", {**id, "context_window_size": 2, "memo_size": 0}),
        ("session_deactivated", {**id, "agent_name": "clerk"}),
    ]


def test_a_known_id_is_that_session_and_none_a_new_one(extension: Make) -> None:
    agent = extension()
    first = agent.activate("s")
    asked(agent)
    second = agent.activate()
    assert agent.chat_history == []
    assert second.id not in ("", "s")
    assert agent.activate("s").messages() == [HI, HELLO]
    assert list(agent.sessions) == ["s", second.id]
    assert agent.session is first


def test_a_result_is_recorded_once(extension: Make) -> None:
    agent = extension()
    session = agent.activate("s")
    prompt = asked(agent)
    seq = session.seq
    assert [event.more for event in session.events(seq - 2)] == [1, 0], "one append"
    agent.finish(prompt, "hello")
    assert session.seq == seq
    agent.finish(agent.prepare(prompt), "hello")
    assert session.length == 4, "a request that is prepared again is another one"


def test_threads_that_share_a_runtime_record_a_result_once() -> None:
    with SessionRuntime("memory:") as runtime:
        agent = SessionExtension(runtime)
        session = agent.activate("s")
        prompt = agent.prepare({"input": "hi"})
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda _: agent.finish(prompt, "hello"), range(8)))
        assert session.messages() == [HI, HELLO]


def test_a_request_is_recorded_where_it_was_prepared(extension: Make) -> None:
    agent = extension()
    first = agent.activate("first")
    prompt = agent.prepare({"input": "hi"})
    second = agent.activate("second")
    agent.finish(prompt, "hello")
    assert (first.length, second.length) == (2, 0)
    prompt = agent.prepare({"input": "hi"})
    agent.deactivate()
    agent.finish(prompt, "hello")
    assert second.length == 2


def test_what_fails_can_be_tried_again(extension: Make) -> None:
    agent = extension()
    session = agent.activate("s")
    prompt = agent.prepare({"input": "hi"})
    stream = session.stream
    session.stream = Full(stream)  # type: ignore[assignment]
    with pytest.raises(OSError, match="disk full"):
        agent.finish(prompt, "hello")
    session.stream = stream
    assert session.messages() == []
    agent.finish(prompt, "hello")
    assert session.messages() == [HI, HELLO]


@pytest.mark.parametrize(
    ("slots", "result", "messages"),
    [
        ({"input": "hi"}, None, [HI]),
        ({"input": " "}, "hello", [HELLO]),
        ({}, "", []),
        ({"input": "hi"}, {"answer": "tea"}, [HI, said("assistant", "answer: tea")]),
    ],
)
def test_what_is_empty_is_no_message(
    extension: Make, slots: dict[str, Any], result: Any, messages: list[Any]
) -> None:
    agent = extension()
    heard = told(agent)
    session = agent.activate("s")
    agent.finish(agent.prepare(dict(slots)), result)
    assert session.messages() == messages
    roles = {message["role"] for message in messages}
    assert heard[-1][1]["has_user_content"] == ("user" in roles)
    assert heard[-1][1]["has_assistant_content"] == ("assistant" in roles)


def test_keys_choose_what_is_recorded_and_a_session_has_its_own(extension: Make) -> None:
    agent = extension(input_keys=["info.task", ".agent.role"], reply_keys="answer")
    agent.prompt["role"] = "clerk"
    session = agent.activate("s")

    def ask() -> list[Any]:
        prompt = agent.prepare({"input": "hi", "info": {"task": "tea"}})
        agent.finish(prompt, {"answer": "yes", "why": "no"})
        return [message["content"] for message in session.messages()[-2:]]

    assert ask() == ["[info.task]:\ntea\n[.agent.role]:\nclerk", "[answer]:\nyes"]
    session.set("settings.input_keys", "input")
    agent.set_settings("session.reply_keys", ["why"])
    assert ask() == ["[input]:\nhi", "[why]:\nno"]
    with pytest.raises(InvalidArgument, match="setting 'input_keys' must be"):
        agent.set_settings("input_keys", 3)


def test_without_a_session_the_history_is_a_plain_list(extension: Make) -> None:
    agent = extension()
    heard = told(agent)
    assert asked(agent).slots() == {"input": "hi"}
    agent.add_history([HI, HELLO])
    agent.add_history({"content": "more"})
    assert asked(agent).slots()["chat_history"] == [HI, HELLO, said("user", "more")]
    agent.set_history(HI)
    assert agent.chat_history == [HI]
    agent.clean_window()
    assert agent.chat_history == []
    agent.set_history([HI, HELLO])
    agent.reset()
    assert agent.chat_history == []
    agent.set_history(HI)
    agent.activate("s")
    assert agent.chat_history == [], "the session's counts"
    agent.deactivate()
    assert agent.chat_history == []
    assert current_session_id() == asked(agent).session is None
    assert [name for name, _ in heard] == ["session_activated", "session_deactivated"]


def test_with_a_session_the_history_is_its_window(extension: Make) -> None:
    agent = extension()
    session = agent.activate("s")
    agent.set_history([HI, HELLO])
    agent.add_history(HI)
    assert agent.chat_history == session.messages() == [HI, HELLO, HI]
    agent.clean_window()
    assert (agent.chat_history, session.history()) == ([], [HI, HELLO, HI])
    agent.reset()
    assert session.history() == []


def test_handlers_hold_in_all_sessions_those_to_come_too(extension: Make) -> None:
    agent = extension()
    first = agent.activate("first")
    agent.strategy("last", lambda full, window, memo, settings: (None, window[-1:], None))
    agent.on_analyze(lambda full, window, *_: "last" if len(window) > 2 else None)
    second = agent.activate("second")
    for session in (first, second):
        session.add_history([HI, HELLO, HI])
        assert session.messages() == [HI]
    second.policy.strategy("last", lambda full, window, *_: (None, window[-2:], None))
    for session, length in ((first, 1), (second, 2)):
        session.add_history([HI, HELLO, HI])
        assert session.length == length, "a session's own comes later"
    agent.activate("second")
    assert second.length == 2
    agent.on_analyze(None)
    for session in (first, second):
        session.set_history([HI, HELLO, HI])
        assert session.length == 3
    with pytest.raises(InvalidArgument, match=r"^strategy_name must be a non-empty string\.$"):
        agent.strategy(" ", lambda *_: (None, None, None))


def test_settings_of_the_agent_stand_between_session_and_runtime(extension: Make) -> None:
    agent = extension(settings={"session.max_length": 40})
    session = agent.activate("s")
    resized: list[str] = []
    agent.events.on("session_resized", lambda name, data: resized.append(data["session_id"]))
    agent.add_history([HI, HELLO])
    assert session.length == 1
    if agent.runtime is not None:
        agent.runtime.settings["max_length"] = 10
        assert session.settings["max_length"] == 40
        assert agent.runtime.create(id="other").settings["max_length"] == 10
    agent.set_settings("session.max_length", 1000)
    agent.add_history([HI, HELLO])
    assert (session.length, session.settings["runtime.session_id"]) == (3, "s")
    session.set("settings.max_length", 40)
    agent.add_history([HI, HELLO])
    assert (session.length, resized) == (1, ["s", "s"])
    agent.set_settings("max_length", None)
    assert session.settings["max_length"] == 40


def test_strict_roles(extension: Make) -> None:
    agent = extension(strict_roles=True)
    session = agent.activate("s")
    assert agent.prepare({}).slots() == {"chat_history": []}
    agent.add_history([HELLO, HI, HI])
    shown = agent.prepare({}).slots()["chat_history"]
    assert [message["role"] for message in shown] == ["user", "assistant", "user", "assistant"]
    assert session.messages() == [HELLO, HI, HI]


class Diary:
    def __init__(self, *texts: str) -> None:
        self.texts = texts
        self.heard: list[tuple[str, ...]] = []

    def recall(self, query: str) -> tuple[str, ...]:
        self.heard.append((query,))
        return self.texts

    def remember(self, *said: str) -> None:
        self.heard.append(said)


def test_memory_is_recalled_and_told(extension: Make) -> None:
    diary = Diary("Ada likes tea", "", "She is a clerk")
    agent = extension(memory=diary)
    session = agent.activate("s")
    slots = {"input": "hi", "info": {"day": 1}}
    prompt = agent.prepare(slots)
    recalled = "Ada likes tea\n\nShe is a clerk"
    assert slots["info"] == {"day": 1, "session_memory_context": recalled}
    agent.finish(prompt, "hello")
    assert diary.heard == [
        ("[input]:\nhi\n[info]:\nday: 1",),
        ("s", "[input]:\nhi\n[info]:\nday: 1", "hello"),
    ]
    assert session.messages()[0]["content"] == "[input]:\nhi\n[info]:\nday: 1", "what is recalled isn't"
    assert agent.prepare({"input": "x", "info": "y"}).slots()["info.session_memory_context"] == recalled
    diary.texts = ()
    assert agent.prepare(prompt).slots()["info"] == {"day": 1}
    diary.texts = ("a" * 5000,) * 20
    assert agent.prepare({}).slots()["info"]["session_memory_context"].count("a") == 4000
    diary.texts = ("a",) * 20
    assert agent.prepare({}).slots()["info"]["session_memory_context"].count("a") == 16


def test_a_memory_that_fails_fails_no_request(extension: Make, caplog: pytest.LogCaptureFixture) -> None:
    agent = extension(memory=object())
    session = agent.activate("s")
    with caplog.at_level(logging.ERROR):
        prompt = asked(agent)
    assert prompt.slots() == {"input": "hi", "chat_history": []}
    assert session.messages() == [HI, HELLO]
    verbs = [record.message for record in caplog.records]
    assert verbs == [f"a session's memory could not {verb}" for verb in ("recall", "remember")]


def test_whose_request_it_is_is_known_to_its_own_thread_alone(extension: Make) -> None:
    agents = [extension(), extension()]
    for number, agent in enumerate(agents):
        agent.activate(str(number))
    prepared = [copy_context() for _ in agents]
    for context, agent in zip(prepared, agents, strict=True):
        context.run(agent.prepare, {})
    assert [context.run(current_session_id) for context in prepared] == ["0", "1"]


def test_on_every_store(store: Store) -> None:
    """What one agent recorded, another one goes on with; the settings are those of the one that is active."""
    agent = SessionExtension(SessionRuntime(store), "clerk", settings={"max_length": 150})
    session = agent.activate("s")
    revision = session.revision
    asked(agent)
    assert session.revision == revision + 1
    other = SessionExtension(SessionRuntime(store), "clerk")
    again = other.activate("s")
    assert asked(other, "and now?", "now").slots()["chat_history"] == [HI, HELLO]
    session = agent.activate("s")
    shown = agent.prepare({"input": "more"})
    assert [message["content"] for message in shown.slots()["chat_history"]] == [
        "hi",
        "hello",
        "and now?",
        "now",
    ]
    agent.finish(shown, "done")
    assert session.length < 6, "it has a limit in the one agent"
    again.refresh()
    assert again.messages() == session.messages()
    assert again.history()[-1] == said("assistant", "done")
    assert agent.runtime is not None
    assert agent.runtime.info("s").agent_name == "clerk"


def test_two_agents_of_a_runtime_and_one_session() -> None:
    """The handlers and settings are those of the agent that activated it last."""
    with SessionRuntime(
        "memory:", resize=ResizePolicy().strategy("own", lambda *_: (None, [], None))
    ) as runtime:
        one = SessionExtension(runtime, "one", settings={"max_length": 40})
        two = SessionExtension(runtime, "two", settings={"max_length": 1000})
        one.strategy("mine", lambda *_: (None, [], None))
        session = one.activate("s")
        assert set(session.policy.strategies) == {"own", "mine"}
        assert two.activate("s") is session
        assert set(session.policy.strategies) == {"own"}
        assert session.settings["max_length"] == 1000
        one.strategy("late", lambda *_: (None, [], None))
        assert set(session.policy.strategies) == {"own"}
        assert one.activate("s").settings["max_length"] == 40
        assert set(session.policy.strategies) == {"own", "mine", "late"}
        assert set(runtime.create(id="other").policy.strategies) == {"own"}
        assert runtime.evict("s")
        assert one.activate("s").settings["max_length"] == 40


def test_a_session_that_another_thread_creates_first() -> None:
    with SessionRuntime("memory:") as runtime:
        agent = SessionExtension(runtime, "clerk")
        exists = runtime.exists
        runtime.exists = lambda id: exists(id) or runtime.create(id=id) is None  # type: ignore[method-assign]
        assert agent.activate("s") is runtime.get("s")


def test_the_agent_may_be_a_definition() -> None:
    with SessionRuntime("memory:") as runtime:
        clerk = AgentDef("clerk", settings={"session.max_length": 40})
        agent = SessionExtension(runtime, clerk)
        session = agent.activate("s")
        assert agent.agent_name == runtime.info("s").agent_name == "clerk"
        assert runtime.info("s").definition == clerk.data()
        assert session.settings["max_length"] == 40
        agent.set_settings("session.max_length", 50)
        assert session.settings["max_length"] == 50


def test_actions_go_by_the_agents_settings_too() -> None:
    with SessionRuntime("memory:") as runtime:
        agent = SessionExtension(runtime, "clerk", settings={"max_length": 40})
        session = agent.activate("s")
        runtime.execute("s", lambda txn: txn.add_history([HI, HELLO]))
        assert session.length == 1
        fork = session.fork("f")
        fork.add_history([HI, HELLO])
        assert fork.length == 1, "a fork is the agent's as well"
    assert Session().settings.get("max_length") is None
