"""A client of `harnpy lsp` that writes whatever bytes a test wants, and reads what comes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support import PATIENCE, ROOT, Popen, patience

_Message = dict[str, Any]
_PUBLISHED = "textDocument/publishDiagnostics"


def framed(message: object) -> bytes:
    """Return a message as it is sent."""
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


class Client:
    """``heard`` are the messages that nobody has asked for."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self._to, self._from = process.stdin, process.stdout
        self._number = 0
        self.heard: list[_Message] = []

    def write(self, data: bytes) -> None:
        self._to.write(data)
        self._to.flush()

    def send(self, method: str, params: object = None, **more: object) -> None:
        """Send a notification, or with an ``id`` a request."""
        given = {} if params is None else {"params": params}
        self.write(framed({"jsonrpc": "2.0", "method": method, **given, **more}))

    def ask(self, method: str, params: object = None) -> _Message:
        """Return the answer to a request, an error's too."""
        self._number += 1
        self.send(method, params, id=self._number)
        return self.answer(self._number)

    def result(self, method: str, params: object = None) -> Any:
        answer = self.ask(method, params)
        assert "error" not in answer, answer
        return answer["result"]

    def answer(self, number: int | str | None) -> _Message:
        """Return the next answer with an id; None is that of what couldn't be read."""
        while True:
            message = self.read()
            assert message is not None, f"the server has ended, and {number} has no answer"
            if "method" not in message and message.get("id") == number:
                return message
            self.heard.append(message)

    def published(self, uri: str) -> _Message:
        """Return the next diagnostics of a document."""
        while True:
            for at, message in enumerate(self.heard):
                about = message["params"] if message.get("method") == _PUBLISHED else {}
                if about.get("uri") == uri:
                    del self.heard[at]
                    return dict(about)
            message = self.read()
            assert message is not None, "the server has ended"
            self.heard.append(message)

    def read(self) -> _Message | None:
        """Return the next message; None at the end. Nothing but the protocol may be there."""
        length = None
        while True:
            line = self._from.readline()
            if not line:
                assert length is None
                return None
            if line == b"\r\n":
                break
            name, _, value = line.partition(b": ")
            assert name in (b"Content-Length", b"Content-Type"), line
            length = int(value) if name == b"Content-Length" else length
        assert length is not None
        message: _Message = json.loads(self._from.read(length))
        assert message["jsonrpc"] == "2.0"
        return message

    def initialize(self, root: Path | None = None, **capabilities: object) -> _Message:
        folders = [{"uri": root.as_uri(), "name": root.name}] if root is not None else None
        result: _Message = self.result(
            "initialize",
            {
                "processId": None,
                "rootUri": None,
                "workspaceFolders": folders,
                "capabilities": capabilities,
            },
        )
        self.send("initialized", {})
        return result

    def open(self, uri: str, text: str, version: int = 1) -> None:
        document = {"uri": uri, "languageId": "harn", "version": version, "text": text}
        self.send("textDocument/didOpen", {"textDocument": document})

    def change(self, uri: str, version: int, *changes: object) -> None:
        document = {"uri": uri, "version": version}
        self.send("textDocument/didChange", {"textDocument": document, "contentChanges": changes})

    def ended(self) -> int:
        """Return the exit status; every message but answers is in `heard`."""
        while (message := self.read()) is not None:
            self.heard.append(message)
        return self.process.wait(PATIENCE)

    def end(self) -> int:
        """Shut the server down, and return its exit status."""
        self.result("shutdown")
        self.send("exit")
        return self.ended()

    def close(self) -> None:
        """Send nothing more."""
        self._to.close()


@contextmanager
def served(popen: Popen, log: Path, command: tuple[str, ...] = ("-m", "harnpy", "lsp")) -> Iterator[Client]:
    """A server that has started; what it writes to standard error is in the file ``log``."""
    pipe = subprocess.PIPE
    with log.open("wb") as errors:
        process = popen([sys.executable, *command], cwd=ROOT, stdin=pipe, stdout=pipe, stderr=errors)
        with process, patience(process):
            try:
                yield Client(process)
            finally:
                process.kill()
