"""Events that a server sends: their text, the streams of a program, the tasks that wait for their clients.

Spec: 04 §21.5.
"""

from __future__ import annotations

import re
from functools import partial

from harnpy.builtins.options import check_options, server_options
from harnpy.formats.display import display
from harnpy.net.server_events import Comment, EventStream, event_of
from harnpy.net.server_options import ServerFault
from harnpy.vm.declare import builtin as declare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.net.server_events import Event
    from harnpy.vm.run.tasks import Task
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

builtin = partial(declare, family="streaming")

_PREFIX = "sse_response_"
_ID = re.compile(_PREFIX + "([1-9][0-9]{0,17})")


class EventStreams:
    """Those of one program, by id; one that a client has read to its end is forgotten."""

    def __init__(self, vm: Vm) -> None:
        self._vm = vm
        self._made = 0
        self._by_id: dict[str, EventStream] = {}

    def open(self, options: dict[str, Any]) -> EventStream:
        self._made += 1
        stream = EventStream(f"{_PREFIX}{self._made}", options)
        self._by_id[stream.id] = stream
        return stream

    def find(self, handle: Value) -> EventStream:
        """Return the stream of a response, or of its id. Raises ServerFault."""
        id = handle.get("id") if type(handle) is dict else handle
        if type(id) is not str or not self._was_made(id):
            raise ServerFault(f"there is no stream {display(id)}; `sse_server_response` makes one")
        return self._by_id.get(id) or _ended(id)

    def get(self, id: Value) -> EventStream | None:
        """Return the stream of an id; None for one that there isn't, or that has been forgotten."""
        return self._by_id.get(id) if type(id) is str else None

    def send(self, stream: EventStream, item: Event | Comment) -> bool:
        """Send an event once there is room for it. Return False when the stream has ended."""
        while stream.is_open() and stream.is_full():
            self._wait("for a client to read", stream)
        if not stream.is_open():
            return False
        stream.put(item)
        return True

    def flush(self, stream: EventStream) -> bool:
        """Wait until a client that reads the stream has got everything. Return False when it has ended."""
        while stream.attached and stream.is_open() and not stream.is_empty():
            self._wait("for a client to read", stream)
        return stream.is_open()

    def follow(self, stream: EventStream) -> None:
        """Wait until a stream that a client reads has ended, and forget it."""
        try:
            while stream.is_open():
                self._wait("for the end of", stream)
        finally:
            self._by_id.pop(stream.id, None)

    def _was_made(self, id: str) -> bool:
        found = _ID.fullmatch(id)
        return found is not None and int(found[1]) <= self._made

    def _wait(self, why: str, stream: EventStream) -> None:
        task = self._vm.tasks.current
        resume = partial(self._resume, task)
        stream.waiting.append(resume)
        try:
            self._vm.tasks.suspend((why, [stream]))
        finally:
            # One that was interrupted waits no more, and a stream that nobody reads may never change.
            if resume in stream.waiting:
                stream.waiting.remove(resume)

    def _resume(self, task: Task) -> None:
        self._vm.tasks.resume(task)
        self._vm.tasks.wake()


def streams_of(vm: Vm) -> EventStreams:
    return vm.state(EventStreams, lambda: EventStreams(vm))


def _ended(id: str) -> EventStream:
    stream = EventStream(id, {})
    stream.close()
    return stream


@builtin("sse_event(event: any) -> string")
def sse_event(vm: Vm, event: Value) -> str:
    r"""Return the text of a server-sent event: `{data, event?, id?, retry_ms?}`, or its data alone.

    Example: sse_event({event: "tick", data: "a\nb", id: "7"})  // "id: 7\nevent: tick\ndata: a\ndata: b\n\n"
    """
    return _event(vm, "sse_event", event).frame()


@builtin("sse_server_response(options?: dict) -> dict")
def sse_server_response(vm: Vm, options: Value) -> dict[str, Any]:
    """Return a response that is a stream of events, to be returned by a handler.

    The client receives what is sent to it. The handler's task, and the tasks that it started, live until the
    stream has ended.

    Example: sse_server_response().headers["content-type"]  // "text/event-stream; charset=utf-8"
    """
    return streams_of(vm).open(server_options(vm, "sse_server_response", options)).response()


