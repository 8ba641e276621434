"""What callers give that can't be used: one sentence that names it, and nothing is stored (10 §C11)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harnpy.session import (
    AgentError,
    ChildSpec,
    EventBus,
    EventDraft,
    EventRejected,
    HookStack,
    InvalidArgument,
    Reply,
    Session,
    SessionBusy,
    SessionError,
    SessionQuery,
    SessionRuntime,
    Turn,
    actions,
    child_runs,
    dump_state,
    encode_event,
    export_run,
    load_state,
    metadata,
    turn,
)

NO_EVENT = "`until` must be the number of an event, its id, or a moment, got float"
NO_COST = "session append: `cost` must be a finite number, got "
LONE = "a\ud800b"


@pytest.fixture
def runtime() -> Iterator[SessionRuntime]:
    with SessionRuntime("memory:") as runtime:
        runtime.create(id="s", seed={"content": "before"})
        yield runtime


def echo(messages: Any) -> str:
    return "ok"


def idle(session: Any) -> None: ...


#: What is called, and what the error says.
OF_RUNTIMES: list[tuple[Callable[[SessionRuntime], Any], str]] = [
    (lambda r: r.get([]), "Invalid session ID: []"),
    (lambda r: r.info(3), "Invalid session ID: 3"),
    (lambda r: r.exists(None), "Invalid session ID: None"),
    (lambda r: r.execute([], idle), "Invalid session ID: []"),
    (lambda r: r.execute("s", idle, retries=-1), "`retries` must be an int >= 0, got -1"),
    (lambda r: r.execute("s", idle, idempotency_key=3), "`idempotency_key` must be a text, got int"),
    (lambda r: r.send("s", "x", timeout=-1), "`timeout` must be a number of seconds >= 0, got -1"),
    (lambda r: r.send("s", "x", agent=echo, stream=3), "`stream` must be a function, got int"),
    (lambda r: r.send("s", 3, agent=echo), "messages must be dicts with a string `role`"),
    (lambda r: r.create(seed=3), "messages must be dicts with a string `role`"),
    (lambda r: r.create(metadata=3), "`metadata` must be a dict, got int"),
    (lambda r: r.create(auto_resize="no"), "`auto_resize` must be a bool, got str"),
    (lambda r: r.episodes([]), "Invalid session ID: []"),
    (lambda r: r.search_episodes("a", limit=1.5), "`limit` must be an int >= 0, got 1.5"),
    (lambda r: r.compact_in_background([]), "Invalid session ID: []"),
    (lambda r: r.create(parent=3), "Invalid session ID: 3"),
    (lambda r: r.list(None), "`query` must be a SessionQuery, got NoneType"),
    (lambda r: r.list(SessionQuery(status="bogus")), 'unknown status "bogus"'),
    (lambda r: r.list(SessionQuery(limit=1.5)), "`limit` must be an int >= 0, got 1.5"),
    (lambda r: r.search(None), "`query` must be a text, got NoneType"),
    (lambda r: r.run_child("s", None), "`spec` must be a ChildSpec, got NoneType"),
    (lambda r: r.spawn("s", ChildSpec(agent=echo, messages=3)), "`messages` must be a list, got int"),
    (lambda r: r.bootstrap("s", tools=None), "`tools` must be a list, got NoneType"),
    (lambda r: r.import_(None), "a session is read from a text or a file's path, got NoneType"),
    (lambda r: r.open("s", until=1.5), NO_EVENT),
    (lambda r: r.events.on("session_saved", 3), "`fn` must be a function, got int"),
    (lambda r: r.get("s").fork(label=3), "`label` must be a text, got int"),
]  # fmt: skip

OF_SESSIONS: list[tuple[Callable[[Session], Any], str]] = [
    (lambda s: s.append(None), "session append: expected an EventDraft, got NoneType"),
    (lambda s: s.append(EventDraft([])), "session append: `type` must be a text, got list"),
    (lambda s: s.append(EventDraft("x", cost="1")), NO_COST + "'1'"),
    (lambda s: s.append(EventDraft("x", cost=float("nan"))), NO_COST + "nan"),
    (lambda s: s.append(EventDraft("x", turn=3)), "session append: `turn` must be a text, got int"),
    (lambda s: s.append(EventDraft("x", id=3)), "session append: `id` must be a text, got int"),
    (lambda s: s.append(EventDraft("x", seq="2")), "session append: `seq` must be an int, got str"),
    (lambda s: s.add_history(None), "messages must be dicts with a string `role`"),
    (lambda s: s.trim(-1), "`keep_last` must be an int >= 0, got -1"),
    (lambda s: s.events(after=None), "`after` must be an int >= 0, got None"),
    (lambda s: s.events(types="message_added"), "`types` must be a list of event types, got 'message_added'"),
    (lambda s: s.watch(types="x"), "watch: types must be a list of event types, got 'x'"),
    (lambda s: s.watch(types=3), "watch: types must be a list of event types, got 3"),
    (lambda s: s.fork(at=1.5), NO_EVENT),
    (lambda s: s.branch(1.5), NO_EVENT),
    (lambda s: s.move_leaf("", summary=3), "`summary` must be a text, got int"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "text"), OF_RUNTIMES)
def test_what_a_runtime_cannot_use(
    runtime: SessionRuntime, call: Callable[[SessionRuntime], Any], text: str
) -> None:
    with pytest.raises(SessionError) as raised:
        call(runtime)
    assert raised.value.message.removesuffix(".") == text
    assert [event.type for event in runtime.get("s").events()] == ["session_created", "message_added"]


@pytest.mark.parametrize(("call", "text"), OF_SESSIONS)
def test_what_a_session_cannot_use(
    runtime: SessionRuntime, call: Callable[[Session], Any], text: str
) -> None:
    alone = Session("s")
    alone.add_history({"content": "before"})
    for session in (alone, runtime.get("s")):
        with pytest.raises(SessionError) as raised:
            call(session)
        assert raised.value.message == text
        assert session.version == 2


def test_what_a_runtime_cannot_be_made_with() -> None:
    for options, text in (
        ({"store": None}, "`store` must be a store or the URL of one, got NoneType"),
        ({"events": 3}, "`events` must be a EventBus, got int"),
        ({"resize": 3}, "`resize` must be a ResizePolicy, got int"),
        ({"settings": 3}, "`settings` must be a dict, got int"),
        ({"wait_timeout": None}, "`wait_timeout` must be a number of seconds >= 0, got None"),
        ({"execution_timeout": -1}, "`execution_timeout` must be a number of seconds >= 0, got -1"),
    ):
        with pytest.raises(InvalidArgument) as raised:
            SessionRuntime(**{"store": "memory:", **options})
        assert raised.value.message == text
    for call in (
        lambda: EventBus().on(None, echo),
        lambda: HookStack().with_(idle, None),
        lambda: export_run("s"),
        lambda: child_runs("s"),
        lambda: dump_state("s"),
        lambda: load_state(3),
    ):
        with pytest.raises(SessionError):
            call()


def test_a_file_may_be_given_as_a_path(tmp_path: Any) -> None:
    (tmp_path / "s.json").write_text(dump_state(Session("s")))
    assert load_state(tmp_path / "s.json").id == "s"


def test_lone_surrogates_spoil_no_list(tmp_path: Any) -> None:
    """They can't be stored: one in a name of an agent kept every list from being shown."""
    with SessionRuntime(f"sqlite:{tmp_path}/s.db?durability=relaxed") as runtime:
        session = runtime.create(LONE, id="s")
        runtime.execute("s", actions.Fork("f", label=LONE, reason=LONE))
        runtime.execute("s", idle, idempotency_key=LONE)
        runtime.execute("s", lambda txn: 1 // 0, idempotency_key=LONE)
        assert runtime.send("s", "x", agent=echo, idempotency_key="k" + LONE).text == "ok"
        assert runtime.send("s", "x", agent=echo, idempotency_key="k" + LONE).text == "ok"
        with metadata(a=LONE), turn(LONE):
            session.append(EventDraft("x", id=LONE, turn=LONE))
        assert {info.agent_name for info in runtime.list().items} == {"a�b"}
        assert runtime.info("f").branch_label == "a�b"
        assert [encode_event(event) for event in session.events()]


def test_what_the_code_around_an_append_cannot_add() -> None:
    with pytest.raises(EventRejected, match="metadata is not JSON: object at /a"), metadata(a=object()):
        pass
    with pytest.raises(InvalidArgument, match="`turn` must be a text, got int"), turn(3):
        pass


@pytest.mark.parametrize(("usage", "cost"), [(3, 0.0), ({"a": "b"}, 0.0), (None, "1"), (None, float("nan"))])
def test_a_step_that_took_what_cannot_be_ends_the_turn(
    runtime: SessionRuntime, usage: Any, cost: Any
) -> None:
    def agent(messages: Any, turn: Turn) -> str:
        with turn.step() as step:
            step.usage, step.cost = usage, cost
        return "x"

    with pytest.raises(AgentError, match=r"agent agent ended a step whose `(usage|cost)` is"):
        runtime.send("s", "go", agent=agent)
    with pytest.raises(AgentError, match=r"agent agent returned a Reply whose `(usage|cost)` is"):
        runtime.send("s", "go", agent=named(lambda messages: Reply("x", usage=usage, cost=cost)))
    session = runtime.get("s")
    assert session.execution_status == "failed"
    assert not session.view.open_turns
    assert runtime.send("s", "go", agent=echo).text == "ok"


def named(fn: Any) -> Any:
    fn.__name__ = "agent"
    return fn


def test_a_tool_without_a_function_is_no_call(runtime: SessionRuntime) -> None:
    def agent(messages: Any, turn: Turn) -> str:
        with pytest.raises(InvalidArgument, match="`fn` must be a function, got NoneType"):
            turn.tool("f", {}, None)
        return "x"

    runtime.send("s", "go", agent=agent)
    assert "tool_started" not in [event.type for event in runtime.get("s").events()]


def test_a_run_log_shows_calls_that_say_little(runtime: SessionRuntime) -> None:
    session = runtime.get("s")
    session.append(EventDraft("message_added", {"role": "assistant", "content": "x"}))
    session.append(EventDraft("tool_started", {}), EventDraft("tool_completed", {}))
    (answer,) = export_run(session).turns
    assert (answer.tool_calls[0]["function"]["name"], answer.tool_results[0]["content"]) == ("", "")


class TestInterrupts:
    @pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit])
    def test_one_in_an_async_agent_reaches_who_waits(
        self, runtime: SessionRuntime, end: type[BaseException]
    ) -> None:
        """Raised on the runtime's own loop it ended that, and its caller waited for ever."""

        async def agent(messages: Any) -> None:
            raise end

        for _ in range(2):
            with pytest.raises(end):
                runtime.send("s", "go", agent=agent)
            with pytest.raises(end):
                list(runtime.stream("s", "go", agent=agent))
        assert not runtime.get("s").view.open_turns

        async def answers(messages: Any) -> str:
            await asyncio.sleep(0)
            return "there"

        assert runtime.send("s", "go", agent=answers).text == "there"

    def test_closing_inside_an_async_agent_is_refused(self, runtime: SessionRuntime) -> None:
        async def agent(messages: Any) -> None:
            runtime.close()

        with pytest.raises(SessionBusy, match="can't wait for another one in the same thread"):
            runtime.send("s", "go", agent=agent)
        assert runtime.send("s", "go", agent=echo).text == "ok"


@pytest.mark.parametrize(
    "option",
    [
        {"id": "other"},
        {"seed": [{"content": "hi"}]},
        {"metadata": {"team": "ops"}},
        {"parent": "above"},
        {"label": "Desk"},
        {"system_prompt": "Be brief."},
        {"auto_resize": False},
    ],
)
def test_a_session_is_stored_as_it_is(option: dict[str, Any]) -> None:
    with SessionRuntime("memory:") as runtime:
        with pytest.raises(InvalidArgument, match="a session is stored as it is"):
            runtime.create(Session("draft"), **option)
        assert runtime.list().items == []
