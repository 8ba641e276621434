"""Live clients: who is attached to a session, and which one of them may steer it. Spec: 08 §1.10.

A session has any number of observers and at most one controller. Who is attached is a view of the log:
the event of an attach, takeover, detach or heartbeat carries in its metadata the records that it changes.

Each verb appends right behind what it has seen, or raises `SessionConflict`: of two clients that want to
control a session at once, one is refused. Nobody waits for a turn that runs on the session, which goes on
behind such events. Spec: 10 §C7.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from harnpy.formats.dicts import boolean, detached, mapping, string
from harnpy.session import events as kinds
from harnpy.session.errors import InvalidArgument, NotController
from harnpy.session.events import LIVE_CLIENTS, EventDraft
from harnpy.session.history import message_drafts
from harnpy.session.transcript import lifecycle_event
from harnpy.session.verbs import check, not_blank, read_options
from harnpy.world.clock import rfc3339

if TYPE_CHECKING:
    from harnpy.formats.dicts import Dict
    from harnpy.session.events import Event
    from harnpy.session.log import Session
    from harnpy.session.view import View

OBSERVER, CONTROLLER = "observer", "controller"

_RIGHTS = ("can_inject_prompt", "can_route_permission")
_METADATA = {"metadata": mapping}
_TAKEOVER = {**_METADATA, **dict.fromkeys(_RIGHTS, boolean)}
_ATTACH = {"mode": string, "takeover": boolean, **_TAKEOVER}
_DETACH = {"reason": string, **_METADATA}


def live_clients(session: Session) -> list[Dict]:
    """Return the records of the attached clients, in the order in which they came."""
    return [detached(record) for record in session.view.clients.values()]


def attach(
    session: Session,
    client_id: str,
    opts: Dict | None = None,
    *,
    silence: float | None = None,
    way: str = "pass takeover: true or use agent_session_takeover",
) -> Dict:
    """Attach a client, or change an attached one. Return what happened.

    ``opts``: mode (observer), takeover (False), metadata, can_inject_prompt, can_route_permission
    (True, for controllers). Raises `NotController` if there is another controller, unless ``takeover``, or
    that one has been silent for longer than ``silence`` seconds (None: however long); the error says which
    ``way`` there is.
    """
    check_client_id(client_id)
    options = read_options(opts, _ATTACH)
    mode = options.get("mode", OBSERVER)
    if mode not in (OBSERVER, CONTROLLER):
        expected = f"{OBSERVER}, {CONTROLLER}"
        raise InvalidArgument(f"invalid mode '{mode}' (expected one of: {expected})")
    rival = _rival(session.view, client_id) if mode == CONTROLLER else None
    if rival is None or options.get("takeover"):
        action = "attach" if rival is None else "takeover"
        return _attach(session, client_id, mode, options, action)
    if not _is_silent(session, rival, silence):
        problem = f"session '{session.id}' already has controller '{rival}' ({way})"
        raise NotController(problem, session.id, rival)
    return _attach(session, client_id, mode, options, "attach", _release(session, rival))


def takeover(session: Session, client_id: str, opts: Dict | None = None) -> Dict:
    """Attach a client as the controller. The former controller becomes an observer."""
    check_client_id(client_id)
    return _attach(session, client_id, CONTROLLER, read_options(opts, _TAKEOVER), "takeover")


def detach(session: Session, client_id: str, opts: Dict | None = None) -> Dict:
    """Remove a client. A controller leaves no successor. ``opts``: reason, metadata."""
    check_client_id(client_id)
    options = read_options(opts, _DETACH)
    record = _attached(session, client_id)
    return _note(session, "detach", record, {client_id: None}, options)


def heartbeat(session: Session, client_id: str, opts: Dict | None = None) -> Dict:
    """Record that a client is still there. ``opts``: metadata, merged over the record's."""
    check_client_id(client_id)
    options = read_options(opts, _METADATA)
    record = dict(_attached(session, client_id))
    record["metadata"] = {**record["metadata"], **options.get("metadata", {})}
    record["last_seen_at"] = _stamp(session)
    return _note(session, "heartbeat", record, {client_id: record}, options)


def prompt_of(session: Session, client_id: str, content: Any, opts: Dict | None = None) -> Dict:
    """Return the user message that the controller injects. ``content``: text or blocks. ``opts``: metadata.

    Raises `InvalidArgument` unless the client is the controller, and may inject.
    """
    check_content(content)
    check_client_id(client_id)
    options = read_options(opts, _METADATA)
    _check_right(session, client_id, "can_inject_prompt", "prompt-injection")
    origin = {"live_session": {"client_id": client_id, "mode": CONTROLLER}}
    metadata = {**options.get("metadata", {}), **origin}
    return {"role": "user", "content": detached(content), "metadata": metadata}


