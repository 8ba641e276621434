"""The sessions that one Vm has open, with every verb as a method: the embedding API. Spec: 08 §1.

The verbs are functions over a `Registry`, in `harnpy.session.verbs`. Here each becomes the method of the same
name, and what it refuses is refused in the name of the builtin that scripts call.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

from harnpy.formats.dicts import detached
from harnpy.session import clients, conversation, verbs, workspaces
from harnpy.session.errors import Refusal, SessionConflict, SessionExists
from harnpy.session.open_sessions import Registry
from harnpy.session.transfer import sidecar

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Concatenate, ParamSpec, TypeVar

    from harnpy.formats.dicts import Dict
    from harnpy.session.log import Session

    P = ParamSpec("P")
    R = TypeVar("R")
    Verb = Callable[Concatenate[Registry, P], R]


def _verb(function: Verb[P, R], builtin: str | None = None) -> Verb[P, R]:
    """Return ``function`` as a method whose refusals name the builtin."""
    name = builtin or f"agent_session_{function.__name__}"

    @wraps(function)
    def method(registry: Registry, /, *args: P.args, **kwargs: P.kwargs) -> R:
        while True:
            try:
                return function(registry, *args, **kwargs)
            except Refusal as refusal:
                refusal.name(name)
                raise
            except SessionConflict as conflict:
                if isinstance(conflict, SessionExists):
                    raise
                # Another process wrote first, so nothing has changed: once more, on the newer log.

    return method


def _of_client(function: Callable[Concatenate[Session, str, P], R]) -> Verb[Concatenate[str, str, P], R]:
    """Return a verb of a live client as one over a registry."""

    @wraps(function)
    def verb(registry: Registry, id: str, client_id: str, /, *args: P.args, **kwargs: P.kwargs) -> R:
        clients.check_client_id(client_id)
        done = function(registry.find(id).session, client_id, *args, **kwargs)
        registry.touch(id)
        return done

    return _verb(verb)


def _live_clients(registry: Registry, id: str) -> list[Dict]:
    """Return the records of the attached clients, in the order in which they came."""
    return clients.live_clients(registry.find(id).session)


def _inject_prompt(
    registry: Registry, id: str, client_id: str, content: Any, opts: Dict | None = None
) -> None:
    """Append a user message on behalf of the controller. ``content``: text or blocks."""
    clients.check_content(content)
    clients.check_client_id(client_id)
    prompt = clients.prompt_of(registry.find(id).session, client_id, content, opts)
    verbs.inject_shared(registry, id, prompt)


def _route_permission(
    registry: Registry, id: str, client_id: str, request: Dict, opts: Dict | None = None
) -> Dict:
    """Record that the controller handles a permission request."""
    clients.check_request(request)
    clients.check_client_id(client_id)
    routed = clients.route_permission(registry.find(id).session, client_id, request, opts)
    registry.touch(id)
    return routed


class SessionRegistry(Registry):
    """At most ``cap`` open sessions, the least recently used first.

    Each `agent_session_*` builtin is the method of the same name without the prefix. Unknown ids raise
    `SessionNotFound`, wrong arguments `InvalidArgument`, compactions that can't be carried out
    `ResizeError`. A call that raises has changed nothing.
    """

    open = _verb(workspaces.open_session, "agent_session_open")
    exists = verbs.exists
    messages = _verb(verbs.messages)
    history = _verb(verbs.history)
    history_value = _verb(verbs.history_value, "agent_session_history")
    snapshot = verbs.snapshot
    snapshot_value = verbs.snapshot_value
    ancestry = verbs.ancestry
    reset = _verb(verbs.reset)
    _fork = _verb(verbs.fork, "agent_session_fork")
    fork_at = _verb(verbs.fork_at)
    trim = _verb(verbs.trim)
    compact = _verb(verbs.compact)
    append_event = _verb(verbs.append_event)
    close = _verb(verbs.close)
    discard = verbs.discard

    subscribe = _verb(verbs.subscribe, "agent_subscribe")
    subscriber_count = verbs.subscriber_count
    inject_feedback = conversation.inject_feedback
    has_feedback = conversation.has_feedback
    take_feedback = conversation.take_feedback

    live_clients = _verb(_live_clients, "agent_session_live_clients")
    attach = _of_client(clients.attach)
    takeover = _of_client(clients.takeover)
    detach = _of_client(clients.detach)
    heartbeat = _of_client(clients.heartbeat)
    client_inject_prompt = _verb(_inject_prompt, "agent_session_client_inject_prompt")
    route_permission = _verb(_route_permission, "agent_session_route_permission")

    scratchpad = _verb(verbs.scratchpad)
    set_scratchpad = _verb(verbs.set_scratchpad)
    clear_scratchpad = _verb(verbs.clear_scratchpad)

    workspace_anchor = _verb(workspaces.workspace_anchor)
    set_workspace_anchor = _verb(workspaces.set_workspace_anchor)
    workspace_policy = _verb(workspaces.workspace_policy)
    set_workspace_policy = _verb(workspaces.set_workspace_policy)
    add_root = _verb(workspaces.add_root)
    remove_root = _verb(workspaces.remove_root)
    list_roots = _verb(workspaces.list_roots)

    seed_from_jsonl = _verb(sidecar.seed_from_jsonl)
    prompt_state = _verb(conversation.prompt_state)
    store_transcript = conversation.store_transcript

    # Appending and counting messages are the hot path: these verbs name their builtin themselves.
    inject_shared = verbs.inject_shared
    length = verbs.length

    def fork(self, src: str, dst: str | None = None) -> str:
        """Copy a session's transcript under a new id. Return that id."""
        source = self.by_id.get(src) if dst is None else None
        late = None if source is None else self.admit_fork(source, None)
        return self._fork(src, dst) if late is None else late.session.id

    def inject(self, id: str, message: Dict) -> None:
        """Append a message, which is copied."""
        self.inject_shared(id, detached(message))
