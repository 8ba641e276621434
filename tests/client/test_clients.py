"""`Client` and `AsyncClient`: requests, failures, and streams over connections that break. Spec: 11 §3."""

from __future__ import annotations

import inspect
import json
import logging
import pickle
import re
import subprocess
import sys
from random import Random
from typing import Any

import pytest
from msgspec.structs import fields

from harnpy.client import ApiError, Client
from harnpy.client.api_calls import Call
from harnpy.client.clients import Verb, Verbs
from harnpy.client.types import Chunk, Event, Turn
from tests.client.scripted import Answer, Asked, problem, stream
from tests.support import ROOT

TURN = {"key": "k", "status": "completed", "text": "Hello there."}
INFO = {
    **dict.fromkeys(("agent", "label", "created_at", "updated_at"), ""),
    **dict.fromkeys(("owner", "parent", "fork_seq", "messages"), None),
    "id": "s",
    "status": "active",
    "execution": "idle",
    "depth": 0,
    "cost": 0.0,
    "seq": 3,
    "revision": 1,
}


def event(seq: int, type: str = "message_added", turn: int | None = None, **data: Any) -> str:
    """An event as a stream has it."""
    shown = {"id": f"e{seq}", "seq": seq, "type": type, "time": "", "turn": turn, "cost": None, "data": data}
    return f"event: event\nid: {seq}\ndata: {json.dumps(shown)}\n\n"


def chunk(text: str, *, start: bool = False, turn: int = 4) -> str:
    return f"event: chunk\ndata: {json.dumps({'turn': turn, 'text': text, 'start': start})}\n\n"


# Requests.


def specified() -> set[tuple[str, str]]:
    """The requests in the table of the specification, `X` where something is named."""
    text = (ROOT / "docs/spec/11-serve.md").read_text(encoding="utf-8")
    table = text.partition("### 1.3")[2].partition("### 1.4")[0]
    found = set()
    for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE):
        root = "/v1/runs/{id}" if "/v1/runs" in row else "/v1/sessions/{id}"
        method = before = ""
        for code in re.findall("`([^`]*)`", row):
            if code[0] == "/":  # as the one before it, but for the last part
                path = before + code
            elif code[0] != "{":
                method, _, path = code.partition(" ")
                path = path.partition("?")[0].replace("…/{id}", root).replace("…", root)
            else:
                continue
            before = path.rpartition("/")[0]
            found.add((method, unnamed(path)))
    return found


def unnamed(path: str) -> str:
    return re.sub(r"\{\w+\}", "X", path)


def made() -> dict[tuple[str, str], list[Call[Any]]]:
    """The requests of the verbs, with everything given that can be."""
    found: dict[tuple[str, str], list[Call[Any]]] = {}
    for verb in vars(Verbs).values():
        if isinstance(verb, Verb):
            parameters = inspect.signature(verb.call).parameters.values()
            optional = {
                each.name: "X" for each in parameters if each.default is None and each.name in QUERIES
            }
            call = verb.call(*["X" for each in parameters if each.default is each.empty], **optional)
            found.setdefault((call.method, call.path), []).append(call)
    return found


#: Parameters of verbs that are parts of a query.
QUERIES = ("after", "agent", "limit", "order", "parent", "session", "status", "types")


def test_every_request_of_the_specification_is_a_verb() -> None:
    others = {("GET", path) for path in ("/healthz", "/metrics", "/v1/sessions/X/control")}
    assert set(made()) == specified() - others


def test_verbs_send_what_the_server_takes_and_read_what_it_returns() -> None:
    from harnpy.serve.operations import table

    verbs = made()
    for operation in table():
        for call in verbs.pop((operation.method, unnamed(operation.path))):
            assert type(call.body) in (operation.body, type(None)), call
            assert (
                set(call.query) == {field.name for field in fields(operation.query)} or call.method != "GET"
            ), call
            if call.part is not None:
                replies = {field.name: field.type for field in fields(operation.reply)}
                assert replies[call.part] == call.reply, call
            elif call.reply is not type(None) and call.key is None:
                assert operation.reply is not None
                assert issubclass(operation.reply, call.reply), call
    assert not verbs


