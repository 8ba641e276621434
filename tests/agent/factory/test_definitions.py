"""Definitions as data: what they may be, how sessions keep them, which names they may have (10 §C7.1)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import harnpy
from harnpy import AgentDef, Capabilities, LoopFactory
from harnpy.faults import Fault
from harnpy.session import (
    AgentError,
    AgentFactory,
    Budget,
    EventRejected,
    InvalidArgument,
    SessionNotFound,
    SessionRuntime,
    actions,
)
from harnpy.session.aio import AsyncSessionRuntime
from harnpy.session.transfer import cognesy
from harnpy.storage import Store
from harnpy.storage.errors import Unsupported
from tests.storage.conftest import opened, store, url
from tests.worlds import world_with

from .agents import HELPER, Provider, call, loops_with, runtime_with, said, texts, types, weather

__all__ = ["opened", "store", "url"]

FULL = AgentDef(
    "clerk",
    "Sorts letters",
    "Be kind.",
    "The clerk",
    {"provider": "mock", "temperature": 0.5},
    ("use_tasks",),
    ("weather",),
    (),
    (),
    Budget(max_cost=1.5, max_steps=3),
    {"session.max_length": 900},
    {"persistent": False},
    {"team": "post"},
)


class TestData:
    def test_what_is_as_by_default_is_left_out(self) -> None:
        assert AgentDef("a").data() == {"name": "a"}
        assert AgentDef("a", tools=()).data() == {"name": "a", "tools": []}

    def test_a_whole_one_and_back(self) -> None:
        data = FULL.data()
        assert data["budget"] == {"max_cost": 1.5, "max_steps": 3}
        assert data["capabilities"] == ["use_tasks"]
        assert AgentDef.of(data) == AgentDef.stored(data) == FULL
        assert AgentDef.of({"name": "a", "tools": ["x"]}).tools == ("x",)

    def test_keys_of_other_systems_are_left_out_of_what_is_stored(self) -> None:
        kept = {"label": "L", "version": 3, "budget": {"max_steps": 2}}
        assert AgentDef.stored(kept) == AgentDef("L", label="L", budget=Budget(max_steps=2))

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({}, "AgentDef: `name` is missing"),
            ({"name": " "}, "AgentDef: `name` must not be blank"),
            ({"name": 1}, "AgentDef: `name` must be text, got int"),
            ({"name": "a", "tools": "x"}, "AgentDef: `tools` must be a list of names or None, got str"),
            ({"name": "a", "skills": [1]}, "AgentDef: `skills` must be a list of names or None, got tuple"),
            ({"name": "a", "model": 1}, "AgentDef: `model` must be text or a dict of options, got int"),
            ({"name": "a", "options": []}, "AgentDef: `options` must be a dict, got list"),
            ({"name": "a", "budget": 1}, "AgentDef: `budget` must be a Budget or None, got int"),
            ({"name": "a", "budget": {"max_step": 1}}, "Budget: unknown key 'max_step' (did you mean "),
            ({"name": "a", "budget": {"max_steps": 1.5}}, "Budget: `max_steps` must be a count, got 1.5"),
            (
                {"name": "a", "budget": {"deadline": "now"}},
                "Budget: `deadline` must be a time by RFC 3339, got 'now'",
            ),
            (
                {"name": "a", "budget": {"max_cost": -1}},
                "Budget: `max_cost` must be a number that isn't negative, got -1",
            ),
            ({"name": "a", "tool": []}, "AgentDef: unknown key 'tool' (did you mean 'tools'?"),
            (
                {"name": "a", "provider": "mock"},
                "AgentDef: unknown key 'provider' (a model is written with its provider: `model: ",
            ),
            (
                {"name": "a", "max_iterations": 3},
                "AgentDef: unknown key 'max_iterations' (options of the loop stand in `options`: ",
            ),
        ],
    )
    def test_what_is_no_definition(self, given: dict[str, Any], message: str) -> None:
        with pytest.raises(InvalidArgument) as error:
            AgentDef.of(given)
        assert error.value.message.startswith(message)


class TestCreation:
    def test_a_session_keeps_it(self, store: Store) -> None:
        with SessionRuntime(store) as runtime:
            runtime.create(FULL, id="s", metadata={"team": "x", "by": "me"})
            fork = runtime.get("s").fork("f")
        with SessionRuntime(store) as runtime:
            info, session = runtime.info("s"), runtime.get("s")
            assert (info.agent_name, info.agent_label, info.revision) == ("clerk", "The clerk", 1)
            assert info.definition == FULL.data() == runtime.info(fork.id).definition
            assert session.metadata == {"team": "post", "by": "me"}
            assert session.get("system_prompt") is None

    def test_its_settings_come_before_the_runtimes(self) -> None:
        with SessionRuntime("memory:", settings={"max_length": 5, "tone": "dry"}) as runtime:
            runtime.create("plain", id="p")
            session = runtime.create(FULL, id="s")
            assert dict(session.settings) == {"max_length": 900, "tone": "dry"}
            assert runtime.get("p").settings["max_length"] == 5
            session.set("settings.max_length", 7)
            assert session.settings["max_length"] == 7
            runtime.evict("s")
            session.set("settings.max_length", None)
            assert runtime.get("s").settings["max_length"] == 900
            assert runtime.get("s").fork("f").settings["max_length"] == 900

    def test_a_cognesy_file_is_run(self) -> None:
        with runtime_with({"text": "hi"}) as runtime:
            file = cognesy.dump_file(runtime.get("s"))
        assert file["definition"]["systemPrompt"] == "Be brief."

    @pytest.mark.parametrize(
        ("definition", "error", "message"),
        [
            (
                AgentDef("a", options={"max_iteration": 1}),
                InvalidArgument,
                "agent 'a': agent_loop: unknown option key 'max_iteration' (did you mean 'max_iterations'?",
            ),
            (
                AgentDef("a", options={"turn_policy": {"x": 1}}),
                InvalidArgument,
                "agent 'a': agent_loop: unknown option key 'turn_policy.x' (",
            ),
            (
                AgentDef("a", options={"tools": []}),
                InvalidArgument,
                "agent 'a': option 'tools' isn't one of a definition: name them in `tools`",
            ),
            (
                AgentDef("a", model={"temprature": 1}),
                InvalidArgument,
                "agent 'a': llm_call: unknown option key 'temprature' (did you mean 'temperature'?",
            ),
            (
                AgentDef("a", capabilities=("use_bahs",)),
                AgentError,
                "unknown capability 'use_bahs' (known: use_bash, use_files, use_tasks)",
            ),
            (
                AgentDef("a", settings={"max_length": "long"}),
                InvalidArgument,
                "",
            ),
            (
                AgentDef("a", options={"post_turn_callback": print}),
                EventRejected,
                "session append: definition is not JSON: builtin_function_or_method at "
                "/options/post_turn_callback",
            ),
        ],
    )
    def test_a_wrong_one_stores_nothing(self, definition: AgentDef, error: type[Fault], message: str) -> None:
        with SessionRuntime("memory:", agents=loops_with()) as runtime:
            with pytest.raises(error) as raised:
                runtime.create(definition, id="s")
            assert str(raised.value).startswith(message)
            with pytest.raises(SessionNotFound):
                runtime.info("s")

    def test_what_is_neither_name_nor_definition(self) -> None:
        with SessionRuntime("memory:") as runtime, pytest.raises(InvalidArgument) as error:
            runtime.create({"name": "a"})  # type: ignore[arg-type]
        assert error.value.message == "an agent is given by a definition or a name, got dict"


class TestNames:
    """What can't be run raises before anything is appended."""

    @pytest.mark.parametrize(
        ("definition", "error", "message"),
        [
            (AgentDef("a", tools=("wether",)), AgentError, "unknown tool 'wether' (known: weather)"),
            (AgentDef("a", denied_tools=("bash",)), AgentError, "unknown tool 'bash' (known: weather)"),
            (AgentDef("a", skills=("tidy",)), AgentError, "unknown skill 'tidy' (known: none)"),
            (AgentDef("a", capabilities=("x",)), AgentError, "unknown capability 'x' (known: twice, "),
            (AgentDef("a", options={"x": 1}), InvalidArgument, "agent 'a': agent_loop: unknown option "),
            (AgentDef("a", model="nowhere/x"), Fault, ""),
            (AgentDef("a", model="mock", options={"profile": "x"}), Fault, "agent 'a': profile must be "),
            (
                AgentDef("a", model="mock", capabilities=("twice",)),
                AgentError,
                "agent 'a' has two tools that are called 'weather'",
            ),
        ],
    )
    def test_wrong_names(
        self, definition: AgentDef, error: type[Fault], message: str, tmp_path: Path
    ) -> None:
        world = world_with(cwd=lambda: str(tmp_path), get={}.get)
        capabilities = Capabilities().register("twice", lambda build: build.add_tool(weather))
        loops = loops_with(host=world, capabilities=capabilities)
        with SessionRuntime("memory:", agents=loops) as runtime:
            runtime.create("a", id="s")
            with pytest.raises(error) as raised:
                runtime.send("s", "go", agent=definition)
            assert str(raised.value).startswith(message)
            assert types(runtime) == ["session_created"]

    def test_a_register_that_names_an_unknown_tool(self) -> None:
        with runtime_with() as runtime:
            runtime.execute("s", lambda session: session.set("tools", ["gone"]))
            with pytest.raises(AgentError, match=r"unknown tool 'gone' \(known: weather\)"):
                runtime.send("s", "go")

    def test_capabilities(self) -> None:
        known = Capabilities().register("mine", lambda build: None)
        assert known.names() == ["mine", "use_bash", "use_files", "use_tasks"]
        with pytest.raises(InvalidArgument, match="capability 'x' is a function, got int"):
            known.register("x", 1)  # type: ignore[arg-type]


