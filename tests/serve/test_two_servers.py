"""Two `harnpy serve` processes on one store: what one does the other shows, and goes on with.

Their model is on loopback, so that it outlives them. Spec: 11 §1.4, §1.6, §3.1.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random
from select import select
from threading import Event as Signal
from threading import Thread
from typing import Any

import pytest

from harnpy.client import ApiError, Client
from harnpy.client.types import Chunk, Event
from tests.counts import COUNT
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


class Cutting:
    """A way to a server, ``url``, that breaks now and then, after any byte. ``cuts``: how often it has."""

    def __init__(self, port: int, random: Random) -> None:
        self.cuts = 0
        self.port = port
        self._random = random
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://{}:{}".format(*self._listener.getsockname())
        Thread(target=self._accept, name=f"way to {port}", daemon=True).start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                Thread(target=self._pass_on, args=(self._listener.accept()[0],), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        left = self._random.randrange(1, 6_000)
        with client, suppress(OSError), socket.create_connection(("127.0.0.1", self.port)) as server:
            while True:
                for ready in select([client, server], [], [])[0]:
                    data = ready.recv(65536)
                    if not data:
                        return
                    if ready is server:
                        data, left = data[:left], left - len(data)
                    (client if ready is server else server).sendall(data)
                    if left <= 0:
                        self.cuts += 1
                        return


def kill(process: Any) -> None:
    process.kill()
    process.wait()
    process.stderr.close()


class Observer:
    """A client that watches a session, at whatever server is there."""

    def __init__(self, *urls: str, texts: Sequence[str], session: str = "s") -> None:
        self.events: list[Event] = []
        #: The answer as it is shown.
        self.shown = ""
        self.chunks = 0
        #: How often that was no answer's beginning.
        self.wrong = 0
        self._client = Client(urls, KEY, patience=PATIENCE)
        self._session, self._texts = session, texts
        self.thread = Thread(target=self._watch, name=f"observer {urls}", daemon=True)
        self.thread.start()

    def _watch(self) -> None:
        for item in self._client.watch(self._session, 0, chunks=True):
            if isinstance(item, Chunk):
                self.shown = item.text if item.start else self.shown + item.text
                self.chunks += 1
                self.wrong += not any(text.startswith(self.shown) for text in self._texts)
            else:
                self.events.append(item)
                if item.type == "status_changed":
                    return

    def types(self, *wanted: str) -> list[str]:
        return [event.type for event in self.events if event.type in wanted]


def test_the_other_server_goes_on_in_the_middle_of_an_answer(store: str, serve: Serve) -> None:
    with Wire(OPENAI, ASKS, SLOW, Say("It is on its way.")) as model:
        first, second = serve(store, model), serve(store, model)
        one, other = Client([first.url, second.url], KEY), Client(second.url, KEY)
        with one, other:
            one.create("desk", id="s")
            texts = (SLOW.text, "It is on its way.")
            ways = ((first.url, second.url), (second.url, first.url))
            observers = [Observer(*urls, texts=texts) for urls in ways]
            # Control is the session's, wherever a client is.
            one.attach("s", "laptop", mode="controller")
            one.takeover("s", "phone")
            assert other.clients("s").controller == "phone"
            with pytest.raises(ApiError, match="client 'laptop' can't send") as refused:
                other.send("s", "Where is it?", client="laptop")
            assert (refused.value.status, refused.value.code) == (409, "not_controller")

            one.send("s", "Where is it?", client="phone", key="k1", wait=False)
            wait_until(lambda: observers[1].types("approval_requested"))
            [asked] = other.requests("s").requests
            assert (asked.tool, asked.args) == ("track", '{"parcel":42}')
            other.allow(asked.id)
            wait_until(lambda: all(observer.chunks > 1 for observer in observers))
            first.kill()
            turn = one.send("s", "Where is it?", client="phone", key="k1")
            assert (turn.status, turn.text, turn.steps) == ("completed", "It is on its way.", 2)
            one.close("s")
            ended(*(observer.thread for observer in observers))
            assert one.turn("s", "k1") == other.turn("s", "k1") == turn
            log = other.events("s").events

    assert len(model.requests) == 3  # what the tool was called by is paid for once
    for observer in observers:
        assert [event.seq for event in observer.events] == [*range(1, len(observer.events) + 1)]
        assert observer.events == log[: len(observer.events)]
        assert (observer.shown, observer.wrong) == ("It is on its way.", 0)
        turns = ("turn_started", "tool_started", "tool_completed", "turn_completed")
        assert observer.types(*turns) == [*turns]


#: Words that tell whether some are missing or come twice.
COUNTED = Say(" ".join(f"w{number}" for number in range(150)), piece=6, pause=0.02)


@pytest.mark.skipif(not COUNT.campaign, reason="a campaign's")
def test_a_thousand_broken_connections_and_killed_servers(store: str, serve: Serve) -> None:
    """Sessions go on while servers are killed and connections break, each at any moment."""
    random, problems, stop = Random(COUNT.seed), list[str](), Signal()
    sessions = {f"s{number}": 0 for number in range(3)}  # how many turns each has had
    with Wire(OPENAI, COUNTED) as model, ExitStack() as stack:
        servers = [serve(store, model), serve(store, model)]
        ways = [Cutting(int(server.url.rpartition(":")[2].strip("/")), random) for server in servers]
        urls = [way.url for way in ways]
        for way in ways:
            stack.callback(way.close)
        with Client([server.url for server in servers], KEY) as client:
            for id in sessions:
                client.create("desk", id=id)

        def send(id: str) -> None:
            with Client(urls, KEY, patience=PATIENCE) as client:
                while not stop.is_set():
                    turns = [client.send(id, "Go on.", key=f"{id}:{sessions[id]}") for _ in range(2)]
                    if [(turn.status, turn.text) for turn in turns] != [("completed", COUNTED.text)] * 2:
                        problems.append(f"{id}: {turns}")
                    sessions[id] += 1

        observers = {
            id: [Observer(*random.sample(urls, 2), texts=[COUNTED.text], session=id) for _ in range(3)]
            for id in sessions
        }
        senders = [Thread(target=send, args=(id,), name=id, daemon=True) for id in sessions]
        for sender in senders:
            sender.start()
        kills = 0
        while sum(way.cuts for way in ways) < COUNT.reconnects:
            stop.wait(random.uniform(0.5, 6))
            which = random.randrange(2)
            kill(servers[which])
            kills += 1
            stop.wait(random.uniform(0, 2))
            servers[which] = serve(store, model, ways[which].port)
            assert all(sender.is_alive() for sender in senders)
        stop.set()
        ended(*senders)
        with Client([server.url for server in servers], KEY) as client:
            for id in sessions:
                client.close(id)
            ended(*(observer.thread for each in observers.values() for observer in each))
            logs = {id: whole_log(client, id) for id in sessions}
        for server in servers:
            kill(server)
    print(
        f"{sum(way.cuts for way in ways)} cuts, {kills} kills, {sum(sessions.values())} turns, "
        f"{len(model.requests)} answers begun, {sum(map(len, logs.values()))} events"
    )

    assert problems == []
    for id, log in logs.items():
        keys = [event.data["key"] for event in log if event.type == "turn_started"]
        assert keys == [f"serve:{id}:{number}" for number in range(sessions[id])]
        assert sum(event.type == "turn_completed" for event in log) == len(keys)
        said = [event.data["content"] for event in log if event.data.get("role") == "assistant"]
        assert said == [COUNTED.text] * len(keys)
        for observer in observers[id]:
            assert observer.events == log[: len(observer.events)]
            assert observer.wrong == 0


def whole_log(client: Client, id: str) -> list[Event]:
    found = list[Event]()
    while page := client.events(id, after=len(found), limit=1000).events:
        found += page
    return found
