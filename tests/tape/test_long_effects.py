"""What stays open, on tapes: processes that are talked to, connections, listening (13 §1, §3).

Each program is recorded once; replayed it prints the same, and nothing happens outside.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

from harnpy import Vm
from harnpy.faults import MisuseError
from harnpy.tape import Recording, Replaying, TapeDiverged, TapeError, read_tape
from harnpy.tape.rules import BRANCHING
from harnpy.tape.worlds import TapedWorld
from harnpy.vm.errors import VmError
from harnpy.world import World
from harnpy.world.http import RealHttp, RealListening
from harnpy.world.streams import RealStreams
from tests.mcp.servers.sdk import server as sdk
from tests.net.transports.loopback import Connection, served
from tests.support import PATIENCE

# An outside that counts.


class Outside(World):
    """Servers of MCP that are processes, without any, and what else happens."""

    def __init__(self, is_there: bool = True) -> None:
        self.printed: list[str] = []
        streams = RealStreams(self.printed.append, self.printed.append)
        super().__init__(streams=streams, processes=self, http=_Http(self), listening=_Listening(self))  # type: ignore[arg-type]
        self.is_there = is_there
        self.happened: list[str] = []
        self.running: list[_Server] = []

    def note(self, what: str) -> None:
        assert self.is_there, f"{what}, in a replay"
        self.happened.append(what)

    async def start(self, argv: Any, cwd: str, env: Any = None, heard: Any = None) -> Any:
        self.note("process")
        if argv[0] == "none":
            raise FileNotFoundError(2, "No such file or directory", "none")
        self.running.append(_Server(self, heard))
        return self.running[-1]


class _Server:
    """A server that counts its calls; says something to standard error, and ends when it is told to."""

    def __init__(self, outside: Outside, heard: Callable[[str], object]) -> None:
        self.pid = 100 + len(outside.running)
        self._outside = outside
        self._heard = heard
        self._lines: asyncio.Queue[bytes] = asyncio.Queue()
        self._calls = 0
        self.is_over = False

    async def write(self, line: bytes) -> None:
        if self.is_over:
            raise BrokenPipeError
        message = json.loads(line)
        method = message["method"]
        self._outside.note(method)
        if method == "initialize":
            result: Any = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}
        elif method == "tools/list":
            tool = {"name": "count", "description": "Count", "inputSchema": {"type": "object"}}
            result = {"tools": [tool]}
        elif method == "tools/call":
            self._calls += 1
            self._heard(f"heard {self._calls}\n")
            if message["params"]["arguments"].get("end"):
                self.is_over = True
                self._lines.put_nowait(b"")
                return
            result = {"content": [{"type": "text", "text": f"{self.pid}: {self._calls}"}]}
        elif "id" in message:
            self._say({"id": message["id"], "error": {"code": -32601, "message": "no such method"}})
            return
        else:
            return
        self._say({"id": message["id"], "result": result})

    def _say(self, message: dict[str, Any]) -> None:
        self._lines.put_nowait(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def line(self) -> bytes:
        return await self._lines.get()

    async def last_words(self) -> str:
        return "I have had enough"

    async def stop(self) -> None:
        self.is_over = True


class _Http(RealHttp):
    def __init__(self, outside: Outside) -> None:
        super().__init__()
        self._outside = outside

    def behind(self, egress: Any) -> Any:
        found = _Http(self._outside)
        found._egress = egress
        return found

    def client(self, *args: Any, **options: Any) -> Any:
        client: Any = super().client(*args, **options)
        send = client._transport.handle_async_request

        async def counted(request: Any) -> Any:
            self._outside.note("request")
            return await send(request)

        client._transport.handle_async_request = counted
        return client


class _Listening(RealListening):
    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    async def listen(self, application: Any, place: Any) -> Any:
        self._outside.note("listen")
        return await super().listen(application, place)


def outcome(outside: Outside, run: Callable[..., object], *args: Any) -> str:
    """Return what a run prints, and how it ends."""
    try:
        end = f"= {run(*args)}\n"
    except VmError as error:
        end = f"! {error}\n"
    return "".join(outside.printed) + end


def recorded(source: str, tape: Path, outside: Outside | None = None) -> str:
    outside = outside or Outside()
    return outcome(outside, Vm(Recording(tape, outside)).run_source, source)


def replayed(tape: Path) -> str:
    outside = Outside(is_there=False)
    vm: Any = Vm(Replaying(tape, outside))
    return outcome(outside, vm.run_recorded)


class Branch(TapedWorld):
    """Goes on live where the steps end."""

    rules = BRANCHING


def branched(tape: Path, is_last: Callable[[Any], bool], outside: Outside) -> str:
    """Run the tape's program again, live behind the first step for which ``is_last`` is true."""
    read = read_tape(tape)
    number = next(n for n, step in enumerate(read.steps, 1) if is_last(step))
    facts = [step for step in read.steps[number:] if step.key.endswith(":env")]
    vm: Any = Vm(Branch(outside, tape=read, steps=[*read.steps[:number], *facts]))
    return outcome(outside, vm.run_recorded)


