"""Chunks: what is shown of an answer while it is made is its message, for whoever watches (10 §C10)."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import Event as Flag
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy import AgentDef, LoopFactory
from harnpy.adapters import conversations
from harnpy.agent.loop.shown_answers import ShownAnswers
from harnpy.agent.tasks import OneTask
from harnpy.llm.errors import CallError
from harnpy.llm.reply import Reply
from harnpy.llm.request import Request
from harnpy.llm.text_format import visible_text
from harnpy.session import Chunk, LiveWatch, SessionRuntime
from harnpy.session.chunks import KIND, Piece, stream_of
from harnpy.session.erasure import erase
from harnpy.storage import Store
from harnpy.world import World
from tests.agent.factory.agents import said as replied
from tests.agent.factory.agents import weather
from tests.counts import COUNT

EXAMPLES = COUNT.examples(25)
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


def there(watch: Any) -> list[Any]:
    """What a watch has already."""
    return list(iter(lambda: watch.next(0), None))


@contextmanager
def session_on(url: str, **options: Any) -> Iterator[SessionRuntime]:
    with SessionRuntime(url, **options) as runtime:
        runtime.create(id="s")
        yield runtime


ANSWERS = st.lists(st.lists(st.sampled_from(["a", "b ", "ça", "\nd"]), max_size=4), min_size=1, max_size=3)
#: What else happens between two pieces: who reads, who begins to watch, what others append.
MEANWHILE = st.sampled_from(
    ["", "", "read 0", "read 1", "watch", "watch from 0", "attach", "inject", "again"]
)


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

        text = runtime.send(
            "s", "go", agent=lambda messages, turn: (each for each in agent(messages, turn))
        ).text
        found = there(slow)
        assert [each for each in found if isinstance(each, Chunk)] == [Chunk(2, text, True)]
        assert slow.dropped == runtime.get("s").seq - 3


def test_only_chunks_are_asked_for(tmp_path: Path) -> None:
    with session_on("memory:") as runtime:
        silent, loud = runtime.watch("s"), runtime.watch("s", types=[], chunks=True)
        runtime.send("s", "go", agent=lambda messages, turn: turn.emit("hm ") or "ok")
        assert all(not isinstance(each, Chunk) for each in there(silent))
        assert there(loud) == [Chunk(2, "hm ", True)]


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


def test_what_is_on_the_store_is_in_no_list_copy_or_export_and_is_erased(tmp_path: Path) -> None:
    url, secret = f"sqlite:{tmp_path}/s.db", "a secret that nobody says twice"
    with session_on(url) as runtime:
        store = runtime.store
        stream_of(store, "s").append([Piece(1, 1, "gone", 1, 2, 2, 0, secret)], 0)  # of a killed process
        assert [info.id for info in runtime.list().items] == ["s"]
        assert secret not in runtime.export("s")
        with SessionRuntime(f"sqlite:{tmp_path}/copy.db") as target:
            assert [copied.id for copied in conversations.copy(store, target.store).copied] == ["s"]
            assert list(target.store.kinds()) == ["session"]
        assert secret.encode() in _bytes(tmp_path)
        erase(store, ["s"], World(), lambda id: nullcontext())
        assert list(store.kinds()) == []
        assert secret.encode() not in _bytes(tmp_path)
        runtime.create(id="s")
        stream_of(store, "s").append([Piece(1, 1, "gone", 1, 2, 2, 0, secret)], 0)
        runtime.delete("s", hard=True)
        assert list(store.kinds()) == []


def _bytes(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in directory.glob("s.db*"))


class Streaming:
    """Streams these pieces, each attempt its own; all but the last one fail. ``pause`` is in seconds."""

    def __init__(self, *attempts: list[str], pause: float = 0) -> None:
        self._attempts = [*attempts]
        self._pause = pause

    async def complete(self, request: Request) -> Reply:
        pieces = self._attempts.pop(0)
        assert request.shown is not None
        for piece in pieces:
            request.shown.piece(piece)
            await asyncio.sleep(self._pause)
        if self._attempts:
            raise CallError("overloaded", "server is overloaded")
        return replied(request, "".join(pieces))


@contextmanager
def loop_on(provider: Streaming, **options: Any) -> Iterator[SessionRuntime]:
    loops = LoopFactory(providers={"mine": provider})
    agent = AgentDef("a", model="mine/m", options={"llm_backoff_ms": 0, **options})
    with SessionRuntime("memory:", agents=loops) as runtime:
        runtime.create(agent, id="s")
        yield runtime


class TestLoops:
    """A loop's answers are shown to watches, whether or not the sender streams."""

    def test_a_model_that_is_asked_again_starts_again(self) -> None:
        provider = Streaming(["Well"], ["Well", ", yes"])
        with loop_on(provider, tool_format="native", llm_retries=1) as runtime:
            watch = runtime.watch("s", types=[], chunks=True)
            assert runtime.send("s", "go").text == "Well, yes"
            assert there(watch) == [Chunk(2, "Well", True), Chunk(2, "Well, yes", True)]

    def test_markup_is_not_shown(self) -> None:
        provider = Streaming(["<assistant", "_prose>Well, ", "ye", "s</assistant_prose>"])
        with loop_on(provider, tool_format="text") as runtime:
            watch = runtime.watch("s", types=[], chunks=True)
            streamed: list[str] = []
            assert runtime.send("s", "go", stream=streamed.append).text == "Well, yes"
            assert there(watch) == [Chunk(2, "Well, yes", True)]
            assert streamed == ["Well,", " ye", "s"]

    @pytest.mark.parametrize("tools", [(), ("weather",)])
    def test_untagged_text_is_streamed(self, tools: tuple[str, ...]) -> None:
        provider = Streaming(["If a ", "< b, ", "look at ", "[1]", " and ", "<thi", "s>"])
        loops = LoopFactory(providers={"mine": provider}, tools=[weather])
        agent = AgentDef("a", model="mine/m", options={"tool_format": "text"}, tools=tools)
        with SessionRuntime("memory:", agents=loops) as runtime:
            runtime.create(id="s")
            events = [event.text for event in runtime.stream("s", "go", agent=agent)]
        assert events[:-1] == ["If a", " < b,", " look at", " [1]", " and", " <this>"]

    def test_a_sender_gets_an_answer_again_that_was_taken_back(self) -> None:
        provider = Streaming(["Let me see.", " <user_response>", "Yes", "</user_response>"])
        with loop_on(provider, tool_format="text") as runtime:
            streamed: list[str] = []
            assert runtime.send("s", "go", stream=streamed.append).text == "Yes"
        assert "".join(streamed) == "Let me see.\n\nYes"

    def test_on_chunk_is_called_while_the_model_answers(self) -> None:
        told: list[dict[str, Any]] = []
        provider = Streaming(["So", " "], ["Well", ", ", "yes"], pause=0.05)
        with loop_on(provider, tool_format="native", llm_retries=1) as runtime:
            runtime.send("s", "go", on_chunk=told.append)
        starts = [at for at, each in enumerate(told) if each["start"]]
        assert len(starts) == 2 < len(told)
        assert "".join(each["text"] for each in told[starts[1] :]) == "Well, yes"

    def test_what_on_chunk_raises_ends_the_call(self) -> None:
        def stop(chunk: dict[str, Any]) -> None:
            raise ValueError(chunk["text"])

        provider = Streaming(["Well", "!"], pause=0.05)
        with loop_on(provider) as runtime, pytest.raises(ValueError, match="Well"):
            runtime.send("s", "go", on_chunk=stop)


