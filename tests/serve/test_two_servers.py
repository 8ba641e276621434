"""Two `harnpy serve` processes on one store: what one does the other shows, and goes on with.

Their model is on loopback, so that it outlives them. Spec: 11 §1.4, §1.6, §3.1.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from harnpy.client import ApiError, Client
from harnpy.client.types import Chunk, Event
from tests.llm.wire import OPENAI, Call, Say, Wire
from tests.support import PATIENCE, ROOT, Popen, ended, wait_until

KEY = "k" * 32
AGENT = """
tool track(parcel: int) -> string { return "parcel ${parcel} is on its way" }
pub fn agent() {
  return {
    name: "desk",
    model: "ollama/qwen3:8b",
    options: {tool_format: "native", approval_policy: {require_approval: ["track"]}},
  }
}
"""
ASKS = Say(calls=(Call("track", '{"parcel": 42}'),))
#: An answer that doesn't end.
SLOW = Say("word " * 10_000, piece=5, pause=0.05)

Serve = Callable[..., Any]


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres"))
    return f"sqlite:{tmp_path}/s.db"


@pytest.fixture
def serve(popen: Popen, tmp_path: Path) -> Iterator[Serve]:
    """Starts servers on a store, whose agent `desk` is answered by a model; each has its ``url``."""
    (tmp_path / "desk.harn").write_text(AGENT)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("HARN")}
    with ExitStack() as made:

        def start(store: str, model: Wire, port: int = 0) -> Any:
            process = popen(
                [
                    *(sys.executable, "-m", "harnpy", "serve", "desk.harn"),
                    *("--store", store, "--bind", f"127.0.0.1:{port}"),
                ],
                cwd=tmp_path,
                env={
                    **inherited,
                    "PYTHONPATH": str(ROOT),
                    "HARN_SERVE_API_KEY": KEY,
                    "OLLAMA_HOST": model.url.removesuffix("/v1"),
                },
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            made.callback(kill, process)
            said = process.stderr.readline()
            assert said.startswith("[harn] serve: "), said
            process.url = said.split()[-1]
            return process

        yield start


def kill(process: Any) -> None:
    process.kill()
    process.wait()
    process.stderr.close()


class Observer:
    """A client that watches a session, at whatever server is there."""

    def __init__(self, *urls: str, session: str = "s") -> None:
        self.events: list[Event] = []
        #: The answer as it is shown.
        self.shown = ""
        self.chunks = 0
        self._client = Client(urls, KEY, patience=PATIENCE)
        self._session = session
        self.thread = Thread(target=self._watch, name=f"observer {urls}", daemon=True)
        self.thread.start()

    def _watch(self) -> None:
        for item in self._client.watch(self._session, 0, chunks=True):
            if isinstance(item, Chunk):
                self.shown = item.text if item.start else self.shown + item.text
                self.chunks += 1
            else:
                self.events.append(item)
                if item.type == "action_executed" and self.types("turn_completed"):
                    return

    def types(self, *wanted: str) -> list[str]:
        return [event.type for event in self.events if event.type in wanted]


def test_the_other_server_goes_on_in_the_middle_of_an_answer(store: str, serve: Serve) -> None:
    with Wire(OPENAI, ASKS, SLOW, Say("It is on its way.")) as model:
        first, second = serve(store, model), serve(store, model)
        one, other = Client([first.url, second.url], KEY), Client(second.url, KEY)
        with one, other:
            one.create("desk", id="s")
            observers = [Observer(first.url, second.url), Observer(second.url, first.url)]
            # Control is the session's, wherever a client is.
            one.attach("s", "laptop", mode="controller")
            one.takeover("s", "phone")
            assert other.clients("s").controller == "phone"
            with pytest.raises(ApiError, match="client 'laptop' can't send") as refused:
                other.send("s", "Where is it?", client="laptop")
            assert (refused.value.status, refused.value.code) == (409, "not_controller")

            one.send("s", "Where is it?", client="phone", key="k1", wait=False)
            wait_until(lambda: other.requests("s").requests)
            [asked] = other.requests("s").requests
            assert (asked.tool, asked.args) == ("track", '{"parcel":42}')
            other.allow(asked.id)
            wait_until(lambda: all(observer.chunks > 1 for observer in observers))
            assert all(SLOW.text.startswith(observer.shown) for observer in observers)
            first.kill()
            turn = one.send("s", "Where is it?", client="phone", key="k1")
            assert (turn.status, turn.text, turn.steps) == ("completed", "It is on its way.", 2)
            ended(*(observer.thread for observer in observers))
            assert one.turn("s", "k1") == other.turn("s", "k1") == turn
            log = other.events("s").events

    assert len(model.requests) == 3  # what the tool was called by is paid for once
    for observer in observers:
        assert [event.seq for event in observer.events] == [*range(1, len(observer.events) + 1)]
        assert observer.events == log
        assert observer.shown == "It is on its way."
        turns = ("turn_started", "tool_started", "tool_completed", "turn_completed")
        assert observer.types(*turns) == [*turns]
