"""Which servers a URL names, before anybody connects to them. Spec: 04 §21.4."""

from __future__ import annotations

import psycopg
from psycopg.conninfo import conninfo_to_dict

_PORT = 5432


def servers(url: str) -> list[tuple[str, int]] | None:
    """Return hosts and ports as `libpq` reads the URL; a host that is a path is a socket of this machine.

    None or nothing when it leaves them to the environment or to a file of services, or is no such URL.
    """
    try:
        known = conninfo_to_dict(url)
        ports = [int(port or _PORT) for port in str(known.get("port") or "").split(",")]
    except (psycopg.Error, ValueError):
        return None
    # With both, the addresses are what is connected to, and the names what they are called.
    lists = [str(known[key]).split(",") for key in ("host", "hostaddr") if known.get(key)]
    found: list[tuple[str, int]] = []
    for hosts in lists:
        if not all(hosts) or len(ports) not in (1, len(hosts)):
            return None
        found += zip(hosts, ports if len(ports) > 1 else ports * len(hosts), strict=True)
    return None if "service" in known else found