def asked(word: str) -> Callable[[Any], bool]:
    return lambda step: isinstance(step.output, dict) and word in str(step.output.get("asked"))


# Processes that are talked to.

STDIO = """
let c = mcp_connect("server", ["--now"])
println(mcp_call(c, "count", {}))
println(len(mcp_list_tools(c)))
println(mcp_call(c, "count", {}))
println(try { mcp_call(c, "count", {end: true}) })
println(try { mcp_call(c, "count", {}) })
println(try { mcp_connect("none", []) })
"""


def test_a_process_that_is_talked_to(tmp_path: Path) -> None:
    tape, outside = tmp_path / "run.tape", Outside()
    printed = recorded(STDIO, tape, outside)
    assert "heard 1\n100: 1\n1\n" in printed
    assert "I have had enough" in printed
    assert outside.happened.count("process") == 2
    assert replayed(tape) == printed
    with pytest.raises(TapeDiverged, match=r"at effect \d+: recorded was that it sends .*count"):
        Vm(Replaying(tape, Outside(is_there=False))).run_source(STDIO.replace('"count", {}', '"recount", {}'))


LOOP = """
let servers = [{name: "s", command: ["server"]}]
fn calls(n) { llm_mock({tool_calls: [{id: "c${n}", name: "s__count", arguments: {n: n}}]}) }
calls(1)
calls(2)
llm_mock({text: "end"})
let given = {provider: "mock", tool_format: "native", mcp_servers: servers}
let result = agent_loop("go", nil, given)
for m in result.transcript.messages { println("${m.role}: ${m.content}") }
"""


def test_a_loop_with_a_server_that_is_a_process(tmp_path: Path) -> None:
    tape, outside = tmp_path / "run.tape", Outside()
    printed = recorded(LOOP, tape, outside)
    assert "tool: 100: 1\n" in printed
    assert "tool: 100: 2\n" in printed
    assert outside.running[0].is_over
    assert replayed(tape) == printed


def test_a_branch_connects_anew(tmp_path: Path) -> None:
    source = """
    let c = mcp_connect("server", [])
    println(mcp_call(c, "count", {}))
    println("sure")
    sleep(1ms)
    println(mcp_call(c, "count", {}))
    println(mcp_call(c, "count", {}))
    """
    tape = tmp_path / "run.tape"
    assert "100: 1\nsure\nheard 2\n100: 2\n" in recorded(source, tape)
    outside = Outside()
    printed = branched(tape, lambda step: step.key.endswith(":sleep"), outside)
    assert "heard 1\n100: 1\nsure\nheard 1\n100: 1\nheard 2\n100: 2\n" in printed
    assert outside.happened.count("process") == 1


# Connections.


async def _news(connection: Connection) -> None:
    last = int(connection.last_id or 0)
    await connection.answer()
    for number in range(last + 1, last + 3):
        await connection.chunk(f"id: {number}\nretry: 0\ndata: news {number}\n\n".encode())
    connection.break_off()


EVENTS = """
let feed = sse_connect("GET", "URL")
var left = 6
for event in sse_events(feed) {
  println("${event.id}: ${event.data}")
  left = left - 1
  if left == 0 { break }
}
sse_close(feed)
println("closed")
"""


