"""Streams of events of a program, from a server on this machine."""

from __future__ import annotations

import asyncio
import random
import threading
from typing import Any

import pytest

from harnpy import Vm
from harnpy.vm.errors import VmError
from tests.counts import COUNT
from tests.net.transports.loopback import Connection, served

#: How many events are sent over connections that break.
EVENTS = COUNT.streamed_events


def run(program: str, address: str = "") -> Any:
    return Vm().run_source(program.replace("URL", f"http://{address}/events"))


def event(number: int, more: str = "") -> bytes:
    return f"id: {number}\n{more}data: event {number}\n\n".encode()


def test_events_come_in_order_over_connections_that_break() -> None:
    """None is lost and none comes twice, though the connections break anywhere, also in an event."""
    chance = random.Random(7)
    connections: list[str | None] = []

    async def handle(connection: Connection) -> None:
        connections.append(connection.last_id)
        begin = 0 if connection.last_id is None else int(connection.last_id) + 1
        await connection.answer()
        await connection.chunk(b"retry: 0\n\n")
        end = min(begin + EVENTS // 10 + 1, EVENTS)
        for number in range(begin, end):
            await connection.chunk(event(number))
        if end == EVENTS:
            await connection.chunk(b"")
            return
        rest = event(end)
        await connection.chunk(rest[: chance.randrange(len(rest))])
        connection.break_off()

    program = """
      var next = 0
      for event in sse_events(sse_connect("GET", "URL")) {
        assert_eq(event.data, "event ${next}")
        assert_eq(event.id, "${next}")
        next = next + 1
      }
      return next
    """
    with served(handle) as address:
        assert run(program, address) == EVENTS
    assert len(connections) >= 9
    assert connections[0] is None


def test_a_slow_program_holds_the_server_up() -> None:
    sent, held, go_on = 0, threading.Event(), threading.Event()

    async def handle(connection: Connection) -> None:
        nonlocal sent
        await connection.answer()
        connection.writer.transport.set_write_buffer_limits(0)
        data = b"data: " + b"x" * 60000 + b"\n\n"
        for _ in range(600):
            try:
                await asyncio.wait_for(connection.chunk(data), None if go_on.is_set() else 0.1)
            except TimeoutError:
                held.set()
                await asyncio.to_thread(go_on.wait, 30)
            sent += 1
        await connection.chunk(b"")

    vm = Vm()

    def ahead() -> int | None:
        if not held.is_set():
            return None
        found = sent
        go_on.set()
        return found

    vm.register("ahead() -> int", ahead)
    program = """
      let feed = sse_connect("GET", "URL", {max_event_bytes: 65536})
      sse_receive(feed)
      var early = ahead()
      while early == nil { sleep_ms(1); early = ahead() }
      var count = 0
      for event in sse_events(feed) { count = count + 1 }
      return [early, count]
    """
    with served(handle) as address:
        early, count = vm.run_source(program.replace("URL", f"http://{address}/"))
    assert count == 600
    assert early < 300  # the system's buffers hold a few mebibytes


@pytest.mark.parametrize(
    ("status", "headers", "message"),
    [
        ("404 Not Found", [], "the server answered with status 404, not with events"),
        ("200 OK", ["Content-Type: text/html; x=y"], "type text/event-stream, got `text/html`"),
        ("200 OK", ["X: y"], "expected a response of type text/event-stream, got ``"),
        ("200 OK", ["Content-Type: text/event-stream", "Content-Encoding: gzip"], "encoded as gzip"),
    ],
)  # fmt: skip
def test_what_is_no_stream_of_events_is_refused(status: str, headers: list[str], message: str) -> None:
    async def handle(connection: Connection) -> None:
        await connection.answer(status, *headers, body=b"x")

    with served(handle) as address, pytest.raises(VmError, match="sse_connect: ") as caught:
        run('sse_connect("GET", "URL")', address)
    assert message in str(caught.value)


SHOWN = """
  fn shown(options) {
    return try {
      let feed = sse_connect("GET", "URL", options)
      var seen = []
      while true {
        let item = sse_receive(feed)
        if item == nil { return seen + ["end"] }
        seen = seen + [item?.data ?? item.type]
      }
    } catch (e) { seen_error(e) }
  }
  fn seen_error(e) { return [error_category(e), e] }
  return shown(OPTIONS)
"""


async def _breaks_without_ids(connection: Connection) -> None:
    await connection.answer()
    await connection.chunk(b"data: a\n\n")
    connection.break_off()


async def _ends(connection: Connection) -> None:
    await connection.answer()
    await connection.chunk(b"retry: 0\nid: 1\ndata: a\n\n")
    await connection.chunk(b"")


async def _ends_for_good(connection: Connection) -> None:
    if connection.number == 2:
        await connection.answer("204 No Content", body=b"")
    elif connection.number == 1:
        await connection.answer("503 Busy", body=b"")
    else:
        await _ends(connection)


async def _breaks_and_is_gone(connection: Connection) -> None:
    if connection.number:
        await connection.answer("503 Busy", body=b"")
    else:
        await connection.answer()
        await connection.chunk(b"retry: 0\nid: 1\ndata: a\n\n")
        connection.break_off()


async def _sends_too_much(connection: Connection) -> None:
    await connection.answer()
    await connection.chunk(b"id: 1\ndata: " + b"x" * 2000)
    await connection.reader.read()


async def _says_nothing(connection: Connection) -> None:
    await connection.answer()
    await connection.reader.read()


@pytest.mark.parametrize(
    ("handle", "options", "expected"),
    [
        (_ends, "nil", ["open", "a", "end"]),
        (_ends, "{reconnect: false}", ["open", "a", "end"]),
        (_ends_for_good, "{reconnect: true}", ["open", "a", "end"]),
        (_ends, "{reconnect: {max: 0}}", ["open", "a", "end"]),
        (_breaks_without_ids, "nil", ["transient_network", "connection closed"]),
        (_breaks_and_is_gone, "{reconnect: false}", ["transient_network", "connection closed"]),
        (_breaks_and_is_gone, "{reconnect: {max: 2}}", ["overloaded", "sse_receive: the server"]),
        (_sends_too_much, "{max_event_bytes: 1000}", ["generic", "event exceeded max_event_bytes (1000)"]),
        (_says_nothing, "{read_timeout_ms: 20}", ["timeout", "nothing came"]),
    ],
)  # fmt: skip
def test_how_streams_end(handle: Any, options: str, expected: list[str]) -> None:
    with served(handle) as address:
        found = run(SHOWN.replace("OPTIONS", options), address)
    assert found == expected or (found[0] == expected[0] and expected[1] in str(found[1])), found


def test_a_failure_of_a_stream_can_be_caught() -> None:
    program = """
      let events = sse_events(sse_connect("GET", "URL"))
      return [events.next().value.data, try { events.next() } catch (e) { error_category(e) }]
    """
    with served(_breaks_without_ids) as address:
        assert run(program, address) == ["a", "transient_network"]


def test_waiting_ends_after_its_time_and_at_a_deadline() -> None:
    go_on = threading.Event()

    async def handle(connection: Connection) -> None:
        await connection.answer()
        await asyncio.to_thread(go_on.wait, 30)
        await connection.chunk(event(1))
        await connection.chunk(b"")

    vm = Vm()

    vm.register("go_on() -> nil", go_on.set)
    program = """
      let feed = sse_connect("GET", "URL")
      let events = sse_events(feed)
      let first = [sse_receive(feed).type, sse_receive(feed, 0).type, sse_receive(feed, 5).type]
      let late = try { deadline 10ms { events.next() } } catch (e) { "late" }
      go_on()
      return first + [late, events.next().value.data, sse_receive(feed)]
    """
    with served(handle) as address:
        found = vm.run_source(program.replace("URL", f"http://{address}/"))
    assert found == ["open", "timeout", "timeout", "late", "event 1", None]


def test_a_program_s_end_closes_its_streams() -> None:
    closed = threading.Event()

    async def handle(connection: Connection) -> None:
        await connection.answer()
        await connection.chunk(event(1))
        await connection.reader.read()
        closed.set()

    with served(handle) as address:
        assert (
            run(
                'let feed = sse_connect("GET", "URL")\nsse_receive(feed)\nreturn sse_receive(feed).data',
                address,
            )
            == "event 1"
        )
        assert closed.wait(10)


def test_last_id_and_a_body_are_sent() -> None:
    heads: list[list[str]] = []

    async def handle(connection: Connection) -> None:
        heads.append(connection.head)
        await connection.answer()
        await connection.chunk(b"")

    with served(handle) as address:
        run(
            'return sse_connect("POST", "URL", {last_id: "7", body: "x", headers: {Accept: "a/b"}})',
            address,
        )
    assert heads[0][0].startswith("post /events ")
    assert {"last-event-id: 7", "accept: a/b", "accept-encoding: identity", "content-length: 1"} <= {
        *heads[0]
    }


def test_an_open_stream_hides_no_deadlock() -> None:
    """What is read ahead can't have a task go on that waits for something else."""

    async def handle(connection: Connection) -> None:
        await connection.answer()
        await connection.reader.read()

    program = 'sse_receive(sse_connect("GET", "URL"))\nreceive(channel("nobody", 1))'
    with served(handle) as address, pytest.raises(VmError, match="deadlock"):
        run(program, address)


def test_events_of_a_server_of_one_s_own() -> None:
    program = """
      let server = http_server()
      http_server_route(server, "GET", "/news", { request ->
        let answer = sse_server_response()
        let begin = to_int(http_header(request, "last-event-id") ?? "0") ?? 0
        spawn {
          for i in begin + 1 to begin + 3 { sse_server_send(answer, {id: i, data: "news ${i}", retry_ms: 0}) }
          sse_server_close(answer)
        }
        answer
      })
      let feed = sse_connect("GET", http_server_listen(server).url + "/news", {reconnect: true})
      var found = []
      for event in sse_events(feed) {
        found = found + [event.data]
        if len(found) == 7 { break }
      }
      http_server_shutdown(server)
      return found
    """
    assert run(program) == [f"news {number}" for number in range(1, 8)]
