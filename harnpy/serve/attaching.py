"""Clients that attach to a session of a server: how large their records may be, and how many there are.

Spec: 11 §1.3, §1.5.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from harnpy.serve.refusals import CONFLICT, INVALID, Refused
from harnpy.serve.shown import CLIENT_OWNER, OWN, client_owner
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
CONNECTION: Final = f"{OWN}connection"


def check_size(client: str, metadata: Mapping[str, Any] = {}) -> None:
    """Raise `Refused` for a record that would be too large."""
    if len(client) > LONGEST_NAME:
        what = f"`client` must have at most {LONGEST_NAME} characters, not {len(client)}"
        raise Refused(*INVALID, what)
    if metadata and len(encoded(metadata)) > LARGEST_METADATA:
        raise Refused(*INVALID, f"`metadata` must have at most {LARGEST_METADATA} bytes as JSON")
    if any(key.startswith(OWN) for key in metadata):
        raise Refused(*INVALID, f"`metadata.{OWN}…` is the server's")


def marked(metadata: Mapping[str, Any], principal: str, connection: str | None = None) -> dict[str, Any]:
    """Return the metadata of a client's record, with what the server notes there."""
    own = {CLIENT_OWNER: principal, CONNECTION: connection}
    return {**metadata, **{key: value for key, value in own.items() if value is not None}}


def check_owner(live: LiveSession, principal: str, client: str) -> None:
    """Raise `Refused` for a client of another principal."""
    record = live.view.clients.get(client)
    owner = None if record is None else client_owner(record)
    if owner not in (None, principal):
        what = f"client '{client}' of session '{live.id}' is one of '{owner}': take another id for yours"
        raise Refused(403, "forbidden", what)


def check_control(live: LiveSession, principal: str, timeout: float) -> None:
    """Raise `Refused` while a client of another principal is in control, and was heard of lately."""
    controller = live.view.clients.get(live.view.controller_id() or "")
    if controller is None or is_stale(live, controller, timeout):
        return
    owner = client_owner(controller)
    if owner != principal:
        name = controller["client_id"]
        who = f"client '{name}'" if owner is None else f"'{owner}' (client '{name}')"
        what = f"{who} controls session '{live.id}': to send, take it over with a client of yours"
        raise Refused(409, "not_controller", what)


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
