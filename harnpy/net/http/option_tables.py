"""The options of requests, as tables. Spec: 04 §21.1, 09 §4.5."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.reading.option_tables import OptionTable

if TYPE_CHECKING:
    from collections.abc import Mapping

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

TABLES: Mapping[str, OptionTable] = {
    **dict.fromkeys(
        "http_get http_delete http_post http_put http_patch http_request http_session_request".split(),
        REQUEST,
    ),
    **dict.fromkeys(("http_download", "http_stream_open"), STREAM),
    "http_session": SESSION,
    "http_mock": MOCK,
    "http_mock_calls": MOCK_CALLS,
}