def route_permission(session: Session, client_id: str, request: Dict, opts: Dict | None = None) -> Dict:
    """Record that the controller handles a permission request."""
    check_request(request)
    check_client_id(client_id)
    options = read_options(opts, _METADATA)
    _check_right(session, client_id, "can_route_permission", "permission-routing")
    routed = {"client_id": client_id, "request": detached(request), "routed_at": _stamp(session)}
    text = f"route_permission {client_id}"
    note = lifecycle_event("live_session_permission_route", text, metadata={**routed, **options})
    session.write(EventDraft(kinds.TRANSCRIPT_EVENT, note), expected_version=session.version)
    return {"ok": True, "session_id": session.id, **detached(routed)}


def admit(session: Session, client_id: str, silence: float) -> None:
    """Let a client send: the controller, or any one of a session without. A controller that has been silent
    for longer than ``silence`` seconds is released. Raises `NotController`."""
    rival = _rival(session.view, client_id)
    if rival is None:
        return
    if not _is_silent(session, rival, silence):
        raise not_controller(session, client_id, rival)
    session.write(_release(session, rival), expected_version=session.version)


def append_message(session: Session, client_id: str, message: Dict, silence: float) -> Event:
    """Append a message of a client that may send (`admit`), right behind what it has seen."""
    admit(session, client_id, silence)
    [event] = session.append(*message_drafts(message), expected_version=session.version)
    session.history_changed()
    return event


def check_sender(session: Session, client_id: str) -> None:
    """Raise `NotController` if another client controls the session by now."""
    rival = _rival(session.view, client_id)
    if rival is not None:
        raise not_controller(session, client_id, rival)


def not_controller(session: Session, client_id: str, rival: str) -> NotController:
    return NotController(
        f"client '{client_id}' can't send to session '{session.id}': client '{rival}' controls it; "
        "take it over first",
        session.id,
        rival,
    )


def check_content(content: Any) -> None:
    """Raise `InvalidArgument` for what is no prompt."""
    if not ((isinstance(content, str) and content.strip()) or (isinstance(content, list) and content)):
        raise InvalidArgument("`content` must be a non-empty string or list of content blocks")


def check_request(request: Any) -> None:
    """Raise `InvalidArgument` for what is no permission request."""
    check("request", request, mapping)


def check_client_id(client_id: str) -> None:
    """Raise `InvalidArgument` for what is no id of a client."""
    check("client_id", client_id, string)
    not_blank("client_id", client_id)


def _attach(
    session: Session,
    client_id: str,
    mode: str,
    options: Dict,
    action: str,
    release: EventDraft | None = None,
) -> Dict:
    now = _stamp(session)
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
    rival = _rival(session.view, client_id) if mode == CONTROLLER and release is None else None
    if rival is not None:
        changed[rival] = _observing(session, rival)
    return _note(session, action, record, changed, options, release)


def _note(
    session: Session,
    action: str,
    record: Dict,
    changed: dict[str, Dict | None],
    options: Dict,
    release: EventDraft | None = None,
) -> Dict:
    """Append the event of a change, behind that of a ``release``. Return the verb's result."""
    previous = session.view.controller_id()
    following = _following(previous, changed)
    before = previous if release is None else None
    event = _event(action, record, changed, before, following, options)
    drafts = [event] if release is None else [release, event]
    session.write(*drafts, expected_version=session.version)
    client_id, mode = record["client_id"], record["mode"]
    return {
        "ok": True,
        "session_id": session.id,
        "client_id": client_id,
        "mode": mode,
        "client": detached(record),
        "live_controller_id": following,
        "previous_controller_id": previous,
    }


def _event(
    action: str,
    record: Dict,
    changed: dict[str, Dict | None],
    previous: str | None,
    following: str | None,
    options: Dict,
) -> EventDraft:
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
    return EventDraft(kinds.TRANSCRIPT_EVENT, event, metadata={LIVE_CLIENTS: changed})


def _release(session: Session, client_id: str) -> EventDraft:
    """Return the event by which the controller becomes an observer, as nobody has heard of it."""
    record = _observing(session, client_id)
    why = {"reason": f"not heard of since {record['last_seen_at']}"}
    return _event("release", record, {client_id: record}, client_id, None, why)


def _is_silent(session: Session, client_id: str, silence: float | None) -> bool:
    """Return whether a client wasn't heard of for longer than ``silence`` seconds; None: however long."""
    if silence is None:
        return False
    seen = datetime.fromisoformat(session.view.clients[client_id]["last_seen_at"]).timestamp()
    return session.clock.now() - seen > silence


def _check_right(session: Session, client_id: str, right: str, words: str) -> None:
    record = _attached(session, client_id)
    if record["mode"] != CONTROLLER:
        raise InvalidArgument(f"client '{client_id}' is not the active controller of session '{session.id}'")
    if not record[right]:
        raise InvalidArgument(f"client '{client_id}' has no {words} rights on session '{session.id}'")


def _stamp(session: Session) -> str:
    return rfc3339(session.clock.now())


def _rival(view: View, client_id: str) -> str | None:
    """Return the controller, if it is another client."""
    controller = view.controller_id()
    return None if controller == client_id else controller


def _observing(session: Session, client_id: str) -> Dict:
    """Return a client's record as that of an observer."""
    return {**session.view.clients[client_id], "mode": OBSERVER, **dict.fromkeys(_RIGHTS, False)}


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
