"""A terminal and a program with the real server, which is killed in the middle of an answer. Spec: 11 §3."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event as Signal
from threading import Thread
from typing import Any

import pytest

from harnpy.client import Client
from harnpy.client.types import Chunk, Event
from tests.support import PATIENCE, ROOT, Command, Popen, wait_until
from tests.terminal import Terminal

TOKEN = "t0ken"


@pytest.fixture
def start(popen: Popen, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Starts servers on one store and address, ``url``, that say so many words of an answer."""
    made = []
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def start(*words: str) -> Any:
        url = f"http://127.0.0.1:{port}"
        arguments = [f"sqlite:{tmp_path}/s.db", str(port), TOKEN, *words]
        command = [sys.executable, ROOT / "tests/client/serving.py", *arguments]
        process = popen(command, env={"PYTHONPATH": str(ROOT)}, cwd=tmp_path)
        process.url = url
        made.append(process)
        wait_until(lambda: _is_there(port))
        return process

    yield start
    for process in made:
        process.kill()
        process.wait()


def _is_there(port: int) -> bool:
    with socket.socket() as trial:
        return trial.connect_ex(("127.0.0.1", port)) == 0


class Program:
    """A program that watches a session until its turn is over."""

    def __init__(self, url: str) -> None:
        self.items: list[Event | Chunk] = []
        self.speaks, self.ended = Signal(), Signal()
        self._client = Client(url, TOKEN, patience=PATIENCE)
        self.thread = Thread(target=self._watch, daemon=True)
        self.thread.start()

    def _watch(self) -> None:
        with self._client:
            for item in self._client.watch("talk", 0, chunks=True):
                self.items.append(item)
                if isinstance(item, Chunk):
                    self.speaks.set()
                elif item.type == "action_executed":
                    self.ended.set()
                    return

    @property
    def events(self) -> list[Event]:
        return [item for item in self.items if isinstance(item, Event)]


def test_a_terminal_and_a_program_go_on_when_their_server_is_killed(
    start: Any, harnpy: Command, tmp_path: Path
) -> None:
    server = start("3")
    url = server.url
    terminal = Terminal(
        *("attach", url, "talk", "--client", "desk", "--control", "--token-env", "TOK"),
        cwd=tmp_path,
        TOK=TOKEN,
    )
    terminal.expect("you control")
    program = Program(url)
    terminal.type("where is my parcel?\r")
    terminal.expect("user: where is my parcel?\n")
    terminal.expect("assistant: Let me look.\n")
    terminal.expect("? Approve: track")
    terminal.expect("approve? [y/n]")
    terminal.type("y\r")
    terminal.expect("(allowed by ada)\n")
    terminal.expect("  <- parcel 42 is on its way\n")
    assert program.speaks.wait(PATIENCE)
    server.kill()
    server.wait()
    terminal.expect("again…")
    start()
    terminal.expect(
        "assistant: It left on Monday, and ␛[31mcomes␛[0m on Thursday.\n  Is there␇ anything else?\n"
    )
    assert program.ended.wait(PATIENCE)
    terminal.type("/fork\r")
    terminal.expect("(forked: ")
    terminal.type("\x03")
    assert "t0ken" not in terminal.rest()
    assert terminal.process.returncode == 0

    types = [event.type for event in program.events]
    assert [event.seq for event in program.events[: types.index("action_executed")]] == [
        *range(1, types.index("action_executed") + 1)
    ]
    assert types.count("turn_completed") == types.count("turn_started") == 1
    with Client(url, TOKEN) as client:
        assert client.clients("talk").clients == []
        *pieces, turn = client.stream("talk", "Hello!")
        assert "".join(pieces) == "You said: Hello!"
        assert turn.text == "You said: Hello!"

    piped = harnpy("attach", url, "talk", "--control", stdin="And you?\n\n/nothing\n", HARN_TOKEN=TOKEN)
    assert piped.stdout.endswith("user: And you?\nassistant: You said: And you?\n")
    assert "\x1b" not in piped.stdout
    assert piped.stderr == "error: there is no command /nothing: /help shows those that there are\n"
    assert piped.returncode == 1
