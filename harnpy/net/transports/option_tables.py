"""The options of streams of events and of WebSockets, as tables. Spec: 04 §21.5, 09 §4.5."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.net.http.option_tables import INNER
from harnpy.reading.option_tables import OptionTable

if TYPE_CHECKING:
    from collections.abc import Mapping

_CONNECTION = """
    timeout_ms, timeout: int = 30000 — how long it may take until the server answers
    connect_timeout_ms: int — how long it may take to connect
    headers: dict — names in any case; after `auth`, which they override
    query: dict — added to the URL in the order of its keys; nil values are left out
    auth: string | dict — the value of `Authorization`, or {bearer}, or {basic: {user, password}}
    proxy: string | dict — the proxy; by default those of the environment
    proxy_auth: dict — what it wants to know
    tls: dict — whom to trust, and how to be known
"""
_OF_CONNECTION = {name: INNER[name] for name in ("auth", "proxy", "proxy_auth", "tls")}

EVENTS = OptionTable(
    f"""{_CONNECTION}
    read_timeout_ms: int — how long nothing may come, before the connection counts as broken
    body: any — text, or bytes as they are
    follow_redirects: bool = true — whether redirects are followed
    max_redirects: int = 10 — how many
    max_event_bytes: int = 1048576 — how many an event may have
    last_id: string — the id of the event to go on after
    reconnect: bool | dict — when a connection that has ended is opened again
    """,
    {
        **_OF_CONNECTION,
        "reconnect": OptionTable("""
            max: int = 5 — attempts in a row that bring no event
            backoff_ms: int = 1000 — the first pause unless the server says how long; each is twice as long
        """),
    },
)
SOCKET = OptionTable(
    f"""{_CONNECTION}
    max_message_bytes: int = 1048576 — how many a message may have that comes
    """,
    _OF_CONNECTION,
)
MESSAGE = OptionTable("""
    type: string — text, binary, ping, pong or close; by default text, and binary for bytes
    code: int = 1000 — why it is closed
    reason: string — the same in words
""")
EVENT = OptionTable("""
    event: string = message — its type
    data: string — its data
    id: string — what to go on after
    retry_ms: int — how long to wait before a connection is opened again
""")
SCRIPT = OptionTable("""
    messages: list — what comes at once: strings, bytes, or dicts as they are received
    echo: bool = false — whether what is sent comes back
""")

TABLES: Mapping[str, OptionTable] = {
    "sse_connect": EVENTS,
    "websocket_connect": SOCKET,
    "websocket_send": MESSAGE,
}
