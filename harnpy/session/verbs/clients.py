"""Live clients: who is attached to a session, and which one of them may steer it. Spec: 08 §1.10.

A session has any number of observers and at most one controller. Who is attached is a view of the log:
the event of an attach, takeover, detach or heartbeat carries in its metadata the records that it changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.session import events as kinds
from harnpy.session.effects import rfc3339
from harnpy.session.errors import InvalidArgument
from harnpy.session.events import LIVE_CLIENTS, EventDraft
from harnpy.session.transcript import lifecycle_event
from harnpy.session.values import detached
from harnpy.session.verbs.lifecycle import Lifecycle
from harnpy.session.verbs.options import boolean, check, mapping, not_blank, read_options, string

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.session.log import Session
    from harnpy.session.views import View


OBSERVER, CONTROLLER = "observer", "controller"

_RIGHTS = ("can_inject_prompt", "can_route_permission")
_METADATA = {"metadata": mapping}
_TAKEOVER = {**_METADATA, **dict.fromkeys(_RIGHTS, boolean)}
_ATTACH = {"mode": string, "takeover": boolean, **_TAKEOVER}
_DETACH = {"reason": string, **_METADATA}


class LiveClients(Lifecycle):
    """`attach`, `takeover`, `detach`, `heartbeat`, and what a controller may. ``opts`` are dicts or None."""

    def live_clients(self, id: str) -> list[Dict]:
        """The records of the attached clients, in the order in which they came."""
        view = self._known("agent_session_live_clients", id).session.view
        return [detached(record) for record in view.clients.values()]

    def attach(self, id: str, client_id: str, opts: Dict | None = None) -> Dict:
        """Attach a client, or change the one that is there.

        ``opts``: mode (observer), takeover (False), metadata, can_inject_prompt, can_route_permission
        (True, for controllers). Raises when there is another controller, unless it is to be taken over.
        """
        verb = "agent_session_attach"
        session = self._asked(verb, id, client_id)
        options = read_options(verb, opts, _ATTACH)
        mode = options.get("mode", OBSERVER)
        if mode not in (OBSERVER, CONTROLLER):
            expected = f"{OBSERVER}, {CONTROLLER}"
            raise InvalidArgument(verb, f"invalid mode '{mode}' (expected one of: {expected})")
        rival = _rival(session.view, client_id) if mode == CONTROLLER else None
        if rival is not None and not options.get("takeover"):
            raise InvalidArgument(
                verb,
                f"session '{id}' already has controller '{rival}' "
                "(pass takeover: true or use agent_session_takeover)",
            )
        return self._attach(session, client_id, mode, options, "attach" if rival is None else "takeover")

    def takeover(self, id: str, client_id: str, opts: Dict | None = None) -> Dict:
        """Attach a client as the controller; who was it before becomes an observer."""
        verb = "agent_session_takeover"
        session = self._asked(verb, id, client_id)
        return self._attach(session, client_id, CONTROLLER, read_options(verb, opts, _TAKEOVER), "takeover")

    def detach(self, id: str, client_id: str, opts: Dict | None = None) -> Dict:
        """Remove a client. When it was the controller, nobody is. ``opts``: reason, metadata."""
        verb = "agent_session_detach"
        session = self._asked(verb, id, client_id)
        options = read_options(verb, opts, _DETACH)
        record = _attached(verb, session, client_id)
        return self._note(session, "detach", record, {client_id: None}, options)

    def heartbeat(self, id: str, client_id: str, opts: Dict | None = None) -> Dict:
        """Note that a client is still there. ``opts``: metadata, merged over the record's."""
        verb = "agent_session_heartbeat"
        session = self._asked(verb, id, client_id)
        options = read_options(verb, opts, _METADATA)
        record = dict(_attached(verb, session, client_id))
        record["metadata"] = {**record["metadata"], **options.get("metadata", {})}
        record["last_seen_at"] = self._stamp()
        return self._note(session, "heartbeat", record, {client_id: record}, options)

    def client_inject_prompt(self, id: str, client_id: str, content: Any, opts: Dict | None = None) -> None:
        """Append a user message on behalf of the controller. ``content``: text or blocks."""
        verb = "agent_session_client_inject_prompt"
        if not ((isinstance(content, str) and content.strip()) or (isinstance(content, list) and content)):
            raise InvalidArgument(verb, "`content` must be a non-empty string or list of content blocks")
        session = self._asked(verb, id, client_id)
        options = read_options(verb, opts, _METADATA)
        self._entitled(verb, session, client_id, "can_inject_prompt", "prompt-injection")
        origin = {"live_session": {"client_id": client_id, "mode": CONTROLLER}}
        metadata = {**options.get("metadata", {}), **origin}
        self.adopt(id, {"role": "user", "content": detached(content), "metadata": metadata})

    def route_permission(self, id: str, client_id: str, request: Dict, opts: Dict | None = None) -> Dict:
        """Record that the controller sees to a permission request."""
        verb = "agent_session_route_permission"
        check(verb, "request", request, mapping)
        session = self._asked(verb, id, client_id)
        options = read_options(verb, opts, _METADATA)
        self._entitled(verb, session, client_id, "can_route_permission", "permission-routing")
        routed = {"client_id": client_id, "request": detached(request), "routed_at": self._stamp()}
        text = f"route_permission {client_id}"
        note = lifecycle_event("live_session_permission_route", text, metadata={**routed, **options})
        self.touch(id)
        session.record(kinds.TRANSCRIPT_EVENT, note)
        return {"ok": True, "session_id": id, **detached(routed)}

    def _asked(self, verb: str, id: str, client_id: str) -> Session:
        check(verb, "client_id", client_id, string)
        not_blank(verb, "client_id", client_id)
        return self._known(verb, id).session

    def _attach(self, session: Session, client_id: str, mode: str, options: Dict, action: str) -> Dict:
        now = self._stamp()
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
        return self._note(session, action, record, changed, options)

    def _note(
        self, session: Session, action: str, record: Dict, changed: dict[str, Dict | None], options: Dict
    ) -> Dict:
        """Append the event of a change; what the verb answers."""
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
        self.touch(session.id)
        session.append(EventDraft(kinds.TRANSCRIPT_EVENT, event, metadata={LIVE_CLIENTS: changed}))
        return {
            "ok": True,
            "session_id": session.id,
            "client_id": client_id,
            "mode": mode,
            "client": detached(record),
            "live_controller_id": following,
            "previous_controller_id": previous,
        }

    def _entitled(self, verb: str, session: Session, client_id: str, right: str, words: str) -> None:
        record = _attached(verb, session, client_id)
        if record["mode"] != CONTROLLER:
            raise InvalidArgument(
                verb, f"client '{client_id}' is not the active controller of session '{session.id}'"
            )
        if not record[right]:
            raise InvalidArgument(
                verb, f"client '{client_id}' has no {words} rights on session '{session.id}'"
            )

    def _stamp(self) -> str:
        return rfc3339(self.effects.now())


def _rival(view: View, client_id: str) -> str | None:
    """The controller, if it is another client."""
    controller = view.controller_id()
    return None if controller == client_id else controller


def _observing() -> Dict:
    return {"mode": OBSERVER, **dict.fromkeys(_RIGHTS, False)}


def _following(controller: str | None, changed: dict[str, Dict | None]) -> str | None:
    """Who is the controller after the records in ``changed``."""
    for client_id, record in changed.items():
        if record is not None and record["mode"] == CONTROLLER:
            return client_id
    return None if controller in changed else controller


def _attached(verb: str, session: Session, client_id: str) -> Dict:
    record: Dict | None = session.view.clients.get(client_id)
    if record is None:
        raise InvalidArgument(verb, f"client '{client_id}' is not attached to session '{session.id}'")
    return record
