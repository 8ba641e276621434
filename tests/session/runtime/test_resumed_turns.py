"""A turn that was left open is resumed, or ended (10 §C7.2, §C16.5)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from threading import Event, Thread
from typing import Any

import pytest

from harnpy import AgentDef, LoopFactory, Tool, tool
from harnpy.session import AgentError, ApprovalGate, InputGate, SessionRuntime, Turn, actions
from harnpy.session.aio import AsyncSessionRuntime
from harnpy.storage import Store
from harnpy.world import World
from harnpy.world.host import People
from tests.session.rules.mortal import Killed, mortal
from tests.storage.conftest import opened, store, url
from tests.support import PATIENCE

__all__ = ["opened", "store", "url"]

HELPER = AgentDef("helper", model="mock")
pytestmark = pytest.mark.parametrize("url", ["memory", "sqlite"], indirect=True)


def calls(*names: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments} for name in names]}


def desk(
    store: Store, *replies: dict[str, Any], tools: Any = (), host: World | None = None
) -> SessionRuntime:
    loops = LoopFactory(tools=tools, host=host)
    for reply in replies:
        loops.mock.add(reply)
    return SessionRuntime(store, agents=loops)


def killed(store: Store, lives: int, agent: Any, **options: Any) -> None:
    """Send to the session ``s`` from a process that is killed."""
    with SessionRuntime(store) as runtime:
        runtime.create("helper", id="s")
    with SessionRuntime(mortal(store, lives)) as runtime, pytest.raises(Killed):
        runtime.send("s", "go", agent=agent, idempotency_key="k", **options)


def killed_loop(store: Store, lives: int, *replies: dict[str, Any], **options: Any) -> None:
    with desk(store) as runtime:
        runtime.create(HELPER, id="s")
    with desk(mortal(store, lives), *replies, **options) as runtime, pytest.raises(Killed):
        runtime.send("s", "go", idempotency_key="k")


def types(runtime: SessionRuntime) -> list[str]:
    return [event.type for event in runtime.get("s").events()]


def texts(runtime: SessionRuntime) -> list[Any]:
    return [message["content"] for message in runtime.get("s").messages()]


def two_steps(messages: Any, turn: Turn) -> Iterator[str | dict[str, Any]]:
    with turn.step(model="m"):
        yield {"role": "assistant", "content": "one"}
    with turn.step(model="m"):
        yield "two"


ENDED_AND_ANEW = ["turn_completed", "turn_started", "message_added"]


@pytest.mark.parametrize("key", ["other", None])
def test_with_another_key_the_turn_is_ended(store: Store, key: str | None) -> None:
    killed(store, 3, two_steps)
    with SessionRuntime(store) as runtime:
        assert runtime.send("s", "next", agent=two_steps, idempotency_key=key).text == "two"
        assert texts(runtime) == ["go", "one", "next", "one", "two"]
        ends = [event.data for event in runtime.get("s").events() if event.type == "turn_completed"]
        assert [end["turn_stop_reason"] for end in ends] == ["interrupted", "completed"]


def test_what_was_written_by_hooks_is_taken_as_done(store: Store) -> None:
    def greet(stage: str, session: Any) -> None:
        if stage == "after_load":
            session.set("metadata.visits", session.get("metadata.visits", 0) + 1)

    killed(store, 3, two_steps)  # leaves a turn without the hook's event
    with SessionRuntime(store, hooks=greet) as runtime:
        runtime.send("s", "go", agent=two_steps, idempotency_key="k")
        assert types(runtime).count("escalation_retried") == 1
        runtime.create(id="t")
    with SessionRuntime(mortal(store, 3), hooks=greet) as runtime, pytest.raises(Killed):
        runtime.send("t", "go", agent=two_steps, idempotency_key="k")
    with SessionRuntime(store, hooks=greet) as runtime:
        assert runtime.send("t", "go", agent=two_steps, idempotency_key="k").text == "two"
        session = runtime.get("t")
        assert session.metadata == {"visits": 1}
        assert [event.type for event in session.events()].count("turn_started") == 1


class TestDiverging:
    def test_a_turn_that_says_something_else_begins_anew(self, store: Store) -> None:
        killed(store, 3, two_steps)
        shown: list[str] = []

        def other(messages: Any, turn: Turn) -> Iterator[str | dict[str, Any]]:
            assert [message["content"] for message in messages][-1] == "go"
            try:
                with turn.step(model="m"):
                    yield {"role": "assistant", "content": "1"}
            finally:
                shown.append("left")
            yield "2"

        other.__name__ = "two_steps"
        with SessionRuntime(store) as runtime:
            result = runtime.send("s", "go", agent=other, idempotency_key="k")
            events = runtime.get("s").events()
            at = types(runtime).index("escalation_retried")
            tried = {"agent_id": "two_steps", "scope": "turn", "target": "k", "attempt": 1}
            assert events[at].data == {**tried, "error": "diverged at 5"}
            assert events[at].turn_id == events[1].id
            assert types(runtime)[at + 1 : at + 4] == ENDED_AND_ANEW
            assert events[at + 1].data["turn_stop_reason"] == "interrupted"
            assert (result.text, result.turn_id, shown) == ("2", events[at + 2].id, ["left", "left"])

    def test_another_agent_or_prompt_is_another_turn(self, store: Store) -> None:
        killed(store, 3, two_steps)
        with SessionRuntime(store) as runtime:
            assert runtime.send("s", "else", agent=two_steps, idempotency_key="k").text == "two"
            assert texts(runtime) == ["go", "one", "else", "one", "two"]

    def test_an_agent_that_goes_on_all_the_same_isnt_listened_to(self, store: Store) -> None:
        killed(store, 4, two_steps)
        runs = []

        def stubborn(messages: Any, turn: Turn) -> str:
            runs.append(turn.turn_id)
            with suppress(BaseException):
                turn.tool("t", {}, lambda args: "x")
            return "said"

        stubborn.__name__ = "two_steps"
        with SessionRuntime(store) as runtime:
            assert runtime.send("s", "go", agent=stubborn, idempotency_key="k").text == "said"
            assert texts(runtime)[-2:] == ["go", "said"]
            assert len(set(runs)) == 2

    def test_a_call_that_is_left_out_is_a_difference(self, store: Store) -> None:
        def calling(*names: str) -> Any:
            def agent(messages: Any, turn: Turn) -> str:
                return " ".join(turn.tool(name, name, str) for name in names)

            return agent

        killed(store, 3, calling("one", "two"))
        with SessionRuntime(store) as runtime:
            assert runtime.send("s", "go", agent=calling("three"), idempotency_key="k").text == "three"
            ends = [event.data for event in runtime.get("s").events() if event.type == "turn_completed"]
            assert [end["turn_stop_reason"] for end in ends] == ["interrupted", "completed"]

    def test_a_cut_by_somebody_else_ends_the_turn(self, store: Store) -> None:
        killed(store, 4, two_steps)
        with SessionRuntime(store) as runtime:
            runtime.get("s").set_history([{"content": "cut"}])
            assert runtime.send("s", "go", agent=two_steps, idempotency_key="k").text == "two"
            assert texts(runtime) == ["cut", "go", "one", "two"]


def test_what_cant_be_run_leaves_the_turn_open(store: Store) -> None:
    killed_loop(store, 3, calls("look"), {"text": "done"}, tools=[look])
    with SessionRuntime(store, agents=LoopFactory()) as runtime:
        with pytest.raises(AgentError, match="unknown tool"):
            runtime.send("s", "go", agent=AgentDef("helper", tools=("x",)), idempotency_key="k")
        assert runtime.get("s").view.open_turns
    with desk(store, {"text": "done"}, tools=[look]) as runtime:
        assert runtime.send("s", "go", idempotency_key="k").text == "done"


@tool
def look() -> str:
    """Look around."""
    return "a room"


def test_an_action_with_a_key_is_resumed(store: Store) -> None:
    with SessionRuntime(store) as runtime:
        runtime.create("helper", id="s")
    send = actions.Send("go", agent=two_steps)
    with SessionRuntime(mortal(store, 3)) as runtime, pytest.raises(Killed):
        runtime.execute("s", send, idempotency_key="k")
    with SessionRuntime(store) as runtime:
        runtime.execute("s", actions.Send("go", agent=two_steps), idempotency_key="k", expected_revision=1)
        assert texts(runtime) == ["go", "one", "two"]
        assert runtime.send("s", "go", idempotency_key="k", agent=two_steps).text == "two"


class TestOthers:
    def test_messages_stand_where_they_stood(self, store: Store) -> None:
        """Some came while the turn ran, one after the crash."""
        other = SessionRuntime(store)

        @tool
        def ask() -> str:
            """Ask."""
            other.get("s").add_history({"content": "meanwhile"})
            return "asked"

        replies = [calls("ask"), calls("look"), {"text": "done"}]
        killed_loop(store, 7, *replies, tools=[ask, look])
        other.get("s").add_history({"content": "later"})
        with desk(store, {"text": "done"}, tools=[ask, look]) as runtime:
            left = texts(runtime)
            assert left[-1] == "later"
            result = runtime.send("s", "go", idempotency_key="k")
            assert (result.text, result.steps) == ("done", 3)
            assert [message["content"] for message in runtime.agents.mock.calls()[0]["messages"]] == left
            assert texts(runtime) == [*left, "done"]
            assert sorted(texts(runtime)).count("meanwhile") == 1
        other.close()

    def test_what_a_tool_has_written_beside_isnt_written_again(self, store: Store) -> None:
        def agent(messages: Any, turn: Turn) -> Iterator[dict[str, Any]]:
            def note(args: Any) -> str:
                turn.session.set_memo({"n": (turn.session.memo or {"n": 0})["n"] + 1})
                turn.session.add_history({"content": "noted"})
                return "ok"

            for number in range(3):
                turn.tool("note", {"n": number}, note)
                yield {"role": "assistant", "content": str(turn.session.memo)}

        for lives in (5, 6, 10, 11, 15):
            with SessionRuntime(store) as runtime:
                runtime.create(id=f"s{lives}")
            with SessionRuntime(mortal(store, lives)) as runtime, pytest.raises(Killed):
                runtime.send(f"s{lives}", "go", agent=agent, idempotency_key="k")
            with SessionRuntime(store) as runtime:
                session = runtime.send(f"s{lives}", "go", agent=agent, idempotency_key="k").session
                contents = [message["content"] for message in session.messages()]
                said = [content for content in contents if content not in ("go", "noted")]
                assert said == ["{'n': 1}", "{'n': 2}", "{'n': 3}"]
                assert contents.count("noted") == 3


class TestPeople:
    REPLIES = (calls("act"), {"text": "done"})

    def host(self, asked: list[Any], answer: Any) -> World:
        def ask(request: dict[str, Any]) -> Any:
            asked.append(request)
            if isinstance(answer, BaseException):
                raise answer
            return answer

        return World(people=People(ask))

    @pytest.mark.parametrize("decision", [True, False])
    def test_an_answer_holds(self, store: Store, decision: bool) -> None:
        agent = AgentDef("helper", model="mock", options={"approval_policy": {"require_approval": ["act"]}})
        asked: list[Any] = []
        host = self.host(asked, {"approved": decision, "reviewer": "ann", "reason": "why"})
        with desk(store) as runtime:
            runtime.create(agent, id="s")
        act = Tool("act", "Act.", {}, lambda arguments: "acted")
        dying = desk(mortal(store, 3), *self.REPLIES, tools=[act], host=host)
        with dying as runtime, pytest.raises(Killed):
            runtime.send("s", "go", idempotency_key="k")
        assert len(asked) == 1
        with desk(store, self.REPLIES[1], tools=[act], host=host) as runtime:
            assert types(runtime)[-1] == "approval_resolved"
            result = runtime.send("s", "go", idempotency_key="k")
            assert len(asked) == 1
            assert ("acted" in str(result.messages)) is decision
            assert types(runtime).count("approval_requested") == 1

    def test_a_question_without_answer_is_asked_again(self, store: Store) -> None:
        agent = AgentDef("helper", model="mock", options={"approval_policy": {"require_approval": ["act"]}})
        asked: list[Any] = []
        with desk(store) as runtime:
            runtime.create(agent, id="s")
        act = Tool("act", "Act.", {}, lambda arguments: "acted")
        with (
            desk(mortal(store, 2), *self.REPLIES, tools=[act], host=self.host(asked, Killed())) as runtime,
            pytest.raises(Killed),
        ):
            runtime.send("s", "go", idempotency_key="k")
        host = self.host(asked, {"approved": True, "reviewer": "ann"})
        with desk(store, self.REPLIES[1], tools=[act], host=host) as runtime:
            assert types(runtime)[-1] == "approval_requested"
            assert "acted" in str(runtime.send("s", "go", idempotency_key="k").messages)
            ids = [
                event.data["id"] for event in runtime.get("s").events() if event.type.startswith("approval_")
            ]
            assert (len(asked), len(ids), len(set(ids))) == (2, 2, 1)


class TestCallsWithoutEnd:
    @pytest.mark.parametrize(
        ("policy", "answer", "runs", "reads"),
        [
            ("error", None, 0, "acrfence: prior tool execution"),
            ("retry", None, 1, "acted"),
            ("ask", {"approved": True, "reviewer": "ann"}, 1, "acted"),
            ("ask", {"approved": False, "reviewer": "ann", "reason": "too dear"}, 0, "too dear"),
            ("ask", None, 0, "acrfence"),
        ],
    )
    def test_the_policy_of_the_tool(
        self, store: Store, policy: Any, answer: Any, runs: int, reads: str
    ) -> None:
        ran: list[Any] = []
        act = Tool(
            "act",
            "Act.",
            {},
            lambda arguments: ran.append(1) or "acted",
            idempotent=True,
            on_ambiguous=policy,
        )
        killed_loop(store, 2, calls("act"), {"text": "done"}, tools=[act])
        assert len(ran) == 1  # its end didn't get into the log
        host = None if answer is None else World(people=People(lambda request: answer))
        with desk(store, {"text": "done"}, tools=[act], host=host) as runtime:
            assert types(runtime)[-1] == "tool_started"
            result = runtime.send("s", "go", idempotency_key="k")
            assert (len(ran) - 1, result.text) == (runs, "done")
            assert reads in str(result.messages[1])
            assert types(runtime).count("tool_started") == 1

    def test_an_idempotent_call_of_a_function(self, store: Store) -> None:
        ran: list[Any] = []

        def agent(messages: Any, turn: Turn) -> str:
            found = turn.tool("t", {"n": 1}, lambda args: ran.append(args) or "x", idempotent=True)
            assert found == "x"
            return "done"

        killed(store, 2, agent)
        with SessionRuntime(store) as runtime:
            assert runtime.send("s", "go", agent=agent, idempotency_key="k").text == "done"
            assert (len(ran), types(runtime).count("tool_started")) == (2, 1)


async def side_by_side(messages: Any, turn: Turn) -> str:
    async def slow(args: Any) -> str:
        for _ in range(args["ticks"]):
            await asyncio.sleep(0)
        RAN.append(args["ticks"])
        return str(args["ticks"])

    async def one(ticks: int) -> str:
        found: str = await turn.tool("slow", {"ticks": ticks}, slow)
        return found

    return " ".join(await asyncio.gather(*map(one, (9, 1, 5))))


RAN: list[int] = []


def test_calls_side_by_side_end_in_any_order(store: Store) -> None:
    async def again() -> str:
        async with AsyncSessionRuntime(store) as runtime:
            return (await runtime.send("s", "go", agent=side_by_side, idempotency_key="k")).text

    RAN.clear()
    killed(store, 7, side_by_side)
    assert RAN == [1, 5, 9]
    assert asyncio.run(again()) == "9 1 5"
    assert RAN == [1, 5, 9]


def test_a_loop_goes_on_in_the_other_face(store: Store) -> None:
    @tool
    async def far() -> str:
        """Look far."""
        await asyncio.sleep(0)
        return "a hill"

    replies = [calls("far", "look"), calls("far"), {"text": "done"}]
    killed_loop(store, 8, *replies, tools=[look, far])

    async def go_on() -> tuple[list[str], int]:
        loops = LoopFactory(tools=[look, far])
        for reply in replies[2:]:
            loops.mock.add(reply)
        async with AsyncSessionRuntime(store, agents=loops) as runtime:
            shown = [event async for event in runtime.stream("s", "go", idempotency_key="k")]
        return [event.text for event in shown], len(loops.mock.calls())

    assert asyncio.run(go_on()) == (["done", ""], 1)
    with SessionRuntime(store) as runtime:
        assert types(runtime).count("turn_started") == 1
        assert [text.partition("\n")[0] for text in texts(runtime) if text] == [
            *["go", "a hill", "a room", "a hill", "done"]
        ]


def test_pieces_are_shown_again(store: Store) -> None:
    killed(store, 3, two_steps)
    with SessionRuntime(store) as runtime:
        shown = [event.text for event in runtime.stream("s", "go", agent=two_steps, idempotency_key="k")]
        assert shown == ["two", ""]


def test_of_two_that_resume_one_wins(store: Store) -> None:
    killed(store, 3, two_steps)
    inside, go_on = Event(), Event()
    runs: list[str] = []

    def slow(messages: Any, turn: Turn) -> Iterator[str | dict[str, Any]]:
        runs.append(turn.turn_id)
        inside.set()
        assert go_on.wait(PATIENCE)
        yield from two_steps(messages, turn)

    slow.__name__ = "two_steps"
    found: list[Any] = []

    def send(runtime: SessionRuntime) -> None:
        found.append(runtime.send("s", "go", agent=slow, idempotency_key="k"))

    with SessionRuntime(store) as one, SessionRuntime(store) as two:
        # In memory there are no other processes.
        both = (one, one) if store.url.startswith("memory:") else (one, two)
        threads = [Thread(target=send, args=(each,)) for each in both]
        for thread in threads:
            thread.start()
        assert inside.wait(PATIENCE)
        go_on.set()
        for thread in threads:
            thread.join(PATIENCE)
    assert [result.text for result in found] == ["two", "two"]
    assert runs == [found[0].turn_id]
    assert found[1].turn_id == found[0].turn_id


class TestGuards:
    def asking(self, messages: Any, turn: Turn) -> Iterator[dict[str, Any]]:
        for number in range(2):
            said = turn.ask(f"which {number}?")
            found = turn.tool("act", {"what": said}, lambda args: f"acted on {args['what']}")
            yield {"role": "assistant", "content": found}

    @pytest.mark.parametrize("lives", [1, 2, 3, 4, 5, 7, 8, 9, 10])
    def test_answers_of_people_hold(self, store: Store, lives: int) -> None:
        asked: list[str] = []
        judged: list[str] = []

        def ask(prompt: str) -> str:
            asked.append(prompt)
            return str(len(asked))

        def judge(request: Any) -> str:
            judged.append(request.args)
            return "allow"

        def gates() -> dict[str, Any]:
            return {"inputs": InputGate(ask), "approvals": ApprovalGate(judge)}

        killed(store, lives, self.asking, **gates())
        before = len(asked), len(judged)
        with SessionRuntime(store) as runtime:
            log = types(runtime)
            result = runtime.send("s", "go", agent=self.asking, idempotency_key="k", **gates())
            answered = log.count("external_input") // 2
            lost = before[0] - answered, before[1] - log.count("approval_resolved")
            assert (len(asked), len(judged)) == (2 + lost[0], 2 + lost[1])
            assert result.status == "completed"
            assert types(runtime)[2:9] == [
                "message_added", "external_input", "external_input", "approval_requested",
                "approval_resolved", "tool_started", "tool_completed",
            ]  # fmt: skip
            assert types(runtime).count("approval_requested") == 2
