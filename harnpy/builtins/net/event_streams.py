"""Server-sent events, as a client receives them. Spec: 04 §21.5."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.bridge.live_http import response_bytes_of
from harnpy.builtins.bridge.live_transports import TimedOut, received, transports_of
from harnpy.builtins.net.http_arguments import ProgramDisk, options_of
from harnpy.builtins.net.transport_arguments import arriving, seconds_of
from harnpy.net.http.errors import HttpError
from harnpy.net.sse.decoding import Event
from harnpy.net.transports.reading import read_events
from harnpy.vm.declare.builtin import builtin as declare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.net.sse.reconnecting import Opened
    from harnpy.vm.values.objects import Stream, Value
    from harnpy.vm.vm import Vm

    Dict = dict[str, Value]

#: What all declarations here have in common.
builtin = partial(declare, family="streaming")


@builtin("sse_connect(method: string, url: string, opts?: dict) -> string", guarded=True)
def sse_connect(vm: Vm, method: str, url: str, opts: Value) -> str:
    """The handle of a stream of server-sent events, whose first connection is open.

    A connection that breaks is opened again, where it ended; see the option `reconnect`.

    Example:
        sse_mock("https://sse-connect.test/news", [{event: "news", data: "hi", id: "1"}])
        let feed = sse_connect("GET", "https://sse-connect.test/news")
        [sse_receive(feed).type, sse_receive(feed).data, sse_receive(feed)]  // ["open", "hi", nil]
    """
    options = options_of(vm, "sse_connect", opts)
    if not method:
        raise HttpError("sse_connect: method is required")
    if not url:
        raise HttpError("sse_connect: URL is required")
    asked = read_events(
        method, url, options, ProgramDisk(vm, "sse_connect"), response_bytes_of(vm), vm.world.random.random
    )
    streams = transports_of(vm).events
    return streams.mocked(asked) or vm.tasks.await_coroutine(streams.open(asked))


@builtin("sse_receive(h: any, timeout_ms?: any) -> dict")
def sse_receive(vm: Vm, h: Value, timeout_ms: Value) -> Dict | None:
    """What comes next: `{type: "open"}` for each connection, `{type: "event", event, data, id, retry_ms}`.

    `{type: "timeout"}` when nothing came in `timeout_ms`, by default without end; nil after the last event.

    Example:
        sse_mock("https://sse-receive.test/*", ["hi"])
        let feed = sse_connect("GET", "https://sse-receive.test/news")
        sse_receive(feed, 1000)  // {type: "open"}
    """
    inbox = transports_of(vm).events.get("sse_receive", h)
    item = received(vm, inbox, seconds_of("sse_receive", timeout_ms))
    if isinstance(item, TimedOut):
        return {"type": "timeout"}
    return None if item is None else _described(item)


@builtin("sse_events(h: any) -> stream")
def sse_events(vm: Vm, h: Value) -> Stream:
    """The events that come, as a stream: `{type: "event", event, data, id, retry_ms}`. `sse_close` ends it.

    Example:
        sse_mock("https://sse-events.test/*", ["a", "b"])
        let events = sse_events(sse_connect("GET", "https://sse-events.test/news"))
        stream.map(events, { event -> event.data }).to_list()  // ["a", "b"]
    """
    inbox = transports_of(vm).events.get("sse_events", h)
    return arriving(
        vm, "sse_events", inbox, lambda item: _described(item) if isinstance(item, Event) else None
    )


@builtin("sse_close(h: any) -> bool")
def sse_close(vm: Vm, h: Value) -> bool:
    """Close a stream of events; whether it was open.

    Example:
        sse_mock("https://sse-close.test/*", ["a"])
        let feed = sse_connect("GET", "https://sse-close.test/news")
        [sse_close(feed), sse_close(feed)]  // [true, false]
    """
    inbox = transports_of(vm).events.take("sse_close", h)
    if inbox is None:
        return False
    vm.tasks.await_coroutine(inbox.aclose())
    return True


def _described(item: Opened | Event) -> Dict:
    if not isinstance(item, Event):
        return {"type": "open"}
    return {"type": "event", **item._asdict()}
