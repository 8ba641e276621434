"""Live clients: who is attached to a session, and which one of them may steer it. Spec: 08 §1.10.

A session has any number of observers and at most one controller. Who is attached is a view of the log:
the event of an attach, takeover, detach or heartbeat carries in its metadata the records that it changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.formats.dicts import boolean, detached, mapping, string
from harnpy.session import events as kinds
from harnpy.session.errors import InvalidArgument
from harnpy.session.events import LIVE_CLIENTS, EventDraft
from harnpy.session.transcript import lifecycle_event
from harnpy.session.verbs import check, inject_shared, not_blank, read_options
from harnpy.world.clock import rfc3339

if TYPE_CHECKING:
    from harnpy.formats.dicts import Dict
    from harnpy.session.log import Session
    from harnpy.session.open_sessions import Registry
    from harnpy.session.view import View

OBSERVER, CONTROLLER = "observer", "controller"

_RIGHTS = ("can_inject_prompt", "can_route_permission")
_METADATA = {"metadata": mapping}
_TAKEOVER = {**_METADATA, **dict.fromkeys(_RIGHTS, boolean)}
_ATTACH = {"mode": string, "takeover": boolean, **_TAKEOVER}
_DETACH = {"reason": string, **_METADATA}


def live_clients(registry: Registry, id: str) -> list[Dict]:
    """Return the records of the attached clients, in the order in which they came."""
    view = registry.find(id).session.view
    return [detached(record) for record in view.clients.values()]


def attach(registry: Registry, id: str, client_id: str, opts: Dict | None = None) -> Dict:
    """Attach a client, or change an attached one. Return what happened.

    ``opts``: mode (observer), takeover (False), metadata, can_inject_prompt, can_route_permission
    (True, for controllers). Refuses if there is another controller, unless ``takeover``.
    """
    session = _asked(registry, id, client_id)
    options = read_options(opts, _ATTACH)
    mode = options.get("mode", OBSERVER)
    if mode not in (OBSERVER, CONTROLLER):
        expected = f"{OBSERVER}, {CONTROLLER}"
        raise InvalidArgument(f"invalid mode '{mode}' (expected one of: {expected})")
    rival = _rival(session.view, client_id) if mode == CONTROLLER else None
    if rival is not None and not options.get("takeover"):
        raise InvalidArgument(
            f"session '{id}' already has controller '{rival}' "
            "(pass takeover: true or use agent_session_takeover)",
        )
    return _attach(registry, session, client_id, mode, options, "attach" if rival is None else "takeover")


def takeover(registry: Registry, id: str, client_id: str, opts: Dict | None = None) -> Dict:
    """Attach a client as the controller. The former controller becomes an observer."""
    session = _asked(registry, id, client_id)
    return _attach(registry, session, client_id, CONTROLLER, read_options(opts, _TAKEOVER), "takeover")


def detach(registry: Registry, id: str, client_id: str, opts: Dict | None = None) -> Dict:
    """Remove a client. A controller leaves no successor. ``opts``: reason, metadata."""
    session = _asked(registry, id, client_id)
    options = read_options(opts, _DETACH)
    record = _attached(session, client_id)
    return _note(registry, session, "detach", record, {client_id: None}, options)


def heartbeat(registry: Registry, id: str, client_id: str, opts: Dict | None = None) -> Dict:
    """Record that a client is still there. ``opts``: metadata, merged over the record's."""
    session = _asked(registry, id, client_id)
    options = read_options(opts, _METADATA)
    record = dict(_attached(session, client_id))
    record["metadata"] = {**record["metadata"], **options.get("metadata", {})}
    record["last_seen_at"] = _stamp(registry)
    return _note(registry, session, "heartbeat", record, {client_id: record}, options)


def client_inject_prompt(
    registry: Registry, id: str, client_id: str, content: Any, opts: Dict | None = None
) -> None:
    """Append a user message on behalf of the controller. ``content``: text or blocks."""
    if not ((isinstance(content, str) and content.strip()) or (isinstance(content, list) and content)):
        raise InvalidArgument("`content` must be a non-empty string or list of content blocks")
    session = _asked(registry, id, client_id)
    options = read_options(opts, _METADATA)
    _entitled(registry, session, client_id, "can_inject_prompt", "prompt-injection")
    origin = {"live_session": {"client_id": client_id, "mode": CONTROLLER}}
    metadata = {**options.get("metadata", {}), **origin}
    inject_shared(registry, id, {"role": "user", "content": detached(content), "metadata": metadata})