def test_streams_of_events(tmp_path: Path) -> None:
    tape, outside = tmp_path / "run.tape", Outside()
    with served(_news) as address:
        printed = recorded(EVENTS.replace("URL", f"http://{address}/"), tape, outside)
    assert [line[0] for line in printed.splitlines()] == ["1", "2", "3", "4", "5", "6", "c", "="]
    assert outside.happened.count("request") >= 3
    assert replayed(tape) == printed


def test_a_branch_takes_up_a_stream_behind_its_last_event(tmp_path: Path) -> None:
    tape, outside = tmp_path / "run.tape", Outside()
    with served(_news) as address:
        printed = recorded(EVENTS.replace("URL", f"http://{address}/"), tape)
        assert branched(tape, lambda step: "news 1" in str(step.output), outside) == printed
    assert outside.happened


async def _pieces(connection: Connection) -> None:
    path = connection.head[0].split()[1]
    if path == "/cut":
        connection.writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
        await connection.writer.drain()
        return
    if path == "/malformed":
        connection.writer.write(b"what?\r\n\r\n")
        await connection.writer.drain()
        return
    await connection.answer("200 OK", "Content-Type: text/plain")
    for number in range(3):
        await connection.chunk(f"piece {number}\n".encode())
    await connection.chunk(b"x" * 5_000_000 if path == "/long" else b"last\n")
    await connection.chunk(b"")


PIECES = """
let s = http_stream_open("URL/stream")
println(http_stream_info(s).status)
var text = ""
var piece = http_stream_read(s)
while piece != nil { text = text + bytes_to_string(piece); piece = http_stream_read(s) }
println(text)
println(len(http_get("URL/long").body))
println(http_get("URL/whole").body)
println(try { http_get("URL/long", {max_bytes: 10}) })
println(try { http_get("URL/cut") })
println(try { http_get("URL/malformed") })
"""


def test_bodies_in_pieces(tmp_path: Path) -> None:
    tape = tmp_path / "run.tape"
    with served(_pieces) as address:
        printed = recorded(PIECES.replace("URL", f"http://{address}"), tape)
    assert printed.startswith("200\npiece 0\npiece 1\npiece 2\nlast\n\n5000024\npiece 0\n")
    assert "more bytes than max_bytes" in printed
    assert "before the response was complete" in printed
    assert "malformed response from" in printed
    assert replayed(tape) == printed
    steps = read_tape(tape).steps
    whole = next(n for n, step in enumerate(steps) if asked("/whole")(step))
    assert "last" in str(steps[whole].output["ok"])  # it is one effect


@contextmanager
def sockets(handle: Callable[[ServerConnection], object]) -> Iterator[str]:
    def quiet(connection: ServerConnection) -> None:
        with suppress(ConnectionClosed):
            handle(connection)

    with serve(quiet, "127.0.0.1", 0, ping_interval=None, compression=None) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        try:
            yield "ws://{}:{}/".format(*running.socket.getsockname())
        finally:
            running.shutdown()
            thread.join(10)


def test_websockets(tmp_path: Path) -> None:
    def echo(connection: ServerConnection) -> None:
        for number, message in enumerate(connection):
            connection.send(f"{number}: {message!r}")
            if message == "bye":
                connection.close(4001, "enough")

    source = """
    let w = websocket_connect("URL")
    for text in ["one", "two"] { websocket_send(w, text); println(websocket_receive(w).data) }
    websocket_send(w, bytes_from_string("three"))
    println(websocket_receive(w))
    websocket_send(w, "bye")
    println(websocket_receive(w))
    println(websocket_receive(w))
    println(try { websocket_send(w, "more") })
    websocket_close(w)
    websocket_connect("URL")
    println(try { websocket_connect("URL".replace("ws:", "wss:")) })
    """
    tape = tmp_path / "run.tape"
    with sockets(echo) as url:
        printed = recorded(source.replace("URL", url), tape)
        assert "0: 'one'\n1: 'two'\n" in printed
        assert "enough" in printed
    assert replayed(tape) == printed
    other = read_tape(tape).job.body["files"]
    (text,) = other.values()
    with pytest.raises(TapeDiverged, match="recorded was that it sends text two, now it sends text 2"):
        Vm(Replaying(tape, Outside(is_there=False))).run_source(text.replace('"two"', '"2"'))


