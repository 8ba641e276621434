"""The options of requests, streams of events and WebSockets: their tables, and `Given`, which reads them.

On the way to every check of a program: imports no client and no asyncio. Spec: 04 §21.1, §21.5, 09 §4.5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.formats.display import display, type_name
from harnpy.formats.options import OptionTable
from harnpy.net.errors import HttpError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harnpy.formats.dicts import Dict

INNER = {
    "auth": OptionTable(
        """
        bearer: string — a token: `Authorization: Bearer <token>`
        basic: dict — user and password
        """,
        {
            "basic": OptionTable("""
                user: string — the name
                password: string — the password
            """)
        },
    ),
    "multipart": OptionTable("""
        name: string — the field's name
        value: string | bytes — its content
        value_base64: string — its content in Base64
        path: string — the file with its content
        filename: string — by default the name of the file at `path`
        content_type: string — by default application/octet-stream for what has a file name
    """),
    "retry": OptionTable("""
        max: int = 0 — attempts after the first
        backoff_ms: int = 1000 — the first pause; each is twice as long as the one before, up to 60 s
    """),
    "proxy": OptionTable("""
        url: string — the proxy
        no_proxy: string — hosts that are reached without it, separated by commas
    """),
    "proxy_auth": OptionTable("""
        user: string — the name
        pass, password: string — the password
    """),
    "tls": OptionTable("""
        ca_bundle_path: string — whom to trust instead of the system's authorities (PEM)
        client_cert_path: string — the certificate to show (PEM)
        client_key_path: string — its key (PEM)
        client_identity_path: string — certificate and key in one file (PEM)
        pinned_sha256: string | list — the SHA-256 of the certificates that the server may have, in hex
    """),
}

_COMMON = """
    timeout_ms, timeout: int = 30000 — how long an attempt may take, with its redirects and its body
    total_timeout_ms: int — the same, if given
    connect_timeout_ms: int — how long it may take to connect
    read_timeout_ms: int — how long nothing may come
    headers: dict — names in any case; after `auth`, which they override
    query: dict — added to the URL in the order of its keys; nil values are left out
    auth: string | dict — the value of `Authorization`, or {bearer}, or {basic: {user, password}}
    body: any — text, or bytes as they are; not with `multipart`
    multipart: list — the fields of a form
    retry: dict — when to try again
    retries: int — the same as retry.max
    backoff: int — the same as retry.backoff_ms
    retry_on: list = 408, 429, 500, 502, 503, 504 — statuses to try again after
    retry_methods: list = GET, HEAD, PUT, DELETE, OPTIONS — methods that are tried again
    respect_retry_after: bool = true — whether a 429 or 503 says how long to pause, up to 60 s
    follow_redirects: bool = true — whether redirects are followed
    max_redirects: int = 10 — how many
    max_bytes: int — how many the body may have, unpacked
    proxy: string | dict — the proxy for every request; by default those of the environment
    proxy_auth: dict — what it wants to know
    tls: dict — whom to trust, and how to be known
    decompress: bool = true — whether the body is unpacked as its content-encoding says
"""
_METHOD = "method: string = GET — the request's method\n"
_SESSION = "session: string — the session to send it in\n"

REQUEST = OptionTable(_COMMON + _SESSION, INNER)
STREAM = OptionTable(_COMMON + _SESSION + _METHOD, INNER)
SESSION = OptionTable(_COMMON, INNER)
MOCK = OptionTable(
    """
    status: int = 200 — the response's status
    body: string | bytes — its body
    headers: dict — its headers
    responses: list — responses for one call after the other; the last one stays
    """,
    {
        "responses": OptionTable("""
            status: int = 200 — the response's status
            body: string | bytes — its body
            headers: dict — its headers
        """)
    },
)
MOCK_CALLS = OptionTable("""
    redact_sensitive: bool = true — whether secrets are masked
    include_sensitive: bool = false — the opposite
""")

HTTP_TABLES: Mapping[str, OptionTable] = {
    **dict.fromkeys(
        "http_get http_delete http_post http_put http_patch http_request http_session_request".split(),
        REQUEST,
    ),
    **dict.fromkeys(("http_download", "http_stream_open"), STREAM),
    "http_session": SESSION,
    "http_mock": MOCK,
    "http_mock_calls": MOCK_CALLS,
}


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

TRANSPORT_TABLES: Mapping[str, OptionTable] = {
    "sse_connect": EVENTS,
    "websocket_connect": SOCKET,
    "websocket_send": MESSAGE,
}


# Reading one dict of options: a value of the wrong type is an error that names the option.


_LONGEST_MS = 1 << 40


class Given:
    """The options that the builtin ``name`` was given; nil reads as absent."""

    def __init__(self, name: str, given: Dict, path: str = "") -> None:
        self._name = name
        self._given = given
        self._path = path

    def value(self, *keys: str) -> Any:
        """Return the first of these options that is there, None when none is."""
        return next((self._given[key] for key in keys if self._given.get(key) is not None), None)

    def text(self, *keys: str) -> str | None:
        value = self.value(*keys)
        return None if value is None else display(value)

    def flag(self, key: str, default: bool) -> bool:
        value = self.value(key)
        if value is None:
            return default
        if type(value) is not bool:
            raise self.wrong(key, "a bool", value)
        return value

    def count(self, *keys: str, default: int) -> int:
        """Return a whole number that isn't negative."""
        value = self.value(*keys)
        if value is None:
            return default
        if type(value) is not int or value < 0:
            raise self.wrong(keys[0], "an int that isn't negative", value)
        return value

    def seconds(self, *keys: str, least: int = 1) -> float | None:
        """Return the seconds that so many milliseconds are."""
        value = self.value(*keys)
        if value is None:
            return None
        if type(value) not in (int, float) or not least <= value <= _LONGEST_MS:
            raise self.wrong(keys[0], f"milliseconds from {least} on", value)
        return float(value) / 1000

    def mapping(self, key: str) -> Dict:
        value = self.value(key)
        if value is None:
            return {}
        if type(value) is not dict:
            raise self.wrong(key, "a dict", value)
        return value

    def items(self, key: str) -> list[Any] | None:
        value = self.value(key)
        if value is not None and type(value) is not list:
            raise self.wrong(key, "a list", value)
        return value

    def inner(self, key: str) -> Given:
        return Given(self._name, self.mapping(key), f"{self._path}{key}.")

    def wrong(self, key: str, expected: str, value: Any) -> HttpError:
        shown = display(value) if type(value) in (int, float) else type_name(value)
        return HttpError(f"{self._name}: {self._path}{key} must be {expected}, got {shown}")