@builtin("sse_server_send(response: dict, event: any) -> bool")
def sse_server_send(vm: Vm, response: Value, event: Value) -> bool:
    """Send an event in the form of `sse_event`; wait while too many are unsent. False after the end.

    Example:
        let response = sse_server_response()
        sse_server_send(response, {data: {step: 1}})
        sse_server_mock_receive(response).data  // "{\\"step\\":1}"
    """
    given = _event(vm, "sse_server_send", event)
    return streams_of(vm).send(streams_of(vm).find(response), given)


@builtin('sse_server_heartbeat(response: dict, comment: string = "") -> bool')
def sse_server_heartbeat(vm: Vm, response: Value, comment: str) -> bool:
    """Send something that clients ignore, to keep the connection from being dropped. False after the end.

    Example:
        let response = sse_server_response()
        sse_server_heartbeat(response, "still here")
        sse_server_mock_receive(response)  // {type: "comment", comment: "still here"}
    """
    return streams_of(vm).send(streams_of(vm).find(response), Comment(comment))


@builtin("sse_server_flush(response: dict) -> bool")
def sse_server_flush(vm: Vm, response: Value) -> bool:
    """Wait until a client that reads the stream has received everything. False after the end.

    Example: sse_server_flush(sse_server_response())  // true
    """
    return streams_of(vm).flush(streams_of(vm).find(response))


@builtin("sse_server_close(response: dict) -> bool")
def sse_server_close(vm: Vm, response: Value) -> bool:
    """End the stream after everything has been sent. False when it had ended.

    Example:
        let response = sse_server_response()
        [sse_server_close(response), sse_server_close(response)]  // [true, false]
    """
    return streams_of(vm).find(response).close()


@builtin("sse_server_cancel(response: dict, reason?: string) -> bool")
def sse_server_cancel(vm: Vm, response: Value, reason: str | None) -> bool:
    """End the stream at once and drop what hasn't been sent. False when it had ended.

    Example:
        let response = sse_server_response()
        sse_server_cancel(response, "enough")
        sse_server_status(response).cancel_reason  // "enough"
    """
    return streams_of(vm).find(response).cancel(reason)


@builtin("sse_server_cancelled(response: dict) -> bool")
def sse_server_cancelled(vm: Vm, response: Value) -> bool:
    """Return true if the stream was cancelled, by the program or because the server shuts down.

    Example: sse_server_cancelled(sse_server_response())  // false
    """
    return streams_of(vm).find(response).cancelled


@builtin("sse_server_disconnected(response: dict) -> bool")
def sse_server_disconnected(vm: Vm, response: Value) -> bool:
    """Return true if the client left before the stream ended.

    Example:
        let response = sse_server_response()
        sse_server_mock_disconnect(response)
        sse_server_disconnected(response)  // true
    """
    return streams_of(vm).find(response).disconnected


@builtin("sse_server_status(response: dict) -> dict")
def sse_server_status(vm: Vm, response: Value) -> dict[str, Any]:
    """Return the stream's state: `{buffered_events, sent_events, flushed_events, closed, disconnected, …}`.

    Example:
        let response = sse_server_response()
        sse_server_send(response, "hi")
        sse_server_status(response).buffered_events  // 1
    """
    return streams_of(vm).find(response).status()


@builtin("sse_server_mock_receive(response: dict) -> dict")
def sse_server_mock_receive(vm: Vm, response: Value) -> dict[str, Any]:
    """Return what a client reads next: `{type: "event", …}`, `comment`, `close`, or `timeout` for nothing.

    Example:
        let response = sse_server_response()
        sse_server_send(response, {event: "tick", data: "1"})
        sse_server_mock_receive(response).event  // "tick"
    """
    stream = streams_of(vm).find(response)
    item = stream.take()
    if item is not None:
        return item.shown()
    return {"type": "timeout" if stream.is_open() else "close"}


@builtin("sse_server_mock_disconnect(response: dict) -> bool")
def sse_server_mock_disconnect(vm: Vm, response: Value) -> bool:
    """Disconnect a test's client. False when the stream had ended.

    Example:
        let response = sse_server_response()
        sse_server_mock_disconnect(response)
        sse_server_send(response, "hi")  // false
    """
    return streams_of(vm).find(response).disconnect()


def _event(vm: Vm, builtin: str, event: Value) -> Event:
    if type(event) is dict:
        check_options(vm, builtin, event)
    return event_of(event if type(event) in (dict, list, str) or event is None else display(event))
