"""What an agent sees of its turn and does through it; how turns end early (10 §C7.1, §C16.4, §C16.5)."""

from __future__ import annotations

import asyncio
import gc
import pickle
from collections.abc import AsyncIterator, Iterator
from functools import partial, wraps
from typing import Any
from weakref import ref

import pytest

from harnpy.session import (
    AgentError,
    InvalidArgument,
    Reply,
    SessionBusy,
    SessionConflict,
    SessionRuntime,
    ToolAmbiguous,
    Turn,
    Waiting,
    actions,
)
from harnpy.session.aio import AsyncSessionRuntime
from harnpy.session.calling import Pipe
from harnpy.storage.errors import Unsupported
from tests.support import calls_made

from .test_answers import ASKS, RESULT, url

__all__ = ["url"]


@pytest.fixture
def runtime(url: str) -> Iterator[SessionRuntime]:
    with SessionRuntime(url) as runtime:
        runtime.create("helper", id="s", seed={"content": "before"})
        yield runtime


def types(runtime: SessionRuntime) -> list[str]:
    return [event.type for event in runtime.get("s").events()]


class TestTurn:
    def test_the_request_is_window_prompt_and_memo_in_copies(self, runtime: SessionRuntime) -> None:
        runtime.get("s").set_memo({"a": 1})
        runtime.get("s").set("settings.tone", "dry")
        runtime.execute("s", actions.ChangeSystemPrompt("Be brief."))

        def agent(messages: Any, turn: Turn) -> str:
            memo = '<runtime_injection kind="memo">\n{"a":1}\n</runtime_injection>'
            assert [message["content"] for message in messages] == ["before", "now", "and", memo]
            assert turn.messages == messages
            assert [message["content"] for message in turn.prompt] == ["now", "and"]
            assert (turn.system, turn.memo, turn.settings) == ("Be brief.", {"a": 1}, {"tone": "dry"})
            assert (turn.model, turn.tools, turn.cancelled) == (None, None, False)
            messages[0]["content"] = "changed"
            turn.session.set_memo({"a": 2})
            return turn.turn_id

        result = runtime.send("s", [{"content": "now"}, {"role": "user", "content": "and"}], agent=agent)
        session = runtime.get("s")
        assert (result.text, session.memo) == (result.turn_id, {"a": 2})
        assert session.messages()[0]["content"] == "before"
        assert result.session is session

    def test_what_an_agent_changes_in_its_copies_no_later_turn_sees(self, runtime: SessionRuntime) -> None:
        runtime.get("s").add_history({"content": [{"type": "text", "text": "seen"}]})

        def agent(messages: Any) -> str:
            answer = "spoilt" if "spoilt" in str(messages) else str(len(messages))
            for message in messages:
                if isinstance(message["content"], list):
                    message["content"][0]["text"] = "spoilt"
                message["content"] = "spoilt"
            messages.clear()
            return answer

        assert [runtime.send("s", "go", agent=agent).text for _ in range(3)] == ["3", "5", "7"]

    def test_the_turn_begins_with_its_prompt_in_one_append(self, runtime: SessionRuntime) -> None:
        def agent(messages: Any, turn: Turn) -> str:
            stored = runtime.store.head("session", "s")
            assert stored is not None
            begun = runtime.get("s").events()[-2:]
            assert [event.type for event in begun] == ["turn_started", "message_added"]
            assert [event.more for event in begun] == [1, 0]
            assert stored.version == begun[-1].seq
            return "there"

        assert runtime.send("s", "go", agent=agent).text == "there"

    def test_steps_of_its_own(self, runtime: SessionRuntime) -> None:
        def agent(messages: Any, turn: Turn) -> Reply:
            for tokens in (1, 2):
                with turn.step(model="m") as step:
                    step.usage, step.cost = {"input_tokens": tokens}, 0.25
            inside = pytest.raises(AgentError, match="agent agent began a step inside a step")
            with inside, turn.step(), turn.step():
                pass
            return Reply("x")

        result = runtime.send("s", "go", agent=agent)
        assert (result.steps, result.usage, result.cost) == (3, {"input_tokens": 3}, 0.5)
        done = [event.data for event in runtime.get("s").events() if event.type == "step_completed"]
        assert done[2]["error"] == "agent agent began a step inside a step"

    def test_a_call_is_carried_out_once(self, runtime: SessionRuntime) -> None:
        ran: list[Any] = []

        def tool(args: Any) -> Any:
            ran.append(args)
            return {"found": args["n"]}

        def agent(messages: Any, turn: Turn) -> Iterator[Any]:
            yield ASKS
            for _ in range(2):
                assert turn.tool("f", {"n": 1}, tool, call_id="c1") == {"found": 1}
            yield RESULT
            assert turn.tool("own", {}, lambda args: "text") == "text"
            with pytest.raises(ZeroDivisionError):
                turn.tool("own", {}, lambda args: 1 // 0)

        runtime.send("s", "go", agent=agent)
        assert ran == [{"n": 1}]
        done = [event.data for event in runtime.get("s").events() if event.type == "tool_completed"]
        assert [(end["id"], end.get("output"), end.get("error")) for end in done] == [
            ("c1", '{"found":1}', None),
            ("call_2", "text", None),
            ("call_3", None, "integer division or modulo by zero"),
        ]

    def test_a_call_that_began_and_never_ended_is_not_made_again(self, runtime: SessionRuntime) -> None:
        def agent(messages: Any, turn: Turn) -> Iterator[Any]:
            yield ASKS

            def again(args: Any) -> Any:
                return turn.tool("f", {}, lambda args: "inner", call_id="c1", idempotent=args["idempotent"])

            with pytest.raises(ToolAmbiguous, match=r"^acrfence: prior tool execution for key") as raised:
                turn.tool("f", {}, lambda args: again({"idempotent": False}), call_id="c1")
            assert pickle.loads(pickle.dumps(raised.value)).key == raised.value.key
            yield RESULT

        runtime.send("s", "go", agent=agent)

    def test_async_tools_are_waited_for_by_async_agents(self, runtime: SessionRuntime) -> None:
        async def double(args: int) -> int:
            await asyncio.sleep(0)
            return args * 2

        async def agent(messages: Any, turn: Turn) -> str:
            return str(await turn.tool("double", 2, double))

        assert runtime.send("s", "go", agent=agent).text == "4"
        assert types(runtime).count("tool_completed") == 1

    def test_a_runner_is_called_with_its_turn(self, runtime: SessionRuntime) -> None:
        class Parrot:
            name = "parrot"

            async def run(self, turn: Turn) -> Reply:
                turn.emit("shown")
                return Reply(turn.prompt[0]["content"])

        seen: list[str] = []
        assert runtime.send("s", "hello", agent=Parrot(), stream=seen.append).text == "hello"
        assert seen == ["shown"]

    def test_which_functions_get_the_turn(self, runtime: SessionRuntime) -> None:
        def optional(messages: Any, turn: Any = None) -> str:
            return type(turn).__name__

        def own(messages: Any, limit: int = 3) -> str:
            return str(limit)

        given = [runtime.send("s", "go", agent=agent).text for agent in (optional, own)]
        assert given == ["Turn", "3"]


class TestSending:
    def test_what_cannot_be_sent(self, runtime: SessionRuntime) -> None:
        with pytest.raises(Unsupported, match=r"session 's' has no agent: pass agent= or create it with"):
            runtime.send("s", "go")
        with pytest.raises(InvalidArgument, match="an agent is a function or has a method `run`, got int"):
            runtime.send("s", "go", agent=3)
        with pytest.raises(InvalidArgument, match="runtime send: prompt must contain at least one message"):
            runtime.send("s", [], agent=str)
        with pytest.raises(SessionConflict):
            runtime.send("s", "go", agent=str, expected_revision=7)
        assert types(runtime) == ["session_created", "message_added"]

    def test_without_a_prompt_it_runs_on_what_is_there(self, runtime: SessionRuntime) -> None:
        result = runtime.send("s", None, agent=lambda messages: messages[-1]["content"], expected_revision=1)
        assert (result.text, result.session.revision) == ("before", 2)

    def test_a_key_is_sent_once(self, runtime: SessionRuntime) -> None:
        calls: list[int] = []

        def agent(messages: Any) -> str:
            calls.append(1)
            if len(calls) == 1:
                raise KeyError("first")
            return "done"

        with pytest.raises(KeyError):
            runtime.send("s", "go", agent=agent, idempotency_key="k")
        first, again = (runtime.send("s", "go", agent=agent, idempotency_key="k") for _ in range(2))
        assert first == again
        assert (first.text, len(calls)) == ("done", 2)
        runtime.execute("s", lambda session: None, idempotency_key="other")
        with pytest.raises(InvalidArgument, match="idempotency key 'other' was used by an action that is"):
            runtime.send("s", "go", agent=agent, idempotency_key="other")

    def test_waiting_ends_the_turn(self, runtime: SessionRuntime) -> None:
        def agent(messages: Any) -> Iterator[str]:
            yield "I have asked."
            raise Waiting("approval", "order-7")

        result = runtime.send("s", "go", agent=agent)
        assert (result.status, result.stop_reason, result.text) == ("waiting", "waiting", "I have asked.")
        assert (result.session.is_waiting, result.session.execution_status) == (True, "stopped")
        wait = next(event for event in result.session.events() if event.type == "wait_started")
        assert wait.data == {"reason": "approval", "external_id": "order-7"}

    def test_sending_inside_a_turn_of_the_same_session_is_refused(self, runtime: SessionRuntime) -> None:
        with pytest.raises(SessionBusy):
            runtime.send("s", "go", agent=lambda messages: runtime.send("s", "again", agent=str).text)


def scripted(turn: Turn) -> Iterator[str]:
    """A turn with everything in it. What it gives are the places where it may end."""
    yield "at once"
    yield "in a message"
    with turn.step():
        yield "in a step"


def talks(messages: Any, turn: Turn) -> Iterator[Any]:
    yield from scripted(turn)
    yield ASKS
    yield "never"  # a text behind an open call is refused: the reader ends it here at the latest


async def talks_async(messages: Any, turn: Turn) -> AsyncIterator[Any]:
    for piece in talks(messages, turn):
        await asyncio.sleep(0)
        yield piece


#: How many pieces are read before the end.
PLACES = (1, 2, 3, 4)


def check_ended(runtime: SessionRuntime, reason: str, place: int) -> None:
    session = runtime.get("s")
    end = [event for event in session.events() if event.type == "turn_completed"][-1]
    assert end.data["turn_stop_reason"] == reason
    roles = [message["role"] for message in session.window()]
    assert roles == ["user", "user"] + (["assistant", "assistant", "tool"] if place == 4 else [])
    assert types(runtime).count("step_started") == types(runtime).count("step_completed")
    assert types(runtime)[-1] == "turn_completed"
    assert runtime.send("s", "next", agent=lambda messages: "fine").text == "fine"


class TestEndingEarly:
    @pytest.mark.parametrize("agent", [talks, talks_async])
    @pytest.mark.parametrize("place", PLACES)
    def test_closing_the_stream(self, runtime: SessionRuntime, agent: Any, place: int) -> None:
        stream = runtime.stream("s", "go", agent=agent)
        for _ in range(place):
            assert next(stream).kind == "chunk"
        stream.close()  # type: ignore[attr-defined]
        check_ended(runtime, "cancelled", place)

    @pytest.mark.parametrize("agent", [talks, talks_async])
    @pytest.mark.parametrize("place", PLACES)
    def test_closing_the_stream_of_a_loop(self, runtime: SessionRuntime, agent: Any, place: int) -> None:
        async def run() -> None:
            stream = AsyncSessionRuntime(runtime).stream("s", "go", agent=agent)
            for _ in range(place):
                assert (await anext(stream)).kind == "chunk"
            await stream.aclose()

        asyncio.run(run())
        check_ended(runtime, "cancelled", place)

    @pytest.mark.parametrize("face", ["sync", "aio"])
    @pytest.mark.parametrize("is_async", [False, True])
    @pytest.mark.parametrize("place", PLACES)
    def test_raising(self, runtime: SessionRuntime, face: str, is_async: bool, place: int) -> None:
        def raising(messages: Any, turn: Turn) -> Iterator[Any]:
            count = 0
            for piece in talks(messages, turn):
                yield piece
                count += isinstance(piece, str)
                if count == place:
                    raise ZeroDivisionError("oh")

        async def raising_async(messages: Any, turn: Turn) -> AsyncIterator[Any]:
            for piece in raising(messages, turn):
                yield piece

        agent = raising_async if is_async else raising

        async def send() -> None:
            await AsyncSessionRuntime(runtime).send("s", "go", agent=agent)

        with pytest.raises(ZeroDivisionError):
            runtime.send("s", "go", agent=agent) if face == "sync" else asyncio.run(send())
        check_ended(runtime, "failed", place)

    @pytest.mark.parametrize("place", PLACES)
    def test_cancelling(self, runtime: SessionRuntime, place: int) -> None:
        async def run() -> None:
            waits = asyncio.Event()

            async def agent(messages: Any, turn: Turn) -> AsyncIterator[Any]:
                count = 0
                for piece in talks(messages, turn):
                    yield piece
                    count += isinstance(piece, str)
                    if count == place:
                        waits.set()
                        await asyncio.Event().wait()

            task = asyncio.create_task(AsyncSessionRuntime(runtime).send("s", "go", agent=agent))
            await waits.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(run())
        check_ended(runtime, "cancelled", place)

    def test_a_function_in_a_thread_sees_that_it_is_cancelled(self, runtime: SessionRuntime) -> None:
        async def run() -> None:
            loop, begun = asyncio.get_running_loop(), asyncio.Event()

            def agent(messages: Any, turn: Turn) -> None:
                loop.call_soon_threadsafe(begun.set)
                while not turn.cancelled:
                    pass
                turn.check()

            task = asyncio.create_task(AsyncSessionRuntime(runtime).send("s", "go", agent=agent))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(run())
        check_ended(runtime, "cancelled", 0)


class TestStreams:
    def test_pieces_and_the_result(self, runtime: SessionRuntime) -> None:
        def agent(messages: Any, turn: Turn) -> Iterator[str]:
            turn.emit("thinking")
            yield "a"
            yield "b"

        events = list(runtime.stream("s", "go", agent=agent))
        assert [(event.kind, event.text) for event in events] == [
            ("chunk", "thinking"), ("chunk", "a"), ("chunk", "b"), ("result", ""),
        ]  # fmt: skip
        assert events[-1].result is not None
        assert events[-1].result.text == "ab"

        async def run() -> list[Any]:
            face = AsyncSessionRuntime(runtime)
            return [event async for event in face.stream("s", "go", agent=agent)]

        shown = asyncio.run(run())
        assert [event.text for event in shown] == ["thinking", "a", "b", ""]
        assert shown[-1].result.session.id == "s"

    def test_who_answers_is_never_ahead_of_who_reads(self, runtime: SessionRuntime) -> None:
        made: list[str] = []

        def agent(messages: Any) -> Iterator[str]:
            for text in "abc":
                made.append(text)
                yield text

        stream = runtime.stream("s", "go", agent=agent)
        for count in (1, 2, 3):
            next(stream)
            assert len(made) == count
        list(stream)

    def test_what_fails_reaches_the_reader(self, runtime: SessionRuntime) -> None:
        with pytest.raises(TypeError):
            list(runtime.stream("s", "go", agent=lambda messages: len(3)))
        with pytest.raises(SessionConflict):
            list(runtime.stream("s", "go", agent=str, expected_revision=1))

    def test_an_agent_that_raises_stop_iteration_keeps_no_loop_waiting(self, runtime: SessionRuntime) -> None:
        async def run() -> None:
            await AsyncSessionRuntime(runtime).send("s", "go", agent=lambda messages: next(iter(())))

        with pytest.raises(RuntimeError, match="a function of the session raised StopIteration"):
            asyncio.run(run())

    def test_a_pipe_may_be_closed_when_who_waits_was_cancelled(self) -> None:
        pipe = Pipe()
        shown, behind = pipe.put("a"), pipe.put("b")
        assert pipe.get().result() == "a"
        assert shown.cancel()
        assert behind.cancel()
        pipe.close()
        assert pipe.put("c").result() is None

    def test_a_listener_is_a_plain_function(self, runtime: SessionRuntime) -> None:
        async def listen(text: str) -> None: ...

        with pytest.raises(InvalidArgument, match="`stream` must be a plain function"):
            runtime.send("s", "go", agent=lambda messages: iter_once(), stream=listen)


def iter_once() -> Iterator[str]:
    yield "a"


def test_a_turn_costs_one_copy_of_each_message_before_it() -> None:
    def calls(length: int) -> int:
        with SessionRuntime("memory:") as runtime:
            runtime.create(id="s", seed=[{"content": str(number)} for number in range(length)])
            runtime.send("s", "first", agent=lambda messages: "shown")
            return calls_made(lambda: runtime.send("s", "go", agent=lambda messages: "done"))

    few, many = calls(10), calls(1_010)
    assert many - few <= 1_000 + 100


def test_what_a_turn_needed_goes_with_it() -> None:
    turns: list[ref[Turn]] = []

    def agent(messages: Any, turn: Turn) -> str:
        turns.append(ref(turn))
        return "done"

    with SessionRuntime("memory:") as runtime:
        runtime.create(id="s")
        gc.disable()
        try:
            for _ in range(10):
                runtime.send("s", "go", agent=agent)
            assert [turn() for turn in turns] == [None] * 10, "a turn is in a cycle"
        finally:
            gc.enable()


def one(messages: Any) -> str:
    return str(1)


def named(messages: Any, turn: Any = None) -> str:
    return str(1 if turn is None else 2)


def optional(messages: Any, tries: Any = None) -> str:
    return str(1 if tries is None else 2)


def required(messages: Any, other: Any, tries: int = 3) -> str:
    return str(2)


def by_name(messages: Any, *, turn: Any = None) -> str:
    return str(1 if turn is None else 2)


def any_number(*arguments: Any) -> str:
    return str(len(arguments))


class Callables:
    def method(self, messages: Any, turn: Any) -> str:
        return str(2)

    def __call__(self, messages: Any) -> str:
        return str(1)


@pytest.mark.parametrize(
    ("agent", "arguments"),
    [
        (one, 1), (named, 2), (optional, 1), (required, 2), (by_name, 1), (any_number, 1),
        (Callables().method, 2), (Callables(), 1), (partial(required, tries=1), 2),
        (wraps(required)(lambda *given: str(len(given))), 2), (wraps(one)(lambda *given: str(len(given))), 1),
    ],
)  # fmt: skip
def test_a_function_gets_the_turn_if_it_takes_one(agent: Any, arguments: int) -> None:
    with SessionRuntime("memory:") as runtime:
        runtime.create(id="s")
        assert runtime.send("s", "go", agent=agent).text == str(arguments)
