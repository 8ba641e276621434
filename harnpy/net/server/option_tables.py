"""The options of servers, routes, requests that tests make, and responses. Spec: 04 §21.5."""

from __future__ import annotations

from harnpy.reading.option_tables import OptionTable

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
