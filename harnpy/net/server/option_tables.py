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
