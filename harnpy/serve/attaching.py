"""Clients that attach to a session of a server: how large their records may be, and how many there are.

Spec: 11 §1.3, §1.5.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from harnpy.serve.refusals import CONFLICT, INVALID, Refused
from harnpy.serve.streams import encoded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harnpy.session.live import LiveSession
    from harnpy.session.runtime import SessionRuntime

#: Characters of the longest name, bytes of the largest metadata, and how many a session has.
LONGEST_NAME: Final = 200
LARGEST_METADATA: Final = 4096
MOST_CLIENTS: Final = 100
#: The key of a record's metadata that says which WebSocket has attached the client.
CONNECTION: Final = "serve.connection"


def check_size(client: str, metadata: Mapping[str, Any] = {}) -> None:
    """Raise `Refused` for a record that would be too large."""
    if len(client) > LONGEST_NAME:
        what = f"`client` must have at most {LONGEST_NAME} characters, not {len(client)}"
        raise Refused(*INVALID, what)
    if metadata and len(encoded(metadata)) > LARGEST_METADATA:
        raise Refused(*INVALID, f"`metadata` must have at most {LARGEST_METADATA} bytes as JSON")


def make_room(runtime: SessionRuntime, id: str, client: str) -> None:
    """Detach the client that was heard of longest ago if there are too many for another one.

    Raises `Refused` where all were heard of lately.
    """
    live = runtime.get(id)
    records = live.view.clients
    if client in records or len(records) < MOST_CLIENTS:
        return
    oldest = min(records.values(), key=_seen)
    if not is_stale(live, oldest, runtime.controller_timeout):
        what = f"session '{id}' has {MOST_CLIENTS} clients: detach one of them first"
        raise Refused(*CONFLICT, what)
    runtime.detach(id, oldest["client_id"], reason="not heard of, and there are too many clients")


def detach(runtime: SessionRuntime, id: str, client: str, connection: str) -> None:
    """Detach a client, unless something else than this connection has attached it since."""
    record = runtime.get(id).view.clients.get(client)
    if record is not None and record["metadata"].get(CONNECTION) == connection:
        runtime.detach(id, client)


def is_stale(live: LiveSession, record: Mapping[str, Any], seconds: float) -> bool:
    """Return whether a client wasn't heard of for longer than so many seconds."""
    return live.clock.now() - _seen(record) > seconds


def _seen(record: Mapping[str, Any]) -> float:
    return datetime.fromisoformat(record["last_seen_at"]).astimezone(UTC).timestamp()