@pytest.mark.parametrize("is_json", [False, True])
def test_a_loop_with_a_server_at_a_url(tmp_path: Path, is_json: bool) -> None:
    """In a replay the server isn't there any more."""
    source = """
    let servers = [{name: "s", transport: "http", url: "URL"}]
    llm_mock({tool_calls: [{id: "c1", name: "s__add", arguments: {a: 1, b: 41}}]})
    llm_mock({tool_calls: [{id: "c2", name: "s__fail", arguments: {}}]})
    llm_mock({text: "end"})
    let given = {provider: "mock", tool_format: "native", mcp_servers: servers}
    let result = agent_loop("go", nil, given)
    for m in result.transcript.messages { println("${m.role}: ${m.content}") }
    """
    tape, outside = tmp_path / "run.tape", Outside()
    app = sdk.streamable_http_app(json_response=is_json)
    running = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, lifespan="on"))
    thread = threading.Thread(target=running.run)
    thread.start()
    try:
        deadline = time.monotonic() + PATIENCE
        while not running.started:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        port = running.servers[0].sockets[0].getsockname()[1]
        printed = recorded(source.replace("URL", f"http://127.0.0.1:{port}/mcp"), tape, outside)
    finally:
        running.should_exit = True
        thread.join(PATIENCE)
    assert "tool: 42\n" in printed
    assert "request" in outside.happened
    assert replayed(tape) == printed


# Listening.

SERVICE = """
let server = http_server()
http_server_route(server, "POST", "/add", { request ->
  println("asked ${http_header(request, "x-name")}: ${request.body}")
  {status: 201, body: "sum ${len(request.body)}"}
})
http_server_route(server, "GET", "/events", { _ ->
  let answer = sse_server_response()
  spawn {
    for i in 1 to 3 { sse_server_send(answer, {id: i, data: "news ${i}"}) }
    sse_server_close(answer)
  }
  answer
})
http_server_route(server, "POST", "/stop", { _ -> http_server_shutdown(server); "bye" })
let place = http_server_listen(server)
println("listening")
http_server_serve(server)
println("over")
"""


def _say(port: int, head: str, body: str = "") -> str:
    with closing(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)) as connection:
        lines = [
            head,
            "host: x",
            "x-name: ada",
            f"content-length: {len(body)}",
            "connection: close",
            "",
            body,
        ]
        connection.sendall("\r\n".join(lines).encode())
        said = b""
        while data := connection.recv(65536):
            said += data
    return said.decode()


class _Told(_Listening):
    """Tells a client where the program listens, once it does."""

    def __init__(self, outside: Outside, client: Callable[[int], object]) -> None:
        super().__init__(outside)
        self._client = client
        self.threads: list[threading.Thread] = []

    async def listen(self, application: Any, place: Any) -> Any:
        listener = await super().listen(application, place)
        self.threads.append(threading.Thread(target=self._client, args=(listener.port,)))
        self.threads[-1].start()
        return listener


def listening_to(client: Callable[[int], object]) -> Outside:
    outside = Outside()
    outside.listening = _Told(outside, client)
    return outside


def test_a_program_that_listens(tmp_path: Path) -> None:
    said: list[str] = []

    def client(port: int) -> None:
        said.append(_say(port, "POST /add HTTP/1.1", "one"))
        said.append(_say(port, "GET /events HTTP/1.1"))
        said.append(_say(port, "GET /none HTTP/1.1"))
        said.append(_say(port, "POST /stop HTTP/1.1"))

    tape = tmp_path / "run.tape"
    printed = recorded(SERVICE, tape, listening_to(client))
    assert printed.startswith("listening\nasked ada: one\nover\n")
    assert "201" in said[0]
    assert "sum 3" in said[0]
    assert "news 3" in said[1]
    assert "404" in said[2]
    assert replayed(tape) == printed
    edited = SERVICE.replace("sum ", "total ")
    with pytest.raises(TapeDiverged, match="recorded was that it sends"):
        Vm(Replaying(tape, Outside(is_there=False))).run_source(edited)


