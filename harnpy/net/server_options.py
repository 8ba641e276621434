"""The options of servers, routes and responses: tables, the functions that read them, and what can fail.

On the way to every check of a program: imports nothing heavy. Spec: 04 §21.5.
"""

from __future__ import annotations

from harnpy.faults import NamedFault
from harnpy.formats.display import type_name
from harnpy.formats.options import OptionTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    T = TypeVar("T")


class ServerFault(NamedFault):
    """A server, a route, a message or an option that can't be what is given."""


class HandlerFailed(Exception):
    """A function of the program failed; ``text`` is its error as the program would see it."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class OutOfTime(HandlerFailed):
    """A handler took longer than its ``milliseconds``."""

    def __init__(self, milliseconds: int) -> None:
        super().__init__(f"it took longer than {milliseconds} ms")
        self.milliseconds = milliseconds


def number_option(options: dict[str, Any], name: str, default: int, least: int = 0) -> int:
    """Return the int option ``name``, or ``default``. Raises ServerFault for another value."""
    value = _given(options, name, int, "an int")
    if value is None:
        return default
    if value < least:
        raise ServerFault(f"option `{name}` must be at least {least}, got {value}")
    return value


def flag_option(options: dict[str, Any], name: str, default: bool) -> bool:
    """Return the bool option ``name``, or ``default``. Raises ServerFault for another value."""
    value = _given(options, name, bool, "a bool")
    return default if value is None else value


def text_option(options: dict[str, Any], name: str, default: str) -> str:
    """Return the string option ``name``, or ``default``. Raises ServerFault for another value."""
    value = _given(options, name, str, "a string")
    return default if value is None else value


def _given(options: dict[str, Any], name: str, kind: type[T], words: str) -> T | None:
    value = options.get(name)
    if value is not None and type(value) is not kind:
        raise ServerFault(f"option `{name}` must be {words}, got {type_name(value)}")
    return value


SERVER = OptionTable("""
    max_body_bytes: int = 1048576 — how long the body of a request may be
    retain_raw_body: bool = true — whether handlers see the body's bytes, too
    ready: bool = true — whether it handles requests from the start
""")

ROUTE = OptionTable("""
    max_body_bytes: int — instead of the server's
    timeout_ms: int — how long the handler may take; then the response is 504
""")

REQUEST = OptionTable("""
    method: string = GET — in any case
    path: string = / — as in a URL; it may have a query
    query: string | dict | list — added to the path's: text, values by name, or {key, value} each
    headers: dict — values by name, strings or lists
    body, raw_body: string | bytes — what is sent
    remote_addr: string — the address of the client
    client_ip: string — by default the address without its port
""")

RESPONSE = OptionTable("""
    status: int = 200 — from 200 to 599
    headers: dict — values by name, strings or lists
""")

EDGE = OptionTable("""
    hsts_max_age_seconds: int = 31536000 — how long browsers use nothing but TLS; 0 for no such header
    hsts_include_subdomains: bool = false — also for subdomains
    hsts_preload: bool = false — browsers may have it in their lists
""")

LISTEN = OptionTable("""
    host: string = 127.0.0.1 — the address or name to listen at; 0.0.0.0 is every address of the machine
    port: int = 0 — 0 is any free one
    tls: dict — one of http_server_tls_*
    grace_ms: int = 10000 — how long running requests may go on when the server is shut down
    body_timeout_ms: int = 30000 — how long the body of a request may take; then the response is 408
    head_timeout_ms: int = 10000 — how long the head may take; then the connection is closed
    keep_alive_ms: int = 5000 — how long a connection may wait for its next request
    max_head_bytes: int = 65536 — how long the head of a request may be; then the response is 400
    max_connections: int — beyond, requests are answered with 503; by default any number
""")

STREAM = OptionTable("""
    max_event_bytes: int = 65536 — how long the frame of an event may be
    max_buffered_events: int = 256 — how many events may wait for the client; sending waits beyond
""")

EVENT = OptionTable("""
    data: any = "" — the text, or a value that is sent as JSON
    event: string — its name; clients read message when there is none
    id: string — what a client that comes back names as the last that it has seen
    retry_ms, retry: int — when a client comes back that lost the connection
""")
