"""Events that a server sends: their text, and responses that are streams of them. Spec: 04 §21.5."""

from __future__ import annotations

from harnpy.builtins.bridge.event_streams import streams_of
from harnpy.builtins.bridge.option_tables import check_options
from harnpy.builtins.bridge.server_options import server_options
from harnpy.net.server.events import Comment, event_of
from harnpy.text.display import display
from harnpy.vm.declare.builtin import builtin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.net.server.events import Event
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


@builtin("sse_event(event: any) -> string", family="streaming")
def sse_event(vm: Vm, event: Value) -> str:
    r"""The text of a server-sent event: `{data, event?, id?, retry_ms?}`, or its data alone.

    Example:
        sse_event({event: "tick", data: "a\nb", id: "7"})  // "id: 7\nevent: tick\ndata: a\ndata: b\n\n"
    """
    return _event(vm, "sse_event", event).frame()


@builtin("sse_server_response(options?: dict) -> dict", family="streaming")
def sse_server_response(vm: Vm, options: Value) -> dict[str, Any]:
    """A response that is a stream of events, for a handler to return.

    What is sent to it goes to the client. The handler's task, and the tasks that it started, live until the
    stream has ended.

    Example:
        sse_server_response().headers["content-type"]  // "text/event-stream; charset=utf-8"
    """
    return streams_of(vm).open(server_options(vm, "sse_server_response", options)).response()


@builtin("sse_server_send(response: dict, event: any) -> bool", family="streaming")
def sse_server_send(vm: Vm, response: Value, event: Value) -> bool:
    """Send an event, as `sse_event` takes it; waits while too many are on their way. False after the end.

    Example:
        let response = sse_server_response()
        sse_server_send(response, {data: {step: 1}})
        sse_server_mock_receive(response).data  // "{\\"step\\":1}"
    """
    given = _event(vm, "sse_server_send", event)
    return streams_of(vm).send(streams_of(vm).find(response), given)


@builtin('sse_server_heartbeat(response: dict, comment: string = "") -> bool', family="streaming")
def sse_server_heartbeat(vm: Vm, response: Value, comment: str) -> bool:
    """Send what clients ignore, so that nobody on the way takes the connection for dead. False after the end.

    Example:
        let response = sse_server_response()
        sse_server_heartbeat(response, "still here")
        sse_server_mock_receive(response)  // {type: "comment", comment: "still here"}
    """
    return streams_of(vm).send(streams_of(vm).find(response), Comment(comment))


@builtin("sse_server_flush(response: dict) -> bool", family="streaming")
def sse_server_flush(vm: Vm, response: Value) -> bool:
    """Wait until a client that reads the stream has been sent everything. False after the end.

    Example:
        sse_server_flush(sse_server_response())  // true
    """
    return streams_of(vm).flush(streams_of(vm).find(response))


@builtin("sse_server_close(response: dict) -> bool", family="streaming")
def sse_server_close(vm: Vm, response: Value) -> bool:
    """End the stream after what was sent. False when it had ended.

    Example:
        let response = sse_server_response()
        [sse_server_close(response), sse_server_close(response)]  // [true, false]
    """
    return streams_of(vm).find(response).close()


@builtin("sse_server_cancel(response: dict, reason?: string) -> bool", family="streaming")
def sse_server_cancel(vm: Vm, response: Value, reason: str | None) -> bool:
    """End the stream at once: what waits to be sent is dropped. False when it had ended.

    Example:
        let response = sse_server_response()
        sse_server_cancel(response, "enough")
        sse_server_status(response).cancel_reason  // "enough"
    """
    return streams_of(vm).find(response).cancel(reason)


@builtin("sse_server_cancelled(response: dict) -> bool", family="streaming")
def sse_server_cancelled(vm: Vm, response: Value) -> bool:
    """Whether the stream was cancelled, by the program or because the server shuts down.

    Example:
        sse_server_cancelled(sse_server_response())  // false
    """
    return streams_of(vm).find(response).cancelled


@builtin("sse_server_disconnected(response: dict) -> bool", family="streaming")
def sse_server_disconnected(vm: Vm, response: Value) -> bool:
    """Whether the client left before the stream ended.

    Example:
        let response = sse_server_response()
        sse_server_mock_disconnect(response)
        sse_server_disconnected(response)  // true
    """
    return streams_of(vm).find(response).disconnected


@builtin("sse_server_status(response: dict) -> dict", family="streaming")
def sse_server_status(vm: Vm, response: Value) -> dict[str, Any]:
    """What became of the stream: `{buffered_events, sent_events, flushed_events, closed, disconnected, …}`.

    Example:
        let response = sse_server_response()
        sse_server_send(response, "hi")
        sse_server_status(response).buffered_events  // 1
    """
    return streams_of(vm).find(response).status()


@builtin("sse_server_mock_receive(response: dict) -> dict", family="streaming")
def sse_server_mock_receive(vm: Vm, response: Value) -> dict[str, Any]:
    """What a client reads next: `{type: "event", …}`, `comment`, `close`, or `timeout` when nothing is there.

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


@builtin("sse_server_mock_disconnect(response: dict) -> bool", family="streaming")
def sse_server_mock_disconnect(vm: Vm, response: Value) -> bool:
    """Have the client of a test leave. False when the stream had ended.

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