def test_a_verb_sends_its_arguments_and_returns_the_reply(serve: Any, connect: Any) -> None:
    server = serve([Answer(body=TURN), Answer(body={"sessions": [], "next": "b"}), Answer(204)])
    client = connect(server.url + "/", "t0ken")
    assert client("send", "a/b", "hi", client="me", key="k").text == "Hello there."
    assert client("list", agent="helper", limit=2).next == "b"
    assert client("delete", "ä") is None
    send, listing, delete = server.asked
    assert (send.method, send.path) == ("POST", "/v1/sessions/a%2Fb/send")
    assert send.headers["authorization"] == "Bearer t0ken"
    assert send.headers["idempotency-key"] == "k"
    assert send.body["prompt"] == "hi"
    assert send.body["client"] == "me"
    assert send.body["wait"] is True
    assert listing.path == "/v1/sessions?agent=helper&limit=2"
    assert (delete.method, delete.path) == ("DELETE", "/v1/sessions/%C3%A4")
    with pytest.raises(ValueError, match="there is no id ''"):
        client("info", "")


def test_importing_the_package_imports_nothing() -> None:
    code = (
        "import sys, harnpy.client; print(sorted({'httpx2', 'msgspec', 'asyncio', 're'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# Failures.


def test_a_server_that_is_not_there_or_not_ours(serve: Any, connect: Any) -> None:
    with pytest.raises(
        ApiError, match=r"^there is no connection to http://127\.0\.0\.1:1: connection refused"
    ) as e:
        connect("http://127.0.0.1:1")("me")
    assert (e.value.status, e.value.code) == (0, "unreachable")
    server = serve(
        [Answer(404, "<html>", {"content-type": "text/html; charset=utf-8"}), Answer(body=[1])] * 2
    )
    with pytest.raises(ApiError, match=r"is no harnpy server: it returned 404 with text/html$"):
        connect(server.url)("me")
    with pytest.raises(ApiError, match=r"it returned 200 with application/json$") as e:
        connect(server.url)("me")
    assert e.value.code == "not_harnpy"
    with pytest.raises(ApiError, match=r"is no harnpy server"):
        connect(server.url).items("watch", "s", 0)
    deep = '{"principal": "a", "scopes": [], "more": ' + "[" * 1000 + "]" * 1000 + "}"
    server = serve([Answer(status, deep, {"content-type": "application/json"}) for status in (200, 404)])
    for _ in range(2):
        with pytest.raises(ApiError, match=r"is no harnpy server"):
            connect(server.url)("me")


@pytest.mark.parametrize(
    "url", ["127.0.0.1:4721", "ftp://a", "http://", "http://me@a", "http://a/signin?key=s3cret"]
)
def test_what_is_no_address_of_a_server(url: str) -> None:
    with pytest.raises(ValueError, match=r"^the address of a server ") as error:
        Client(url)
    assert "s3cret" not in str(error.value)


def test_a_token_is_shown_nowhere(serve: Any, connect: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    refusal = problem(401, "unauthorized", "this token isn't known")
    client = connect(serve([refusal]).url, "s3cret")
    with pytest.raises(ApiError, match=r"^this token isn't known$") as error:
        client("me")
    assert (error.value.status, error.value.code) == (401, "unauthorized")
    assert str(pickle.loads(pickle.dumps(error.value))) == "this token isn't known"
    shown = [repr(client.client), repr(vars(client.client)), caplog.text, repr(error.value)]
    assert not [text for text in shown if "s3cret" in text]
    with pytest.raises(ValueError, match=r"^the token has characters") as wrong:
        connect("http://a", "s3cret\n")
    assert "s3cret" not in str(wrong.value)


def test_a_send_is_repeated_with_its_key(serve: Any, connect: Any) -> None:
    """What wasn't carried out is asked for again, and what may have been, if that changes nothing."""
    late = problem(503, "draining", "the server ends", retry_after="0")
    server = serve(
        [Answer(None), Answer(body=TURN, cut=True), late, Answer(502, "<html>"), Answer(body=TURN)]
    )
    assert connect(server.url)("send", "s", "hi").text == "Hello there."
    keys = {asked.headers["idempotency-key"] for asked in server.asked}
    assert len(keys) == 1
    assert len(server.asked) == 5

    server = serve([late, Answer(None)])
    with pytest.raises(ApiError, match=r"broke before there was an answer$") as error:
        connect(server.url)("inject", "s", "hi")
    assert (error.value.code, len(server.asked)) == ("broken", 2)


def test_of_several_servers_the_next_one_goes_on(serve: Any, connect: Any) -> None:
    draining, good = problem(503, "draining", "the server ends"), Answer(body=TURN)
    first, other = serve([draining, stream(event(2)), Answer(None)]), serve([good, good, stream(event(3))])
    client = connect(["http://127.0.0.1:1", first.url, other.url])
    assert [client("send", "s", "hi").text for _ in range(2)] == ["Hello there."] * 2
    assert len(first.asked) == 1  # the others go where it went
    client = connect([first.url, "http://127.0.0.1:1", other.url])
    assert [item.seq for item in client.items("watch", "s", 1, most=2)] == [2, 3]
    assert other.asked[-1].headers["last-event-id"] == "2"
    with pytest.raises(ApiError, match=r"there is no connection to http://127\.0\.0\.1:2"):
        connect(["http://127.0.0.1:1", "http://127.0.0.1:2"])("me")
    with pytest.raises(ValueError, match=r"^the address of a server "):
        connect([])


def test_patience_ends(serve: Any, connect: Any) -> None:
    server = serve(lambda asked: problem(429, "rate_limited", "too many requests", retry_after="9"))
    with pytest.raises(ApiError, match=r"^too many requests$"):
        connect(server.url, patience=8)("me")
    assert len(server.asked) == 1
    server = serve(lambda asked: stream(""))
    with pytest.raises(ApiError, match=r"ends its streams before they are over$"):
        connect(server.url, patience=0).items("watch", "s", 0)


# Streams.


def test_a_watch_loses_nothing_and_doubles_nothing(serve: Any, connect: Any) -> None:
    """Connections end or break anywhere, also within an event; some send again what was there already."""
    chance, last = Random(34), 60
    log = {seq: event(seq, role="user", content="ü" * chance.randrange(9)) for seq in range(1, last + 1)}

    def answer(asked: Asked) -> Answer:
        after = int(asked.headers["last-event-id"])
        assert asked.headers["accept"] == "text/event-stream"
        begin = max(1, after + 1 - chance.randrange(3))
        text = ": hello\n\n" + "".join(log[seq] for seq in range(begin, last + 1))
        if after >= last - 3:
            return stream(text + "event: gone\ndata: {}\n\n")
        size = chance.randrange(len(log[begin]) * 8)
        return stream(text.encode()[:size].decode(errors="ignore"), cut=chance.random() < 0.7)

    server = serve(answer)
    found = connect(server.url).items("watch", "s", 0)
    assert [each.seq for each in found] == [*log]
    assert len(server.asked) > 10


def test_a_watch_without_a_place_begins_with_what_comes(serve: Any, connect: Any) -> None:
    """Chunks come when they are asked for; after a reconnect, the text so far."""
    parts = [chunk("Hel", start=True) + chunk("lo"), chunk("Hello th", start=True) + event(4) + event(5)]
    answers = [Answer(body=INFO), stream(parts[0], cut=True), stream(parts[1])]
    server = serve(answers)
    found = connect(server.url).items("watch", "s", chunks=True, most=5)
    assert [each.text if isinstance(each, Chunk) else each.seq for each in found] == [
        "Hel",
        "lo",
        "Hello th",
        4,
        5,
    ]
    assert [asked.headers.get("last-event-id") for asked in server.asked] == [None, "3", "3"]
    gone = problem(404, "not_found", "session 's' was not found")
    found = connect(serve([stream(event(4), cut=True), gone]).url).items("watch", "s", 3)
    assert [each.seq for each in found] == [4]
    (first,) = connect(serve(answers).url).items("watch", "s", most=1)
    assert isinstance(first, Event)


def test_a_stream_yields_each_piece_once(serve: Any, connect: Any) -> None:
    """Over connections that break, steps, and what others say meanwhile; then the turn."""
    begun = event(4, "turn_started", 4, key="serve:k") + event(5, turn=4, role="user", content="hi")
    foreign = event(6, role="assistant", content="an aside")
    calls = event(8, turn=4, role="assistant", content="Let me look.", tool_calls=[{}])
    server = serve([
        stream("", cut=True),
        stream(begun + chunk("Let ", start=True) + foreign + chunk("me "), cut=True),
        # What came meanwhile is in the log.
        stream(calls + chunk("Hello ", start=True), cut=True),
        stream(chunk("Hello th", start=True)),
        stream(chunk("Hello there", start=True) + event(9, turn=4, role="assistant", content="Hello there.")
        + f"event: turn\ndata: {json.dumps(TURN)}\n\n"),
    ])  # fmt: skip
    *pieces, turn = connect(server.url).items("stream", "s", "hi", key="k")
    assert pieces == ["Let ", "me ", "look.", "Hello ", "th", "ere", "."]
    assert isinstance(turn, Turn)
    assert {asked.headers["idempotency-key"] for asked in server.asked} == {"k"}
    assert [asked.headers.get("last-event-id") for asked in server.asked] == [None, None, "6", "8", "8"]
    assert not server.asked[0].body["wait"]