class TestWhichAgent:
    """What `send` runs: the agent that is passed, the runtime's, or the session's definition."""

    def test_none(self) -> None:
        with SessionRuntime("memory:") as runtime:
            runtime.create("a", id="s")
            with pytest.raises(Unsupported) as error:
                runtime.send("s", "go")
            said = "session 's' has no agent: pass agent= or create it with a definition"
            assert str(error.value) == said
            for agent in (None, LoopFactory()):
                with pytest.raises(Unsupported) as error:
                    runtime.send("s", "go", agent=agent)
                assert str(error.value) == said
            assert types(runtime) == ["session_created"]

    def test_a_class(self) -> None:
        with SessionRuntime("memory:", agents=LoopFactory) as runtime:
            runtime.create("a", id="s")
            for agent in (None, LoopFactory, AgentDef):
                with pytest.raises(InvalidArgument, match="an agent is no class: pass an instance of "):
                    runtime.send("s", "go", agent=agent)

    def test_a_definition_without_a_loop(self) -> None:
        with SessionRuntime("memory:") as runtime:
            runtime.create(HELPER, id="s")
            for agent in (None, HELPER):
                with pytest.raises(Unsupported) as error:
                    runtime.send("s", "go", agent=agent)
                assert str(error.value) == (
                    "agent definition 'helper' has no loop to run in: open the runtime with "
                    "harnpy.runtime(), or pass agents=LoopFactory()"
                )

    def test_the_sessions_own_in_another_loop(self) -> None:
        with SessionRuntime("memory:") as runtime:
            runtime.create(HELPER, id="s")
            assert runtime.send("s", "go", agent=loops_with({"text": "there"})).text == "there"

    def test_an_agent_of_the_runtime(self) -> None:
        with SessionRuntime("memory:", agents=lambda messages: "always") as runtime:
            runtime.create(HELPER, id="s")
            assert runtime.send("s", "go").text == "always"
            assert runtime.send("s", "go", agent=lambda messages: "now").text == "now"

    def test_a_factory_of_ones_own(self) -> None:
        class Shouting(AgentFactory):
            def __call__(self, definition: AgentDef, session: Any) -> Any:
                return lambda messages: f"{definition.system_prompt} {session.id}".upper()

            def check(self, definition: AgentDef) -> None:
                if not definition.system_prompt:
                    raise AgentError("say something")

            def close(self, call: Any) -> None:
                closed.append(call)

        closed: list[Any] = []
        with SessionRuntime("memory:", agents=Shouting()) as runtime:
            runtime.create(HELPER, id="s")
            assert runtime.send("s", "go").text == "BE BRIEF. S"
            with pytest.raises(AgentError, match="say something"):
                runtime.create(AgentDef("a"))

    def test_threads_share_a_factory(self) -> None:
        loops = loops_with(
            providers={"mine": Provider(lambda request: said(request, str(len(request.messages))))}
        )
        agent = AgentDef("a", model="mine/m")
        with SessionRuntime("memory:", agents=loops) as runtime, ThreadPoolExecutor(4) as pool:
            for name in "abcd":
                runtime.create(agent, id=name)
            found = list(pool.map(lambda n: runtime.send("abcd"[n % 4], "go").text, range(20)))
        assert sorted(found) == sorted(["1", "3", "5", "7", "9"] * 4)

    def test_send_as_an_action(self) -> None:
        with runtime_with({"text": "one"}) as runtime:
            runtime.execute("s", actions.Send("go"))
            runtime.execute("s", actions.Send("go", agent=lambda messages: "two"))
            assert texts(runtime) == ["go", "one", "go", "two"]
            assert runtime.get("s").revision == 3

    def test_options_of_one_turn(self) -> None:
        with runtime_with(call("weather", city="Rome"), {"text": "ok"}) as runtime:
            result = runtime.send("s", "go", max_iterations=1)
            assert (result.status, result.stop_reason, result.steps) == ("stopped", "max_turns_hit", 1)
            with pytest.raises(InvalidArgument, match="unknown option key 'max_iters'"):
                runtime.send("s", "go", max_iters=1)
            with pytest.raises(InvalidArgument) as error:
                runtime.send("s", "go", agent=lambda messages: "", max_iterations=1)
            assert error.value.message == (
                "send: unknown option 'max_iterations': those of a loop are for definitions, and agent "
                "<lambda> is none"
            )

    def test_the_one_line_start(self, tmp_path: Path) -> None:
        with harnpy.runtime(f"sqlite:{tmp_path}/s.db") as runtime:
            runtime.create(AgentDef("a", model="mock"), id="s")
            assert runtime.send("s", "Hello there").text == "Mock response to 2-word prompt: Hello there"
        with pytest.raises(InvalidArgument, match="pass `providers` to the LoopFactory"):
            harnpy.runtime("memory:", agents=LoopFactory(), providers={})

    async def _async(self) -> None:
        async with AsyncSessionRuntime(runtime_with({"text": "one"})) as face:
            await face.create(HELPER, id="t")
            assert (await face.send("t", "go")).text == "one"

    def test_the_async_face(self) -> None:
        import asyncio

        asyncio.run(self._async())
