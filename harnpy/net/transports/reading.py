"""What a program asks for when it opens a stream of events or a WebSocket. Spec: 04 §21.5."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harnpy.net.http.errors import HttpError
from harnpy.net.http.reading import Given
from harnpy.net.http.request import read_request
from harnpy.net.sse import calls as sse
from harnpy.net.sse.decoding import Event
from harnpy.net.sse.reconnecting import Reconnecting
from harnpy.net.transports.mocks import MockedSocket
from harnpy.net.transports.option_tables import EVENT, SCRIPT
from harnpy.net.websockets import calls as websockets
from harnpy.net.websockets.messages import mocked
from harnpy.text.display import type_name
from harnpy.world.net.redaction import redacted_url

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harnpy.net.http.request import Disk
    from harnpy.reading.dicts import Dict

#: The bytes of an event or a message, unless an option says it.
_MOST = 1 << 20
_NO_RECONNECTING = Reconnecting(most=0)
_WEBSOCKET = re.compile("ws(?=s?://)", re.IGNORECASE)


def read_events(
    method: str, url: str, options: Dict, disk: Disk, cap: int | None, chance: Callable[[], float]
) -> sse.Asked:
    """``cap``: bytes that the embedder lets a response have. Raises `HttpError`."""
    name = "sse_connect"
    given = Given(name, options)
    headers = {"accept": "text/event-stream", "cache-control": "no-store", "accept-encoding": "identity"}
    request = read_request(
        name, method, url, _with_headers(options, headers, given.mapping("headers")), disk, None
    )
    return sse.Asked(
        request,
        _most(given, "max_event_bytes", cap),
        given.text("last_id"),
        _reconnecting(given, request.method, chance),
    )


def read_socket(url: str, options: Dict, disk: Disk, cap: int | None) -> websockets.Asked:
    """``cap``: bytes that the embedder lets a response have. Raises `HttpError`."""
    name = "websocket_connect"
    given = Given(name, options)
    if not _WEBSOCKET.match(url):
        raise HttpError(f"{name}: URL must start with ws:// or wss://, got '{redacted_url(url)}'")
    request = read_request(
        name,
        "GET",
        _WEBSOCKET.sub("http", url, 1),
        _with_headers(options, {}, given.mapping("headers")),
        disk,
        None,
    )
    request = replace(request, url=_to_websocket(request.url), canonical=_to_websocket(request.canonical))
    return websockets.Asked(request, _most(given, "max_message_bytes", cap))


def _to_websocket(url: str) -> str:
    return "ws" + url[len("http") :]


def _with_headers(options: Dict, usual: Dict, given: Dict) -> Dict:
    return {**options, "decompress": False, "headers": {**usual, **given}}


def _most(given: Given, key: str, cap: int | None) -> int:
    most = given.count(key, default=_MOST)
    return most if cap is None else min(most, cap)


def _reconnecting(given: Given, method: str, chance: Callable[[], float]) -> Reconnecting:
    value = given.value("reconnect")
    if value is None:
        # To ask for it again may be to do it again.
        return Reconnecting(chance=chance) if method == "GET" else _NO_RECONNECTING
    if type(value) is bool:
        return Reconnecting(always=True, chance=chance) if value else _NO_RECONNECTING
    if type(value) is not dict:
        raise given.wrong("reconnect", "a bool or a dict", value)
    inner = given.inner("reconnect")
    backoff = inner.seconds("backoff_ms", least=0)
    return Reconnecting(
        inner.count("max", default=5), 1.0 if backoff is None else backoff, always=True, chance=chance
    )


def mocked_events(events: Any) -> Sequence[Event]:
    """Return the events that `sse_mock` was given. Raises `HttpError`."""
    if type(events) is not list:
        raise HttpError(f"sse_mock: events must be a list, got {type_name(events)}")
    return [_event(event) for event in events]


def _event(value: Any) -> Event:
    if type(value) is str:
        return Event("message", value)
    if type(value) is not dict:
        raise HttpError(f"sse_mock: an event must be a string or a dict, got {type_name(value)}")
    EVENT.check("sse_mock", value)
    given = Given("sse_mock", value)
    return Event(
        given.text("event") or "message",
        given.text("data") or "",
        given.text("id"),
        None if given.value("retry_ms") is None else given.count("retry_ms", default=0),
    )


def mocked_socket(script: Any) -> MockedSocket:
    """Return what `websocket_mock` was given: messages, or `{messages, echo}`. Raises `HttpError`."""
    echo = False
    if type(script) is dict:
        SCRIPT.check("websocket_mock", script)
        given = Given("websocket_mock", script)
        script, echo = given.items("messages") or [], given.flag("echo", False)
    if type(script) is not list:
        raise HttpError(f"websocket_mock: messages must be a list, got {type_name(script)}")
    return MockedSocket([mocked(message) for message in script], echo)
