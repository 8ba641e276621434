"""The live sessions of one Vm with every verb as a method: the embedding API. Spec: 08 §1.

The verbs are functions over `Residents`, in `harnpy.session.verbs`. Here each becomes the method of the
same name, and what it refuses is refused in the name of the builtin that scripts call.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING

from harnpy.reading.dicts import detached
from harnpy.session.errors import Refusal, SessionConflict, SessionExists
from harnpy.session.residents import Residents
from harnpy.session.verbs import (
    clients,
    compaction,
    forks,
    lifecycle,
    loop_access,
    scratchpads,
    seeding,
    workspaces,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Concatenate, ParamSpec, TypeVar

    from harnpy.reading.dicts import Dict

    P = ParamSpec("P")
    R = TypeVar("R")
    Verb = Callable[Concatenate[Residents, P], R]


def _verb(function: Verb[P, R], builtin: str | None = None) -> Verb[P, R]:
    """Return ``function`` as a method whose refusals name the builtin."""
    name = builtin or f"agent_session_{function.__name__}"

    @wraps(function)
    def method(residents: Residents, /, *args: P.args, **kwargs: P.kwargs) -> R:
        while True:
            try:
                return function(residents, *args, **kwargs)
            except Refusal as refusal:
                refusal.name(name)
                raise
            except SessionConflict as conflict:
                if isinstance(conflict, SessionExists):
                    raise
                # Another process wrote first, so nothing has changed: once more, on the newer log.

    return method


class SessionRegistry(Residents):
    """At most ``cap`` sessions, the least recently used first.

    Each `agent_session_*` builtin is the method of the same name without the prefix. Unknown ids raise
    `SessionNotFound`, wrong arguments `InvalidArgument`, compactions that can't be carried out
    `ResizeError`. A call that raises has changed nothing.
    """

    open = _verb(workspaces.open_session, "agent_session_open")
    exists = lifecycle.exists
    messages = _verb(lifecycle.messages)
    history = _verb(lifecycle.history)
    history_value = _verb(lifecycle.history_value, "agent_session_history")
    snapshot = lifecycle.snapshot
    snapshot_value = lifecycle.snapshot_value
    ancestry = forks.ancestry
    reset = _verb(lifecycle.reset)
    fork = _verb(forks.fork)
    fork_at = _verb(forks.fork_at)
    trim = _verb(lifecycle.trim)
    compact = _verb(compaction.compact)
    append_event = _verb(lifecycle.append_event)
    close = _verb(lifecycle.close)
    discard = lifecycle.discard

    subscribe = _verb(lifecycle.subscribe, "agent_subscribe")
    subscriber_count = lifecycle.subscriber_count
    inject_feedback = loop_access.inject_feedback
    has_feedback = loop_access.has_feedback
    take_feedback = loop_access.take_feedback

    live_clients = _verb(clients.live_clients)
    attach = _verb(clients.attach)
    takeover = _verb(clients.takeover)
    detach = _verb(clients.detach)
    heartbeat = _verb(clients.heartbeat)
    client_inject_prompt = _verb(clients.client_inject_prompt)
    route_permission = _verb(clients.route_permission)

    scratchpad = _verb(scratchpads.scratchpad)
    set_scratchpad = _verb(scratchpads.set_scratchpad)
    clear_scratchpad = _verb(scratchpads.clear_scratchpad)

    workspace_anchor = _verb(workspaces.workspace_anchor)
    set_workspace_anchor = _verb(workspaces.set_workspace_anchor)
    workspace_policy = _verb(workspaces.workspace_policy)
    set_workspace_policy = _verb(workspaces.set_workspace_policy)
    add_root = _verb(workspaces.add_root)
    remove_root = _verb(workspaces.remove_root)
    list_roots = _verb(workspaces.list_roots)

    seed_from_jsonl = _verb(seeding.seed_from_jsonl)
    prompt_state = _verb(loop_access.prompt_state)
    store_transcript = loop_access.store_transcript

    # Appending and counting messages are the hot path: these verbs name their builtin themselves.
    inject_shared = lifecycle.inject_shared
    length = lifecycle.length

    def inject(self, id: str, message: Dict) -> None:
        """Append a message, which is copied."""
        self.inject_shared(id, detached(message))
