"""Chunks: what is shown of an answer while it is made is its message, for whoever watches (10 §C10)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event as Flag
from threading import Thread
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy import AgentDef, LoopFactory
from harnpy.llm.errors import CallError
from harnpy.session import Chunk, LiveWatch, SessionRuntime
from harnpy.session.chunks import KIND
from harnpy.storage import Store, open_store
from tests.agent.factory.agents import Provider
from tests.agent.factory.agents import said as replied
from tests.counts import COUNT

EXAMPLES = COUNT.examples(40)
#: Seconds that nobody should have to wait.
LONG = 20.0


class Reader:
    """Reads a watch, as a client does: what is shown of a turn's answer, until its message comes."""

    def __init__(self, watch: LiveWatch, after: int) -> None:
        self.watch = watch
        self.seq = after
        self.shown: dict[int, str] = {}
        self.answers: list[str] = []

    def read(self, timeout: float | None = 0) -> bool:
        found = self.watch.next(timeout)
        if isinstance(found, Chunk):
            assert found.start or found.turn in self.shown, "it begins with a start"
            before = "" if found.start else self.shown[found.turn]
            self.shown[found.turn] = before + found.text
        elif found is not None:
            assert found.seq == self.seq + 1, "in order, without gap or repeat"
            self.seq = found.seq
            if found.type in ("message_added", "turn_completed") and found.turn is not None:
                shown = self.shown.pop(found.turn.seq, None)
                if found.type == "message_added" and shown is not None:
                    assert shown == found.data["content"]
                    self.answers.append(shown)
        return found is not None

    def read_all(self) -> None:
        while self.read():
            pass

    def read_until(self, text: str) -> None:
        while text not in self.shown.values():
            assert self.read(LONG), (text, self.shown)


@contextmanager
def session_on(url: str, **options: Any) -> Iterator[SessionRuntime]:
    with SessionRuntime(url, **options) as runtime:
        runtime.create(id="s")
        yield runtime


ANSWERS = st.lists(st.lists(st.sampled_from(["a", "b ", "ça", "\nd"]), max_size=4), min_size=1, max_size=3)
#: What else happens between two pieces: who reads, who begins to watch, what others append.
MEANWHILE = st.sampled_from(["", "", "read 0", "read 1", "watch", "watch from 0", "attach", "inject", "again"])


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(ANSWERS, min_size=1, max_size=2), st.data())
def test_chunks_are_the_message_that_follows(turns: list[list[list[str]]], data: st.DataObject) -> None:
    readers: list[Reader] = []

    def watch(runtime: SessionRuntime, after: int | None = None) -> Reader:
        seen = runtime.get("s").seq if after is None else after
        readers.append(Reader(runtime.watch("s", chunks=True, after=after, buffer=1000), seen))
        return readers[-1]

    with session_on("memory:") as runtime:
        first = watch(runtime)

        def meanwhile(turn: Any) -> bool:
            """Let something else happen. Return whether the model is asked again."""
            match data.draw(MEANWHILE).split():
                case ["read", number]:
                    readers[int(number) % len(readers)].read()
                case ["watch"]:
                    watch(runtime)
                case ["watch", "from", _]:
                    watch(runtime, 0)
                case ["attach"]:
                    runtime.attach("s", f"c{len(readers)}")
                case ["inject"]:
                    runtime.get("s").append_user("and")
                case ["again"]:
                    turn.start_answer()
                    return True
            return False

        for answers in turns:

            def agent(messages: Any, turn: Any, answers: Any = answers) -> Iterator[Any]:
                for pieces in answers:
                    for piece in pieces:
                        if meanwhile(turn) and turn._pieces:
                            turn.show("".join(turn._pieces))
                        yield piece
                    if pieces:
                        yield {"role": "assistant", "content": "-"}

            runtime.send("s", "go", agent=agent)
        made = ["".join(pieces) for answers in turns for pieces in answers if pieces]
        for reader in readers:
            reader.read_all()
            assert (reader.seq, reader.shown) == (runtime.get("s").seq, {})
        assert [text for text in first.answers if text != "-"] == made


def test_who_reads_slowly_keeps_nobody_waiting_and_gets_all_of_it() -> None:
    with session_on("memory:") as runtime:
        slow = runtime.watch("s", chunks=True, buffer=2)

        def agent(messages: Any, turn: Any) -> Iterator[str]:
            return map(str, range(2000))

        text = runtime.send("s", "go", agent=lambda messages, turn: (each for each in agent(messages, turn))).text
        found = list(iter(lambda: slow.next(0), None))
        assert [each for each in found if isinstance(each, Chunk)] == [Chunk(2, text, True)]
        assert slow.dropped == runtime.get("s").seq - 3


