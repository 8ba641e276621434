"""What a runtime is told when it is made, and what else it does for its sessions (10 §A1.17, §C3, §C7)."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from harnpy.session import (
    EventRejected,
    InvalidArgument,
    Session,
    SessionNotFound,
    SessionRuntime,
    Txn,
    drafts,
    messages,
)
from harnpy.session.aio import AsyncSessionRuntime
from harnpy.session.artifacts import FileArtifactStore
from harnpy.session.errors import ExecutionTimeout
from harnpy.session.resize_policy import ResizePolicy
from harnpy.session.runtime import Compactions
from harnpy.storage import StorageError, Store

NO_CALL = "session append: tool message has no matching pending assistant tool call"
SAYS_NOTHING = "session append: assistant message has no content, reasoning, thinking blocks, or tool calls"
ROLE = "session append: message has invalid role"


def call(*ids: str) -> dict[str, Any]:
    calls = [{"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}} for id in ids]
    return messages.assistant(tool_calls=calls)


USER, DONE = messages.user("go"), messages.assistant("done")


def result(id: str) -> dict[str, Any]:
    return messages.tool("f", id, "r")


class TestStrict:
    @pytest.mark.parametrize(
        ("said", "problem"),
        [
            ([messages.system("x")], ROLE),
            ([{"role": "developer", "content": "x"}], ROLE),
            ([{"role": "assistant", "content": "  "}], SAYS_NOTHING),
            ([{"role": "assistant"}], SAYS_NOTHING),
            ([{"role": "assistant", "thinking_blocks": [{"type": "thinking"}]}], None),
            ([{"role": "assistant", "reasoning": "hm"}], None),
            ([result("a")], NO_CALL),
            ([call("a"), result("b")], NO_CALL),
            ([call("a"), {"role": "tool", "content": "r"}], NO_CALL),
            ([call("a"), result("a"), result("a")], NO_CALL),
            ([call("a", "a"), result("a"), result("a")], None),
            ([call("a", "b"), result("b"), result("a"), DONE], None),
            ([call("a"), USER, result("a")], NO_CALL),
            ([call("a"), DONE, result("a")], NO_CALL),
            ([call("a"), call("b"), result("a")], NO_CALL),
            ([call("a"), {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}], None),
        ],
    )
    def test_messages_that_no_model_takes_are_refused(
        self, said: list[dict[str, Any]], problem: str | None
    ) -> None:
        with SessionRuntime("memory:") as runtime, SessionRuntime("memory:", strict=False) as lenient:
            one, all_at_once = runtime.create(id="a"), runtime.create(id="b")
            alone = Session("c")
            for each in (lenient.create(id="a"), alone):
                each.add_history(said)
                assert each.messages() == said

            def add(txn: Txn) -> None:
                txn.append(drafts.user("begin"))
                for message in said:
                    txn.append_message(message)

            def add_one_by_one() -> None:
                for message in said:
                    one.append_message(message)

            ways = [add_one_by_one, lambda: all_at_once.add_history(said), lambda: runtime.execute("b", add)]
            ways.append(lambda: all_at_once.set_history([USER, *said]))
            ways.append(lambda: runtime.create(id="d", seed=[USER, *said]))
            for way in ways:
                if problem is None:
                    way()
                else:
                    with pytest.raises(EventRejected) as caught:
                        way()
                    assert str(caught.value) == problem
            if problem is not None:
                assert (all_at_once.version, runtime.exists("d")) == (1, False)

    def test_a_result_finds_its_call_across_appends(self, store: Store) -> None:
        with SessionRuntime(store) as runtime:
            session = runtime.create(id="s", seed=[USER, call("a", "b")])
            session.append_message(result("a"))
            runtime.evict("s")
            session = runtime.get("s")
            session.append_message(result("b"))
            with pytest.raises(EventRejected, match="no matching pending"):
                session.append_message(result("b"))
            (turn,) = session.append(drafts.turn_started("bot"))
            for message in (call("c"), USER, result("c")):
                draft = drafts.message(message)
                draft.turn = None if message is USER else turn  # somebody else's stands behind the whole step
                session.append(draft)
            assert session.messages()[-3:] == [call("c"), result("c"), USER]

    def test_a_prompt_is_checked_before_the_turn_begins(self) -> None:
        with SessionRuntime("memory:") as runtime:
            session = runtime.create(id="s")
            with pytest.raises(EventRejected, match=NO_CALL):
                runtime.send("s", result("a"), agent=lambda messages: "x")
            assert session.version == 1


class TestParents:
    def test_a_session_that_belongs_to_another_one_shares_nothing_with_it(self, store: Store) -> None:
        with SessionRuntime(store) as runtime:
            above = runtime.create(id="above", seed=USER)
            child = runtime.create("helper", id="child", parent=above, seed=messages.user("mine"))
            below = runtime.create(id="below", parent="child")
            assert (child.messages(), child.revision) == ([messages.user("mine")], 1)
            for _ in range(2):
                info = runtime.info("below")
                assert (info.parent_id, info.depth, info.fork_seq, info.fork_event_id) == (
                    "child",
                    2,
                    0,
                    None,
                )
                assert [each.id for each in runtime.lineage("below")] == ["above", "child", "below"]
                assert runtime.get("below").events()[0].data["parent_session_id"] == "child"
                runtime.evict("below")
            assert below.info.parent_id == "child"
            with pytest.raises(SessionNotFound):
                runtime.create(parent="no")
            with pytest.raises(InvalidArgument):
                runtime.create(Session("x"), parent="above")


class TestTimeouts:
    @pytest.mark.parametrize("given", ["runtime", "call"])
    def test_an_agent_that_takes_too_long(self, store: Store, given: str) -> None:
        async def waits(messages: object) -> str:
            await asyncio.Event().wait()
            return "never"

        limit = 0.01 if given == "runtime" else None
        with SessionRuntime(store, execution_timeout=limit) as runtime:
            session = runtime.create(id="s")
            with pytest.raises(ExecutionTimeout) as caught:
                runtime.send("s", "a", agent=waits, timeout=None if limit else 0.01)
            assert str(caught.value) == "agent execution timed out after 0.01s"
            assert isinstance(caught.value, TimeoutError)
            end = session.events(types=["turn_completed"])[-1].data
            assert (end["error"], end["turn_stop_reason"]) == (str(caught.value), "failed")
            assert runtime.send("s", "b", agent=lambda messages: "c", timeout=60).text == "c"

    def test_one_that_can_not_be_interrupted_fails_in_the_end(self) -> None:
        with SessionRuntime("memory:") as runtime:
            runtime.create(id="s")

            def goes_on(messages: object, turn: Any) -> str:
                while not turn.cancelled:
                    threading.Event().wait(0.001)
                return "too late"

            with pytest.raises(ExecutionTimeout):
                runtime.send("s", "a", agent=goes_on, timeout=0.001)
            assert runtime.get("s").messages() == [messages.user("a")]

    def test_asyncio(self) -> None:
        async def run() -> None:
            async with AsyncSessionRuntime("memory:") as runtime:
                await runtime.create(id="s")

                async def waits(messages: object) -> str:
                    await asyncio.Event().wait()
                    return "never"

                with pytest.raises(ExecutionTimeout):
                    await runtime.send("s", "a", agent=waits, timeout=0.01)
                with pytest.raises(ExecutionTimeout):
                    [event async for event in runtime.stream("s", "a", agent=waits, timeout=0.01)]

        asyncio.run(run())


class TestBackground:
    def test_what_is_asked_for_meanwhile_is_done_once(self) -> None:
        began, go_on, done = threading.Semaphore(0), threading.Semaphore(0), []

        def compact(id: str, strategy: str | None) -> None:
            began.release()
            go_on.acquire()
            done.append(strategy)

        compactions = Compactions(compact)
        first = compactions.ask("s", "a")
        began.acquire()
        second, third = compactions.ask("s", "b"), compactions.ask("s", "c")
        other = compactions.ask("other", "d")
        assert second is third
        for _ in range(3):
            go_on.release()
        assert [future.result() for future in (first, second, other)] == [None] * 3
        assert (sorted(done), done.index("a") < done.index("c")) == (["a", "c", "d"], True)
        again = compactions.ask("s", "e")
        go_on.release()
        assert again.result() is None
        compactions.close()

    def test_what_was_cancelled_keeps_nobody_waiting(self) -> None:
        began, go_on, done = threading.Semaphore(0), threading.Semaphore(0), []

        def compact(id: str, strategy: str | None) -> None:
            began.release()
            go_on.acquire()
            done.append(strategy)

        compactions = Compactions(compact)
        first = compactions.ask("s", "a")
        began.acquire()
        assert not first.cancel()
        second = compactions.ask("s", "b")
        assert second.cancel()
        go_on.release()
        assert first.result() is None
        go_on.release()
        assert compactions.ask("s", "c").result() is None
        assert done == ["a", "c"]
        compactions.close()

    def test_an_ask_behind_a_cancelled_one_is_its_own(self) -> None:
        began, go_on = threading.Semaphore(0), threading.Event()

        def compact(id: str, strategy: str | None) -> None:
            began.release()
            go_on.wait()

        compactions = Compactions(compact)
        compactions.ask("s", "a")
        began.acquire()
        second = compactions.ask("s", "b")
        second.cancel()
        third = compactions.ask("s", "c")
        assert third is not second
        go_on.set()
        assert third.result() is None
        compactions.close()

    def test_a_session_is_compacted(self, store: Store) -> None:
        policy = ResizePolicy(summarize=lambda prompt: "short", keep_last=1)
        with SessionRuntime(store, resize=policy) as runtime:
            session = runtime.create(id="s", seed=[messages.user(text) for text in "abcd"])
            report = runtime.compact_in_background("s", "llm").result()
            assert report is not None
            assert (report.strategy, session.length) == ("llm", 2)
            with pytest.raises(SessionNotFound):
                runtime.compact_in_background("no").result()

    def test_asyncio(self) -> None:
        async def run() -> None:
            async with AsyncSessionRuntime("memory:") as runtime:
                await runtime.create(id="s", seed=[messages.user(text) for text in "abcd"])
                report = await runtime.compact_in_background("s", "trim")
                assert report is not None
                runtime.compact_in_background("s", "trim").cancel()
                await asyncio.sleep(0)  # the cancellation reaches the runtime's own future
                again = runtime.compact_in_background("s", "trim")
                await asyncio.wait([again])
                assert again.result() is not None

        asyncio.run(run())


def test_bootstrap(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "a.txt").write_text("x")
    with SessionRuntime("memory:") as runtime:
        session = runtime.create(id="s", seed=USER)
        runtime.bootstrap("s", str(tmp_path), tools=["read_file"])
        (entry, *_) = session.entries()
        assert (entry.context_kind, entry.placement) == ("bootstrap", "prefix")
        assert entry.message["content"] == (
            f"Working directory: {tmp_path}\nFiles:\n- a.txt\n- src/\nTools:\n- read_file"
        )
        runtime.bootstrap("s", "/x", files=["b", "a"])
        assert session.window()[1]["content"] == "Working directory: /x\nFiles:\n- a\n- b"


def test_files_in_both_directions(store: Store, tmp_path: Path) -> None:
    with SessionRuntime(store) as runtime, SessionRuntime("memory:") as other:
        session = runtime.create(id="s", seed=[USER, DONE])
        text = runtime.export("s", path=str(tmp_path / "s.jsonl"))
        found = other.import_(str(tmp_path / "s.jsonl"))
        assert found is not None
        assert (found is other.get("s"), found.messages(), found.strict) == (True, session.messages(), True)
        assert other.import_(text, "jsonl", on_conflict="skip") is None
        assert runtime.export_dir(str(tmp_path / "all")).exported == [str(tmp_path / "all" / "s.jsonl")]
        assert other.import_dir(str(tmp_path / "all"), on_conflict="rename").imported != {}
        assert len(other.list().items) == 2


def test_artifacts_of_the_runtime(tmp_path: Path) -> None:
    artifacts = FileArtifactStore(str(tmp_path))
    policy = ResizePolicy(max_tokens=10, min_keep_turns=1)
    with SessionRuntime("memory:", artifacts=artifacts, resize=policy) as runtime:
        said = [USER, call("a"), messages.tool("f", "a", "x" * 5000), DONE, USER, DONE]
        session = runtime.create(id="s", seed=said)
        assert session.resize("offload") is not None
        (recorded,) = session.events(types=["artifact_recorded"])
        body, known = artifacts.open(recorded.data["artifact"]["id"])
        with body:
            assert (body.read(), known.kind) == (b"x" * 5000, "context_offload")
        assert runtime.artifacts is artifacts


def test_durability(tmp_path: Path) -> None:
    with SessionRuntime(f"sqlite:{tmp_path}/s.db", durability="async") as runtime:
        assert type(runtime.store).__name__ == "DeferredStore"
        runtime.create(id="s")
    with SessionRuntime(f"sqlite:{tmp_path}/s.db?durability=async", durability="full") as runtime:
        assert type(runtime.store).__name__ == "SqliteStore"
        assert runtime.exists("s")
        with pytest.raises(InvalidArgument, match="give its URL"):
            SessionRuntime(runtime.store, durability="full")
    with pytest.raises(StorageError, match="is one of full, relaxed, async, not `some`"):
        SessionRuntime("memory:", durability="some")
