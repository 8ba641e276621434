"""The life of a server over real pipes, whatever a client sends. Spec: 12 §1."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.client import Client, framed, served
from tests.support import Popen

_URI = "file:///project/main.harn"
_INITIALIZE = {"processId": None, "rootUri": None, "capabilities": {}}
_PARSE, _REQUEST, _METHOD, _PARAMS, _INTERNAL = -32700, -32600, -32601, -32602, -32603
_NOT_INITIALIZED, _CANCELLED = -32002, -32800

Serve = Callable[[], AbstractContextManager[Client]]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def client(popen: Popen, log: Path) -> Iterator[Client]:
    """A server that nothing was said to yet."""
    with served(popen, log) as client:
        yield client


def code(answer: dict[str, Any]) -> int | None:
    found: int | None = answer.get("error", {}).get("code")
    return found


def hover(uri: str = _URI, line: int = 0, character: int = 0) -> dict[str, Any]:
    return {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}}


def test_a_life_in_order(client: Client) -> None:
    assert code(client.ask("textDocument/hover", hover())) == _NOT_INITIALIZED
    client.open(_URI, "lost")  # before `initialize`: ignored
    result = client.initialize()
    assert result["capabilities"]["positionEncoding"] == "utf-16"
    assert result["serverInfo"]["name"] == "harnpy"
    assert code(client.ask("initialize", _INITIALIZE)) == _REQUEST
    assert code(client.ask("textDocument/hover", hover())) == _PARAMS  # not open, not on disk
    assert code(client.ask("no/such")) == _METHOD
    assert code(client.ask("$/noSuch")) == _METHOD
    client.send("no/such", {})
    client.send("$/noSuch", {})
    assert client.result("shutdown") is None
    assert code(client.ask("textDocument/hover", hover())) == _REQUEST
    assert code(client.ask("shutdown")) == _REQUEST
    client.open(_URI, "let = ")  # behind `shutdown`: ignored
    client.send("exit")
    assert client.ended() == 0
    assert client.heard == []


@pytest.mark.parametrize("ending", ["exit", "end", "exit at once"])
def test_an_end_out_of_order_is_a_failure(client: Client, ending: str) -> None:
    if ending != "exit at once":
        client.initialize()
    if ending == "end":
        client.close()
    else:
        client.send("exit")
    assert client.ended() == 1


def test_the_end_of_the_input_behind_shutdown(client: Client) -> None:
    client.initialize()
    client.result("shutdown")
    client.close()
    assert client.ended() == 0


def test_what_is_no_message_has_an_answer_and_changes_nothing(client: Client) -> None:
    client.initialize()
    good = framed({"jsonrpc": "2.0", "id": "a", "method": "shutdown"})
    for broken, expected in [
        (framed(b'{"jsonrpc": "2.0", '), _PARSE),
        (framed(b"\xff\xfe"), _PARSE),
        (framed(b"[" * 100_000), _PARSE),
        (framed([]), _REQUEST),
        (framed(1), _REQUEST),
        (framed({"id": None, "method": "x", "jsonrpc": "2.0"}), _REQUEST),
        (framed({"jsonrpc": "2.0"}), _REQUEST),
        (framed({"jsonrpc": "2.0", "method": 1}), _REQUEST),
        (b"Content-Length: x\r\n\r\n", _PARSE),
        (b"Content-Length: -1\r\n\r\n", _PARSE),
        (b"Content-Length: 99999999999999\r\n\r\n", _PARSE),
        (b"Content-Type: x\r\n\r\n", _PARSE),
        (b"Content-Length: 0\r\n\r\n", _PARSE),
        (b"Content-Length: 3\r\n\r\n" + json.dumps({"id": 1}).encode(), _PARSE),
    ]:
        client.write(broken)
        assert code(client.answer(None)) == expected, broken[:50]
    for message in ({"id": 71, "method": "shutdown"}, {"id": 72, "jsonrpc": "1.0", "method": "shutdown"}):
        client.write(framed(message))
        assert code(client.answer(message["id"])) == _REQUEST
    client.send("textDocument/hover", {"textDocument": 1}, id=73)
    assert code(client.answer(73)) == _PARAMS
    client.send("textDocument/hover", hover(line=-1), id=74)
    assert code(client.answer(74)) == _PARAMS
    # More is announced than there is: what comes next is part of it, and found again.
    client.write(b"content-length: 150\r\n\r\n{" + good)
    client.write(b" " * 100)
    assert code(client.answer(None)) == _PARSE
    assert client.answer("a")["result"] is None
    client.send("exit")
    assert client.ended() == 0


def test_messages_come_in_pieces_and_may_be_huge(client: Client) -> None:
    client.initialize()
    text = "// " + "é😀 " * 700_000 + "\nlet x: int = 1\nlet y: int = 'a'\n"
    client.open(_URI, text)
    assert client.published(_URI)["diagnostics"]
    data = framed({"jsonrpc": "2.0", "id": 1_000, "method": "textDocument/hover", "params": hover()})
    for at in range(0, len(data), 7):
        client.write(data[at : at + 7])
    assert client.answer(1_000)["result"] is None
    assert client.end() == 0


def test_versions_and_documents_that_are_not_open(client: Client, log: Path) -> None:
    client.initialize()
    client.change(_URI, 1, {"text": "let = 1"})
    client.open(_URI, "let a = nothing\n", 5)
    first = client.published(_URI)
    assert first["version"] == 5
    assert [one["code"] for one in first["diagnostics"]] == ["undefined-name"]
    client.change(_URI, 4, {"text": "let = 1"})
    client.change(
        _URI,
        7,
        {"range": {"start": {"line": 0, "character": 8}, "end": {"line": 0, "character": 99}}, "text": "1"},
        {
            "range": {"start": {"line": 9, "character": 9}, "end": {"line": 9, "character": 9}},
            "text": "let b",
        },
        {
            "range": {"start": {"line": 1, "character": 5}, "end": {"line": 1, "character": 5}},
            "text": " = 2\n",
        },
    )
    last = client.published(_URI)
    while last["version"] != 7:
        last = client.published(_URI)
    assert last["diagnostics"] == []
    client.send("textDocument/didClose", {"textDocument": {"uri": _URI}})
    assert client.published(_URI)["diagnostics"] == []
    client.send("textDocument/didClose", {"textDocument": {"uri": _URI}})
    client.change(_URI, 8, {"text": "let = 1"})
    assert client.end() == 0
    assert client.heard == [] or all(not one["params"]["diagnostics"] for one in client.heard)
    said = log.read_text(encoding="utf-8")
    assert "not open" in said
    assert "version 4" in said


def test_two_documents_with_one_path(client: Client) -> None:
    client.initialize()
    other = "file:///project/./main%2Eharn"
    client.open(_URI, "let a = nothing\n")
    client.open(other, "let a = 1\n", 9)
    assert client.published(_URI)["diagnostics"]
    assert client.published(other)["diagnostics"] == []
    client.send("textDocument/didClose", {"textDocument": {"uri": other}})
    client.change(_URI, 2, {"text": "let b = 1\n"})
    while client.published(_URI)["version"] != 2:
        pass
    assert client.result("textDocument/documentSymbol", {"textDocument": {"uri": _URI}})[0]["name"] == "b"
    assert client.end() == 0


def test_a_request_that_waits_can_be_cancelled(client: Client) -> None:
    client.initialize()
    client.open(_URI, "let a = 1\n")
    request = {"jsonrpc": "2.0", "id": 500, "method": "textDocument/hover", "params": hover()}
    cancel = {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 500}}
    client.write(framed(request) + framed(cancel))
    assert code(client.answer(500)) == _CANCELLED
    # One that was answered, one that never was, and one without an id.
    for number in (500, "none", None):
        client.send("$/cancelRequest", {"id": number})
    client.send("$/cancelRequest")
    assert client.end() == 0


_FAILING = """
import sys
from harnpy.cli.process import take_streams
from harnpy.lsp import hover, server

def fail(*_):
    print("to standard output")
    raise ValueError("a secret of the inside")

hover.hover = server.diagnostics = fail
sys.exit(server.LanguageServer().run(*take_streams()))
"""


def test_a_feature_that_fails_says_so_and_no_more(popen: Popen, log: Path) -> None:
    with served(popen, log, ("-c", _FAILING)) as client:
        client.initialize()
        client.open(_URI, "let a = 1\n")
        answer = client.ask("textDocument/hover", hover())
        assert code(answer) == _INTERNAL
        assert "data" not in answer["error"]
        assert answer["error"]["message"].startswith("ValueError")
        assert "secret" not in str(answer)
        assert client.result("textDocument/documentSymbol", {"textDocument": {"uri": _URI}})
        assert client.end() == 0
    said = log.read_text(encoding="utf-8")
    assert "a secret of the inside" in said
    assert "to standard output" in said
