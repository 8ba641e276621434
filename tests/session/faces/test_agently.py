"""The face of Agently: names, both registrations, asyncio, files, texts. Spec: 10 §A2, §B2."""

from __future__ import annotations

import asyncio
import inspect
import json
import warnings
from pathlib import Path
from typing import Any

import pytest

from harnpy.faces.agently import Agent, Session, provider_model
from harnpy.llm.call import Models
from harnpy.session import SessionRuntime, current_session_id
from harnpy.session.errors import InvalidArgument, InvalidSessionId, TransferError, TransferTypeError
from tests.session.shapes import said

HI, HELLO = said("user", "hi"), said("assistant", "hello")
#: The methods of both; each has a form for asyncio, too.
SESSION = (
    "set_chat_history", "add_chat_history", "reset_chat_history", "clean_context_window",
    "clean_window_context", "register_analysis_handler", "register_resize_handler",
    "register_execution_handlers", "analyze_context", "run_resize_strategy", "execute_strategy", "resize",
    "get_json_session", "to_json", "get_yaml_session", "to_yaml", "load_json_session", "load_json",
    "load_yaml_session", "load_yaml", "to_serializable_session_data", "set_settings",
)  # fmt: skip
AGENT = (
    "activate_session", "deactivate_session", "set_settings", "register_session_analysis_handler",
    "register_session_resize_handler", "set_chat_history", "add_chat_history", "reset_chat_history",
    "clean_context_window", "use_memory", "bind_memory_store", "request",
)  # fmt: skip


@pytest.mark.parametrize(("face", "names"), [(Session, SESSION), (Agent, AGENT)])
def test_every_name_has_two_forms(face: type, names: tuple[str, ...]) -> None:
    for name in names:
        assert not inspect.iscoroutinefunction(getattr(face, name))
        assert inspect.iscoroutinefunction(getattr(face, f"async_{name}"))
    states = {"id", "auto_resize", "full_context", "context_window", "memo", "session_settings"}
    holds = {"activated_session", "sessions", "settings", "chat_history"}
    assert (states if face is Session else holds) <= set(dir(face))


def test_what_changes_something_returns_its_object() -> None:
    session = Session()
    assert session.set_chat_history([HI]).add_chat_history(HELLO).resize() is session
    assert session.clean_context_window().context_window == []
    assert session.full_context == [HI, HELLO]
    assert session.reset_chat_history().full_context == []
    assert session.run_resize_strategy("simple_cut") is session
    assert session.register_analysis_handler(None).set_settings("session.max_length", 40) is session
    assert session.session_settings["session.max_length"] == 40
    agent = Agent()
    assert agent.activate_session().set_chat_history(HI).clean_context_window().chat_history == []
    assert agent.reset_chat_history().add_chat_history([HI]).deactivate_session() is agent


def test_messages_may_be_objects() -> None:
    class Message:
        role, content = "assistant", "hello"

    session = Session().add_chat_history(Message()).add_chat_history([Message(), {"content": "hi"}])
    assert session.full_context == [HELLO, HELLO, HI]
    assert Agent().add_chat_history(Message()).chat_history == [HELLO]


def test_old_names_work_and_warn_once() -> None:
    session = Session()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            session.register_execution_handlers("all", lambda *_: (None, [], None))
            session.set_chat_history([HI]).execute_strategy("all")
            assert session.context_window == []
            assert session.set_chat_history([HI]).clean_window_context().context_window == []
    assert {warning.category for warning in caught} == {DeprecationWarning}
    assert [str(warning.message) for warning in caught] == [
        "`register_execution_handlers` is now called `register_resize_handler`",
        "`execute_strategy` is now called `run_resize_strategy`",
        "`clean_window_context` is now called `clean_context_window`",
    ]
    assert {Path(warning.filename).name for warning in caught} == {"test_agently.py"}