def route_permission(
    registry: Registry, id: str, client_id: str, request: Dict, opts: Dict | None = None
) -> Dict:
    """Record that the controller handles a permission request."""
    check("request", request, mapping)
    session = _asked(registry, id, client_id)
    options = read_options(opts, _METADATA)
    _entitled(registry, session, client_id, "can_route_permission", "permission-routing")
    routed = {"client_id": client_id, "request": detached(request), "routed_at": _stamp(registry)}
    text = f"route_permission {client_id}"
    note = lifecycle_event("live_session_permission_route", text, metadata={**routed, **options})
    registry.touch(id)
    session.record(kinds.TRANSCRIPT_EVENT, note)
    return {"ok": True, "session_id": id, **detached(routed)}


def _asked(registry: Registry, id: str, client_id: str) -> Session:
    check("client_id", client_id, string)
    not_blank("client_id", client_id)
    return registry.find(id).session


def _attach(
    registry: Registry, session: Session, client_id: str, mode: str, options: Dict, action: str
) -> Dict:
    now = _stamp(registry)
    known = session.view.clients.get(client_id, {})
    record: Dict = {
        "client_id": client_id,
        "mode": mode,
        "attached_at": known.get("attached_at", now),
        "last_seen_at": now,
        "metadata": options.get("metadata", known.get("metadata", {})),
    }
    record |= {right: mode == CONTROLLER and options.get(right, True) for right in _RIGHTS}
    changed: dict[str, Dict | None] = {client_id: record}
    rival = _rival(session.view, client_id) if mode == CONTROLLER else None
    if rival is not None:
        changed[rival] = {**session.view.clients[rival], **_observing()}
    return _note(registry, session, action, record, changed, options)


def _note(
    registry: Registry,
    session: Session,
    action: str,
    record: Dict,
    changed: dict[str, Dict | None],
    options: Dict,
) -> Dict:
    """Append the event of a change. Return the verb's result."""
    previous = session.view.controller_id()
    following = _following(previous, changed)
    client_id, mode = record["client_id"], record["mode"]
    metadata: Dict = {
        "action": action,
        "client_id": client_id,
        "mode": mode,
        "previous_controller_id": previous,
        "live_controller_id": following,
        **{key: options[key] for key in ("reason", "metadata") if key in options},
    }
    event = lifecycle_event("live_session_client", f"{action} {client_id}", metadata=metadata)
    registry.touch(session.id)
    session.write(EventDraft(kinds.TRANSCRIPT_EVENT, event, metadata={LIVE_CLIENTS: changed}))
    return {
        "ok": True,
        "session_id": session.id,
        "client_id": client_id,
        "mode": mode,
        "client": detached(record),
        "live_controller_id": following,
        "previous_controller_id": previous,
    }


def _entitled(registry: Registry, session: Session, client_id: str, right: str, words: str) -> None:
    record = _attached(session, client_id)
    if record["mode"] != CONTROLLER:
        raise InvalidArgument(f"client '{client_id}' is not the active controller of session '{session.id}'")
    if not record[right]:
        raise InvalidArgument(f"client '{client_id}' has no {words} rights on session '{session.id}'")


def _stamp(registry: Registry) -> str:
    return rfc3339(registry.world.clock.now())


def _rival(view: View, client_id: str) -> str | None:
    """Return the controller, if it is another client."""
    controller = view.controller_id()
    return None if controller == client_id else controller


def _observing() -> Dict:
    return {"mode": OBSERVER, **dict.fromkeys(_RIGHTS, False)}


def _following(controller: str | None, changed: dict[str, Dict | None]) -> str | None:
    """Return the controller once the records in ``changed`` are stored."""
    for client_id, record in changed.items():
        if record is not None and record["mode"] == CONTROLLER:
            return client_id
    return None if controller in changed else controller


def _attached(session: Session, client_id: str) -> Dict:
    record: Dict | None = session.view.clients.get(client_id)
    if record is None:
        raise InvalidArgument(f"client '{client_id}' is not attached to session '{session.id}'")
    return record