TAGS = ["assistant_prose", "tool_call", "user_response", "think", "done"]
PARTS = ["Hello", " you ", "\n", "##DONE##", "[a](b)", "a < b", "é"]
PARTS += [form.format(tag) for tag in TAGS for form in ("<{}>", "</{}>")]


class Conversation:
    """What a loop's answers are shown to."""

    is_watched = True

    def __init__(self) -> None:
        self.shown = self.sent = ""

    def start_answer(self) -> None:
        self.shown = ""

    def show(self, text: str) -> None:
        self.shown += text

    def show_sender(self, text: str) -> None:
        self.sent += text


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    st.lists(st.sampled_from(PARTS), max_size=12),
    st.booleans(),
    st.integers(1, 9),
    st.sampled_from(["", "I "]),
)
def test_all_that_is_shown_is_the_answer(parts: list[str], is_native: bool, size: int, prefill: str) -> None:
    told: list[dict[str, Any]] = []
    conversation: Any = Conversation()
    shown = ShownAnswers(conversation, OneTask(World().clock), told.append, is_native=is_native)
    request: Any = SimpleNamespace(model="m", provider="p", prefill=prefill or None)
    text = "".join(parts)
    shown.began(request)
    for at in range(0, len(text), size):
        shown.piece(text[at : at + size])
        if at % 2:
            shown.tell()
    shown.ended(replied(request, text))
    whole = prefill + text if is_native else visible_text(prefill + text)
    last = max((at for at, each in enumerate(told) if each["start"]), default=0)
    assert "".join(each["text"] for each in told[last:]) == whole
    assert conversation.shown == whole
    assert not whole or conversation.sent == whole or conversation.sent.endswith(f"\n\n{whole}")
