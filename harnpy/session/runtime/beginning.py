"""What a new session of a runtime is, and what writes its first events. Spec: 10 §C7, §C3.2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.session import events as kinds
from harnpy.session.agents.definition import AgentDef
from harnpy.session.errors import InvalidArgument, SessionNotFound
from harnpy.session.events import EventDraft, Origin
from harnpy.session.json_check import checked
from harnpy.session.kept.stored import lineage_of
from harnpy.session.log import KIND, Session
from harnpy.session.parts.arguments import instance, mapping, optional_text, session_id, text
from harnpy.session.parts.history import message_drafts
from harnpy.session.payloads import Created
from harnpy.session.runtime.unsaved import log_of, origin_of
from harnpy.session.settings.levels import Level
from harnpy.session.turns.request_parts import SYSTEM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from harnpy.session.runtime.txn import Txn
    from harnpy.storage.contract import Store
    from harnpy.world import World

    Message = dict[str, Any]


class Beginning(NamedTuple):
    """The session that is created, and what writes its first events."""

    origin: Origin
    write: Callable[[Txn], object]


def storing(session: Session, world: World) -> Beginning:
    """Return the beginning of a session that isn't saved: its log. Raises `InvalidArgument`."""
    origin = origin_of(session, world)
    log = log_of(session, origin)
    return Beginning(origin, lambda txn: txn.take_in(log))


def beginning(
    agent: AgentDef | str,
    origin: Origin,
    seed: Message | Iterable[Message],
    metadata: Mapping[str, Any] | None,
    *,
    label: str | None = None,
    system_prompt: str | None = None,
    auto_resize: bool | None = None,
) -> Beginning:
    """Return the beginning of a session of an agent. Raises `InvalidArgument`, `EventRejected`."""
    facts: dict[str, Any]
    metadata = mapping("metadata", metadata)
    if isinstance(agent, AgentDef):
        Level(agent.settings)
        checked(agent.data(), "definition")
        facts, metadata = agent.facts(), {**metadata, **agent.metadata}
    elif isinstance(agent, str):
        name = text("agent", agent)
        facts = {"agent_name": name, "agent_label": name} if name else {}
    else:
        raise InvalidArgument(f"an agent is given by a definition or a name, got {type(agent).__name__}")
    if auto_resize is not None:
        instance("auto_resize", auto_resize, bool, "a bool")
    given = {"agent_label": optional_text("label", label), "auto_resize": auto_resize}
    facts |= {key: value for key, value in given.items() if value is not None}
    created = EventDraft(kinds.SESSION_CREATED, Created(origin.parent, facts=facts))
    messages = message_drafts(seed)
    settings = [_setting(f"metadata.{key}", value) for key, value in metadata.items()]
    if system_prompt is not None:
        settings.append(_setting(SYSTEM, text("system_prompt", system_prompt)))

    def write(txn: Txn) -> None:
        txn.write(created)
        txn.append(*messages)
        txn.write(*settings)

    return Beginning(origin, write)


def origin_below(parent: Session | str, id: str, store: Store, world: World) -> Origin:
    """Return the origin of a session that another one of the store is the parent of, and shares nothing with.

    Raises `SessionNotFound`.
    """
    name = parent.id if isinstance(parent, Session) else session_id(parent)
    head = store.head(KIND, name)
    if head is None:
        raise SessionNotFound(name)
    return Origin(id, world, lineage_of(head, store, world))


def _setting(key: str, value: Any) -> EventDraft:
    return EventDraft(kinds.REGISTER_SET, {"key": key, "value": value, "version": 1})