def test_only_chunks_are_asked_for(tmp_path: Path) -> None:
    with session_on("memory:") as runtime:
        silent, loud = runtime.watch("s"), runtime.watch("s", types=[], chunks=True)
        runtime.send("s", "go", agent=lambda messages, turn: turn.emit("hm ") or "ok")
        assert all(not isinstance(each, Chunk) for each in iter(lambda: silent.next(0), None))
        assert list(iter(lambda: loud.next(0), None)) == [Chunk(2, "hm ", True)]


class TestOnEveryStore:
    def test_another_process_is_shown_the_same(self, url: str, opened: Callable[[], Store]) -> None:
        """Piece by piece: the agent goes on when everybody has been shown the last one."""
        if url == "memory:":
            pytest.skip("no other process has it")
        shown = Flag()

        def agent(messages: Any, turn: Any) -> Iterator[Any]:
            for text in ("Hel", "lo", {"role": "assistant", "content": "-"}, "Bye", "!"):
                yield text
                if isinstance(text, str):
                    assert shown.wait(LONG)
                    shown.clear()

        there, pool = opened(), ThreadPoolExecutor(1)
        with session_on(url, share_chunks=True) as here, SessionRuntime(there) as other, pool:
            near = Reader(here.watch("s", chunks=True), 1)
            far = Reader(other.watch("s", chunks=True), 1)
            sent = pool.submit(here.send, "s", "go", agent=agent)
            for text in ("Hel", "Hello", "Bye"):
                near.read_until(text)
                far.read_until(text)
                # Who begins in mid answer is shown what there is of it, once.
                late = Reader(other.watch("s", chunks=True), other.get("s").seq)
                late.read_until(text)
                shown.set()
            near.read_until("Bye!")  # the far one has the rest from the message
            shown.set()
            sent.result(LONG)
            near.read_all()
            while far.seq < near.seq:
                assert far.read(LONG)
            assert near.answers == far.answers == ["Hello", "-", "Bye!"] or far.answers == ["Hello", "Bye!"]
            assert near.seq == far.seq == here.get("s").seq
        assert there.head(KIND, "s") is None

    def test_without_sharing_nothing_is_written(self, url: str, opened: Callable[[], Store]) -> None:
        with session_on(url) as runtime:
            runtime.send("s", "go", agent=lambda messages, turn: turn.emit("x") or "x")
            assert list(runtime.store.kinds()) == ["session"]


ANSWERING = """
import sys, time
from harnpy.session import SessionRuntime
def agent(messages, turn):
    for word in ("Half", " an", " answer"):
        yield word
    time.sleep(600)
SessionRuntime(sys.argv[1], share_chunks=True).send("s", "go", agent=agent)
"""


def test_what_a_killed_process_has_shown_goes_when_its_turn_ends(
    tmp_path: Path, popen: Callable[..., subprocess.Popen[Any]]
) -> None:
    url = f"sqlite:{tmp_path}/s.db?durability=relaxed"
    with session_on(url) as runtime:
        reader = Reader(runtime.watch("s", chunks=True), 1)
        with popen([sys.executable, "-c", ANSWERING, url]) as process:
            reader.read_until("Half an answer")
            process.kill()
        runtime.store.flush()
        assert runtime.store.head(KIND, "s") is not None
        runtime.send("s", "go on", agent=lambda messages: "done")
        assert runtime.store.head(KIND, "s") is None
        while reader.seq < runtime.get("s").seq:
            assert reader.read(LONG)
        assert reader.shown == {}


class TestLoops:
    def test_a_model_that_is_asked_again_starts_again(self) -> None:
        """A loop's answers are shown to watches, whether or not the sender streams."""
        calls = []

        def answer(request: Any) -> Any:
            calls.append(request)
            for piece in ("Well", ", yes"):
                request.shown.piece(piece)
                if len(calls) == 1:
                    raise CallError("overloaded", "server is overloaded")
            return replied(request, "Well, yes")

        loops = LoopFactory(providers={"mine": Provider(answer)})
        agent = AgentDef("a", model="mine/m", options={"tool_format": "native", "llm_retries": 1, "llm_backoff_ms": 0})
        with SessionRuntime("memory:", agents=loops) as runtime:
            runtime.create(agent, id="s")
            watch = runtime.watch("s", types=[], chunks=True)
            assert runtime.send("s", "go").text == "Well, yes"
            assert list(iter(lambda: watch.next(0), None)) == [Chunk(2, "Well", True), Chunk(2, "Well, yes", True)]