def test_a_branch_listens_anew(tmp_path: Path) -> None:
    said: list[str] = []

    def client(port: int) -> None:
        said.append(_say(port, "POST /add HTTP/1.1", "one"))
        said.append(_say(port, "POST /stop HTTP/1.1"))

    tape = tmp_path / "run.tape"
    printed = recorded(SERVICE, tape, listening_to(client))
    again = branched(tape, lambda step: ":out" in step.key and step.output[0] >= 9, listening_to(client))
    assert again == printed
    assert len(said) == 4
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    source = SERVICE.replace("listen(server)", f"listen(server, {{port: {port}}})")
    recorded(source, tape, listening_to(client))
    with closing(socket.create_server(("127.0.0.1", port))), pytest.raises(TapeError, match="can't listen"):
        branched(tape, lambda step: ":out" in step.key and step.output[0] >= 9, Outside())


class _Stopping:
    """Asks the process to stop as soon as a program wants to know."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.timers: list[threading.Timer] = []

    def before(self, begin: Callable[[Callable[[], None]], None], seconds: float) -> Callable[[], None]:
        self.timers.append(threading.Timer(0.01, lambda: begin(self.done.set)))
        self.timers[-1].start()
        return self.timers[-1].cancel


def test_that_it_is_asked_to_stop_is_an_effect(tmp_path: Path) -> None:
    source = SERVICE.replace(
        'println("listening")',
        """println("listening")
    http_server_on_shutdown(server, { _ -> println("shutting down"); exit(0) })""",
    )
    tape, outside = tmp_path / "run.tape", Outside()
    outside.stopping = stopping = _Stopping()
    printed = _ended(Vm(Recording(tape, outside)).run_source, outside, source)
    assert "shutting down\n" in printed
    again: Any = Vm(Replaying(tape, replaying := Outside(is_there=False)))
    assert _ended(again.run_recorded, replaying) == printed
    assert len(stopping.timers) == 1


def _ended(run: Callable[..., object], outside: Outside, *args: Any) -> str:
    from harnpy.vm.errors import ExitRequest

    with suppress(ExitRequest):
        run(*args)
    return "".join(outside.printed)


def test_a_program_in_a_loop_of_others_is_refused(tmp_path: Path) -> None:
    vm = Vm(Recording(tmp_path / "run.tape", Outside()))
    with pytest.raises(MisuseError, match="has a loop of its own"):
        asyncio.run(vm.run_async("return 1"))
    assert vm.run_source("return 1") == 1


def test_a_vm_may_run_in_another_thread_than_it_was_made_in(tmp_path: Path) -> None:
    tape, outside = tmp_path / "run.tape", Outside()
    vm = Vm(Recording(tape, outside))
    thread = threading.Thread(target=vm.run_source, args=(STDIO,))
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert any(step.key.endswith(":process") for step in read_tape(tape).steps)


@pytest.mark.parametrize("url", ["nowhere:x", "sqlite:/proc/none/x.db"])
def test_a_store_that_cannot_be_opened(tmp_path: Path, url: str) -> None:
    tape = tmp_path / "run.tape"
    source = f"""
    import {{ session_create, session_store }} from "std/session"
    println(try {{ session_store("{url}") }} catch (e) {{ e }})
    println(try {{ session_create({{id: "s", store: "{url}"}}) }} catch (e) {{ e }})
    """
    printed = recorded(source, tape)
    assert replayed(tape) == printed


def test_sessions_in_a_store(tmp_path: Path) -> None:
    """A replay has neither the store nor what is in it."""
    tape, store = tmp_path / "run.tape", tmp_path / "s.db"
    source = f"""
    import {{ session_create, session_messages }} from "std/session"
    let opts = {{store: "sqlite:{store}"}}
    println(session_create(opts + {{id: "s", seed: {{content: "Hi"}}}}).id)
    println(session_messages("s", opts).map({{ m -> m.content }}))
    """
    printed = recorded(source, tape)
    assert "[Hi]" in printed
    for file in tmp_path.glob("s.db*"):
        file.unlink()
    assert replayed(tape) == printed
    assert [each.name for each in tmp_path.iterdir()] == ["run.tape"]


def test_a_program_that_is_refused_before_it_runs(tmp_path: Path) -> None:
    tape = tmp_path / "run.tape"
    for _ in range(2):
        with pytest.raises(Exception, match="nowhere"):
            Vm(Recording(tape, Outside())).run_source("nowhere()")
    vm: Any = Vm(Replaying(tape, Outside(is_there=False)))
    with pytest.raises(Exception, match="nowhere"):
        vm.run_recorded()