@pytest.mark.parametrize("name", ["register_resize_handler", "register_execution_handlers"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_both_registrations_the_last_one_counts(name: str) -> None:
    session = Session()
    register = getattr(session, name)
    register("mine", lambda *_: (None, [], None))
    assert (
        register("mine", lambda full, window, memo, _: (full[:1], window[-1:], {"n": len(full)})) is session
    )
    session.register_analysis_handler(lambda full, window, *_: "mine" if len(window) > 1 else None)
    session.set_chat_history([HI, HELLO])
    assert (session.full_context, session.context_window, session.memo) == ([HI], [HELLO], {"n": 2})
    assert session.reset_chat_history().memo == {"n": 2}, "the memo stays"
    with pytest.raises(InvalidArgument, match=r"^strategy_name must be a non-empty string\.$"):
        register("", lambda *_: (None, None, None))


def test_an_unknown_strategy_is_warned_of() -> None:
    text = r"^Can not find strategy 'none' in resize handlers dictionary in Session <s>\.$"
    session = Session("s").set_chat_history([HI])
    with pytest.warns(UserWarning, match=text):
        session.run_resize_strategy("none")
    session.register_analysis_handler(lambda *_: "none")
    with pytest.warns(UserWarning, match=text):
        session.add_chat_history(HELLO)
    agent = Agent().activate_session("s").register_session_analysis_handler(lambda *_: "none")
    with pytest.warns(UserWarning, match=text):
        agent.add_chat_history(HELLO)
    assert session.context_window == [HI, HELLO]


def test_asyncio() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        first = asyncio.Event()

        async def keep_last(full: Any, window: Any, memo: Any, settings: Any) -> Any:
            assert asyncio.get_running_loop() is loop
            first.set()
            await asyncio.sleep(0)
            return None, window[-1:], {"seen": len(full)}

        async def due(full: Any, window: Any, memo: Any, settings: Any) -> str | None:
            return "keep_last" if len(window) > 1 else None

        session = Session().register_resize_handler("keep_last", keep_last).register_analysis_handler(due)
        assert await session.async_add_chat_history([HI, HELLO]) is session
        assert first.is_set()
        assert (session.context_window, session.memo) == ([HELLO], {"seen": 2})
        assert await session.async_analyze_context() is None
        text = await session.async_to_yaml()
        assert (await Session().async_load_yaml(text)).full_context == [HI, HELLO]

    asyncio.run(main())


def test_async_handlers_in_sync_calls() -> None:
    async def keep_last(full: Any, window: Any, memo: Any, settings: Any) -> Any:
        await asyncio.sleep(0)
        return None, window[-1:], None

    session = Session().register_resize_handler("keep_last", keep_last)
    assert session.add_chat_history([HI, HELLO]).run_resize_strategy("keep_last").context_window == [HELLO]

    async def main() -> None:
        assert session.add_chat_history(HI).run_resize_strategy("keep_last").context_window == [HI]

    asyncio.run(main())


@pytest.mark.parametrize("kept", [False, True])
def test_requests_of_every_kind_of_model(kept: bool) -> None:
    """Sync, async, in pieces: each is recorded once."""

    def plain(slots: Any) -> str:
        assert current_session_id() == "s"
        return f"{len(slots['chat_history'])}"

    def pieces(slots: Any) -> Any:
        yield from ("in ", "pieces")

    async def later(slots: Any) -> str:
        assert current_session_id() == "s"
        await asyncio.sleep(0)
        return plain(slots)

    async def later_pieces(slots: Any) -> Any:
        for piece in ("in ", "pieces"):
            yield piece

    with SessionRuntime("memory:") as runtime:
        for model, answer in ((plain, "0"), (pieces, "in pieces"), (later, "0"), (later_pieces, "in pieces")):
            agent = Agent(model, runtime=runtime if kept else None).activate_session("s")
            assert agent.set_chat_history([]).request("hi") == answer
            assert agent.chat_history == [HI, said("assistant", answer)]
            agent.set_chat_history([])
            assert asyncio.run(agent.async_request("hi")) == answer
            assert agent.chat_history == [HI, said("assistant", answer)]
        agent = Agent(pieces, runtime=runtime if kept else None).activate_session("s").set_chat_history([])
        stream = agent.stream("hi")
        assert next(stream) == "in "
        assert agent.chat_history == [], "not before it is whole"
        assert list(stream) == ["pieces"]
        assert agent.chat_history == [HI, said("assistant", "in pieces")]
    with pytest.raises(TypeError, match="this agent has no model"):
        Agent().request("hi")


def test_an_agents_sessions_are_faces_of_the_runtimes() -> None:
    with SessionRuntime("memory:") as runtime:
        agent = Agent(name="clerk", runtime=runtime).activate_session("s").add_chat_history(HI)
        session = agent.activated_session
        assert session is not None
        assert agent.sessions == {"s": session}
        assert runtime.get("s").messages() == [HI]
        assert runtime.info("s").agent_name == "clerk"
        session.register_resize_handler("mine", lambda *_: (None, [], None))
        assert agent.activate_session("s").activated_session is session
        assert session.run_resize_strategy("mine").context_window == []
        Agent(runtime=runtime).activate_session("s")
        assert agent.activated_session is not session, "another agent has taken it"
        assert runtime.create(id="other").policy.on_unknown == "error", "the others are as they were"


def test_files(tmp_path: Path) -> None:
    session = Session("é", auto_resize=False, settings={"session.max_length": 9}).set_chat_history(
        [HI, HELLO]
    )
    session.clean_context_window().add_chat_history(HI).session.set_memo({"ü": [1]})
    state = {
        "id": "é",
        "auto_resize": False,
        "full_context": [HI, HELLO, HI],
        "context_window": [HI],
        "memo": {"ü": [1]},
        "session_settings": {"max_length": 9},
    }
    assert session.to_serializable_session_data() == json.loads(session.to_json()) == state
    assert '\n  "id": "é",\n' in session.get_json_session()
    assert session.to_yaml().startswith("id: é\nauto_resize: false\n")
    file = tmp_path / "s.json"
    file.write_text(json.dumps({"saved": [], "sessions": {"one": state}}), encoding="utf-16")
    for loaded in (
        Session().load_json(session.to_json()),
        Session("é").load_yaml_session(session.get_yaml_session()),
        Session().load_json_session(str(file), "sessions.one", encoding="utf-16"),
    ):
        assert loaded.to_serializable_session_data() == state
    assert Session().load_json("{x: {id: 'é', /* JSON5 */}}", "x").id == "é"


def test_what_loading_leaves() -> None:
    """Handlers, what the file has no key for; nothing is resized."""
    session = Session("mine", settings={"max_length": 1, "own": 2}).register_resize_handler(
        "all", lambda *_: (None, [], None)
    )
    session.session.set_memo({"a": 1})
    session.load_json('{"id": "other", "full_context": [{"content": "hi"}], "session_settings": {"n": 3}}')
    assert (session.id, session.context_window, session.memo) == ("other", [HI], {"a": 1})
    assert {key: session.session_settings[key] for key in ("max_length", "own", "n")} == {
        "max_length": 1, "own": 2, "n": 3
    }  # fmt: skip
    session.load_json('{"memo": null, "auto_resize": false}')
    assert (session.id, session.full_context, session.memo, session.auto_resize) == ("other", [], None, False)
    session.load_json('{"auto_resize": true, "full_context": [{"content": "hi"}]}')
    assert session.auto_resize
    assert session.run_resize_strategy("all").context_window == []
    agent = Agent().activate_session("s")
    assert agent.activated_session is not None
    assert agent.activated_session.load_json('{"id": "x", "full_context": [{"content": "hi"}]}').id == "s"
    assert agent.chat_history == [HI]


@pytest.mark.parametrize(
    ("name", "text", "error", "message"),
    [
        ("json", "{", TransferError, "Cannot load JSON content or file path not existed.\nError: "),
        ("yaml", "a: [", TransferError, "Cannot load YAML content or file path not existed.\nError: "),
        ("json", "FILE", TransferError, "Cannot load JSON file 'FILE'.\nError: "),
        ("json", "[]", TransferTypeError,
         "Cannot load JSON Session data, expect dictionary data but got: list"),
        ("json", '{"full_context": 1}', TransferTypeError,
         "Cannot load Session data, expect key 'full_context' as a sequence of chat messages."),
        ("yaml", "context_window: x", TransferTypeError,
         "Cannot load Session data, expect key 'context_window' as a sequence of chat messages."),
        ("yaml", "session_settings: []", TransferTypeError,
         "Cannot load Session data, expect key 'session_settings' as a dictionary."),
        ("json", '{"id": ""}', InvalidSessionId, "Invalid session ID: "),
    ],
)  # fmt: skip
def test_what_is_no_session(
    name: str, text: str, error: type[Exception], message: str, tmp_path: Path
) -> None:
    file = tmp_path / "broken"
    file.write_bytes(b"\xff{")
    session = Session("s").set_chat_history(HI)
    with pytest.raises(error) as caught:
        getattr(session, f"load_{name}_session")(text.replace("FILE", str(file)))
    assert str(caught.value).startswith(message.replace("FILE", str(file)))
    assert isinstance(caught.value, TypeError if error is TransferTypeError else ValueError)
    assert (session.id, session.full_context) == ("s", [HI])
    with pytest.raises(TransferError, match=r"there is no 'a\.b' in the document: 'b' is missing"):
        session.load_json('{"a": {}}', "a.b")


def test_memory() -> None:
    class Diary:
        heard: tuple[str, ...] = ()

        def recall(self, query: str) -> list[str]:
            return ["Ada likes tea"]

        def remember(self, *said: str) -> None:
            self.heard = said

    diary = Diary()
    agent = Agent(lambda slots: slots["info"]["session_memory_context"]).activate_session("s")
    assert agent.use_memory(memory_store=diary).request("hi") == "Ada likes tea"
    assert diary.heard == ("s", "hi", "Ada likes tea")
    assert agent.use_memory() is agent.bind_memory_store(None)
    with pytest.raises(ValueError, match=r"^SessionMemory mode 'x' is not registered\.$"):
        agent.use_memory("x")


def test_requests_that_are_described_step_by_step() -> None:
    asked: list[dict[str, Any]] = []
    agent = Agent(lambda slots: asked.append(slots) or f"answer {len(asked)}").activate_session("s")
    assert agent.input("a").info({"k": 1}).instruct("be brief").output({"x": ("str",)}).start() == "answer 1"
    assert {"info": {"k": 1}, "instruct": "be brief", "output": {"x": ("str",)}}.items() <= asked[0].items()
    assert asyncio.run(agent.input("b").async_start()) == "answer 2"
    assert "info" not in asked[1]
    assert list(Agent(lambda slots: iter(["a", "b"])).input("c").get_generator()) == ["a", "b"]


def test_a_model_of_harnpys_providers() -> None:
    models = Models()
    model = provider_model(models, provider="mock", temperature=0.0)
    agent = Agent(model).activate_session("s")
    for text in ("one", "two", "three"):
        models.mock.add({"text": text})
    assert agent.input("first").start() == "one"
    session = agent.activated_session
    assert session is not None
    session.session.set_memo({"name": "Ada"})
    assert agent.request("second", info="more") == "two"
    assert asyncio.run(agent.input("third").async_start()) == "three"
    first, second, third = models.mock.calls()
    assert first["messages"] == [{"role": "user", "content": "first"}]
    assert first["system"] is None
    assert [message["content"] for message in second["messages"]] == [
        "first", "one", "[input]:\nsecond\n[info]:\nmore",
    ]  # fmt: skip
    assert "Ada" in second["system"]
    assert third["messages"] == session.full_context[:-1]
    assert Agent({"provider": "mock"}).input("hello").start() == "Mock response to 1-word prompt: hello"
