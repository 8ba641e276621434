"""A session without its messages: its info, its turns, and the outcome of its children.

Spec: 10 §A1.15, §C3, §C3.1.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from harnpy.session import events as kinds
from harnpy.session.cuts import AGENT_FACTS
from harnpy.session.events import MESSAGE_ADDED, TURN_COMPLETED, event_id, stamp
from harnpy.session.registers import ACTIVE, IN_PROGRESS, METADATA, PENDING, execution_after
from harnpy.session.view import Saves
from harnpy.storage.contract import Head

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from harnpy.formats.dicts import Dict
    from harnpy.session.events import Event, Origin

    Fact = tuple[str, Dict]

# What a parent's log says of a child, from the time it is asked for to its end: types and payloads.
#
# Whoever runs children writes them, the session runtime and the workers of agents alike.
# Spec: 10 §A1.15, §C16.1.


#: Ways in which a child's session begins: with a task, as a fork of the parent, or empty.
HANDOFF, FORK, FRESH = "handoff", "fork", "fresh"

#: What becomes of a child.
REQUESTED, RUNNING, BLOCKED = "requested", "running", "blocked"
COMPLETED, FAILED, CANCELED, MERGED = "completed", "failed", "canceled", "merged"

#: The type of an event → what the child is from there on.
STATUS_AFTER: Final = {
    kinds.CHILD_REQUESTED: REQUESTED,
    kinds.CHILD_STARTED: RUNNING,
    kinds.CHILD_BLOCKED: BLOCKED,
    kinds.CHILD_COMPLETED: COMPLETED,
    kinds.CHILD_FAILED: FAILED,
    kinds.CHILD_CANCELED: CANCELED,
    kinds.CHILD_MERGED: MERGED,
}
#: Types of events behind which a child doesn't run, until somebody has it go on.
ENDS: Final = frozenset(
    {kinds.CHILD_BLOCKED, kinds.CHILD_COMPLETED, kinds.CHILD_FAILED, kinds.CHILD_CANCELED}
)


class Child(NamedTuple):
    """The identity of a child. ``session_id`` is None for a child that has no session of its own."""

    id: str
    session_id: str | None = None

    def requested(
        self,
        agent_id: str,
        mode: str,
        task: str,
        *,
        context: str | None = None,
        lease: str | None = None,
        metadata: Dict | None = None,
    ) -> Fact:
        """It is asked for. ``lease`` is the key of the lease that it holds until its end."""
        asked = {"agent_id": agent_id, "mode": mode, "task": task}
        return self._fact(
            kinds.CHILD_REQUESTED, **asked, context=context, lease=lease, metadata=metadata or None
        )

    def started(self, agent_id: str, metadata: Dict | None = None) -> Fact:
        return self._fact(kinds.CHILD_STARTED, agent_id=agent_id, metadata=metadata or None)

    def progressed(
        self, message: str | None = None, status: str | None = None, metadata: Dict | None = None
    ) -> Fact:
        return self._fact(kinds.CHILD_PROGRESSED, status=status, message=message, metadata=metadata or None)

    def blocked(self, reason: str, metadata: Dict | None = None) -> Fact:
        """It waits for something outside."""
        return self._fact(kinds.CHILD_BLOCKED, reason=reason, metadata=metadata or None)

    def completed(
        self,
        summary: str | None = None,
        artifact_ids: list[str] | None = None,
        *,
        usage: Dict | None = None,
        metadata: Dict | None = None,
    ) -> Fact:
        return self._fact(
            kinds.CHILD_COMPLETED,
            summary=summary,
            artifact_ids=artifact_ids or None,
            usage=usage,
            metadata=metadata or None,
        )

    def failed(self, error: str, metadata: Dict | None = None) -> Fact:
        return self._fact(kinds.CHILD_FAILED, error=error, metadata=metadata or None)

    def canceled(self, reason: str | None = None, metadata: Dict | None = None) -> Fact:
        return self._fact(kinds.CHILD_CANCELED, reason=reason, metadata=metadata or None)

    def merged(
        self,
        artifact_ids: list[str] | None = None,
        note: str | None = None,
        metadata: Dict | None = None,
    ) -> Fact:
        """Somebody has taken in its outcome."""
        return self._fact(
            kinds.CHILD_MERGED, artifact_ids=artifact_ids or None, note=note, metadata=metadata or None
        )

    def _fact(self, type: str, **said: Any) -> Fact:
        who = {"child_id": self.id, "child_session_id": self.session_id}
        return type, {key: value for key, value in {**who, **said}.items() if value is not None}


# What is known of a session without reading its messages: the facts that lists show. Spec: 10 §C3, §C3.1.
#
# A `Digest` gathers them from the events of a log. The store keeps them in the stream's head, in step with
# the log, and leaves out what is as usual.


#: Keys of a head: the session that a fork was made of, whatever became of it, how many events it shares with
#: that one, and when the last of those was written.
PARENT, FORK_SEQ, FORK_TIME = "parent_id", "fork_seq", "fork_time"
#: Key of a head: the children that hold a lease while they run, and the numbers of the events that asked for
#: them.
CHILDREN = "children"
#: Keys of a head: the session that was forked onto this one last, with which it shares nothing, and how deep
#: this one stands below the first.
NEW_PARENT, NEW_DEPTH = "new_parent_id", "new_depth"
#: Key of a head: the newest projection snapshot, if no cut came after it.
SNAPSHOT = "snapshot_seq"

_USUAL: dict[str, Any] = {
    "status": ACTIVE,
    "execution": PENDING,
    "agent": "",
    "agent_label": "",
    "definition": None,
    "branch_label": "",
    "fork_reason": "",
    "depth": 0,
    "cost": 0.0,
    "metadata": {},
    PARENT: None,
    FORK_SEQ: 0,
    FORK_TIME: 0,
    NEW_PARENT: None,
    NEW_DEPTH: 0,
    SNAPSHOT: 0,
    CHILDREN: {},
}
#: Keys of ``session_created`` → what a head calls them.
_CREATED = {
    "agent_name": "agent",
    "agent_label": "agent_label",
    "definition": "definition",
    "branch_label": "branch_label",
    "fork_reason": "fork_reason",
    "depth": "depth",
    "parent_session_id": PARENT,
    "fork_point_seq": FORK_SEQ,
}
#: What a fork has of its own.
_OWN = frozenset({*_CREATED.values(), "status", "execution", CHILDREN, NEW_PARENT, NEW_DEPTH})
#: Events of a fork's shared past that say nothing about the fork.
_PARENTS = frozenset(
    {kinds.STATUS_CHANGED, kinds.TURN_STARTED, kinds.TURN_COMPLETED, kinds.CHILD_REQUESTED, *ENDS}
)


class SessionInfo(NamedTuple):
    """A session as lists show it."""

    id: str
    seq: int
    revision: int
    status: str
    execution: str
    agent_name: str
    agent_label: str
    definition: dict[str, Any] | None
    parent_id: str | None
    fork_event_id: str | None
    fork_seq: int
    branch_label: str
    fork_reason: str
    depth: int
    created_at: str
    updated_at: str
    cost: float
    metadata: dict[str, Any]


class Digest:
    """The facts of one log, so far. ``shared`` is how many events a fork has from its parent."""

    __slots__ = ("_shared", "facts", "saves")

    def __init__(self, shared: int = 0) -> None:
        self._shared = shared
        self.saves = Saves(shared)
        self.facts: dict[str, Any] = {}

    @classmethod
    def of(cls, head: Head, shared: int, open_turns: Iterable[int]) -> Digest:
        """Return the digest of the log whose head that is; ``open_turns`` are those without an end."""
        digest = cls(shared)
        digest.saves.resume(head.data.get("revision", 0), head.version, open_turns)
        digest.facts = {key: value for key, value in head.data.items() if key in _USUAL}
        return digest

    def forked(self, point: Event) -> Digest:
        """Return the digest of a fork whose shared past ends with ``point``, this log's last event."""
        fork = Digest(point.seq)
        fork.facts = {key: value for key, value in self.facts.items() if key not in _OWN}
        fork.facts[FORK_TIME] = point.time
        return fork

    def agent(self) -> dict[str, Any]:
        """Return what the log's ``session_created`` says of the agent."""
        found = {key: self.facts.get(_CREATED[key]) for key in AGENT_FACTS}
        return {key: value for key, value in found.items() if value}

    def after(self, events: Sequence[Event]) -> Digest:
        """Return the digest of the log with these events behind it."""
        after = Digest.__new__(Digest)
        after._shared, after.saves = self._shared, self.saves.copy()
        after.facts = self.facts  # shared while nothing changes: then so is the head, but for the revision
        for event in events:
            if event.cost or event.type in _EFFECTS or event.seq == self._shared:
                after.facts = dict(self.facts)
                break
        after.add(events)
        return after

    @property
    def cost(self) -> float:
        """USD, of all events."""
        cost: float = self.facts.get("cost", 0.0)
        return cost

    @property
    def children(self) -> Mapping[str, int]:
        """The children that hold a lease while they run: id → the number of the event that asked for it."""
        children: Mapping[str, int] = self.facts.get(CHILDREN, {})
        return children

    @property
    def snapshot_seq(self) -> int:
        """The number of the newest projection snapshot; 0 when there is none, or a cut came after it."""
        seq: int = self.facts.get(SNAPSHOT, 0)
        return seq

    def rewound(self, execution: str) -> None:
        """Take into account that the leaf was moved to where the last turn had come to ``execution``."""
        if self.facts.get("execution", PENDING) != execution:
            self.facts["execution"] = execution

    def add(self, events: Sequence[Event]) -> None:
        """Take the next events of the log into account."""
        shared = self._shared
        self.saves.add([event for event in events if event.seq > shared] if shared else events)
        for event in events:
            if event.seq == shared:
                self.facts[FORK_TIME] = event.time
            effect = _EFFECTS.get(event.type)
            if effect is not None and (event.seq > shared or event.type not in _PARENTS):
                effect(self.facts, event)
            if event.type == kinds.HISTORY_REPLACED and event.seq > shared:
                _forked_onto(self.facts, event.stored())
            if event.cost:
                self.facts["cost"] = self.facts.get("cost", 0.0) + event.cost

    def head(self) -> dict[str, Any]:
        """Return what the stream's head keeps. It equals the one before when nothing has changed."""
        facts = {key: value for key, value in self.facts.items() if value != _USUAL[key]}
        return {"status": ACTIVE, "revision": self.saves.count, **facts}


def info_of(head: Head) -> SessionInfo:
    """Return a session's info by its head."""
    data = {**_USUAL, **head.data}
    if data[NEW_PARENT] is not None:
        own = {key: _USUAL[key] for key in (FORK_SEQ, "branch_label", "fork_reason")}
        data = {**data, **own, PARENT: data[NEW_PARENT], "depth": data[NEW_DEPTH]}
    parent, fork_seq = data[PARENT], data[FORK_SEQ]
    return SessionInfo(
        id=head.name,
        seq=head.version,
        revision=data.get("revision", 0),
        status=data["status"],
        execution=data["execution"],
        agent_name=data["agent"],
        agent_label=data["agent_label"],
        definition=data["definition"],
        parent_id=parent,
        fork_event_id=event_id(parent, fork_seq, data[FORK_TIME]) if fork_seq else None,
        fork_seq=fork_seq,
        branch_label=data["branch_label"],
        fork_reason=data["fork_reason"],
        depth=data["depth"],
        created_at=stamp(head.created),
        updated_at=stamp(head.updated),
        cost=data["cost"],
        metadata=data["metadata"],
    )


def info_of_log(origin: Origin, events: Sequence[Event], revision: int) -> SessionInfo:
    """Return the info of a session that no store has, by its whole log."""
    digest = Digest(origin.shared)
    digest.add(events)
    head = Head("session", origin.id, len(events), events[0].time, events[-1].time, data=digest.head())
    return info_of(head)._replace(revision=revision)


def _created(facts: Dict, event: Event) -> None:
    data = event.stored()
    for key, name in _CREATED.items():
        if key in data and (name in facts or data[key] != _USUAL[name]):
            facts[name] = data[key]


def _status(facts: Dict, event: Event) -> None:
    facts["status"] = event.body["to"]


def _register(facts: Dict, event: Event) -> None:
    key = event.body["key"]
    if key.startswith(METADATA):
        known = {
            name: value for name, value in facts.get("metadata", {}).items() if name != key[len(METADATA) :]
        }
        value = event.body["value"]
        facts["metadata"] = known if value is None else {**known, key[len(METADATA) :]: value}


def _turn_started(facts: Dict, event: Event) -> None:
    facts["execution"] = IN_PROGRESS


def _turn_completed(facts: Dict, event: Event) -> None:
    facts["execution"] = execution_after(event.body)


def _history_replaced(facts: Dict, event: Event) -> None:
    if event.body.reason == "reset":
        facts["execution"] = PENDING
    facts[SNAPSHOT] = 0


def _forked_onto(facts: Dict, cut: Dict) -> None:
    if "parent_session_id" in cut:
        facts[NEW_PARENT], facts[NEW_DEPTH] = cut["parent_session_id"], cut.get("depth", 1)


def _cut(facts: Dict, event: Event) -> None:
    facts[SNAPSHOT] = 0


def _snapshotted(facts: Dict, event: Event) -> None:
    facts[SNAPSHOT] = event.seq


def _child_requested(facts: Dict, event: Event) -> None:
    if event.body.get("lease"):
        facts[CHILDREN] = {**facts.get(CHILDREN, {}), event.body.get("child_id", ""): event.seq}


def _child_ended(facts: Dict, event: Event) -> None:
    ended, known = event.body.get("child_id", ""), facts.get(CHILDREN, {})
    if ended in known:
        facts[CHILDREN] = {id: seq for id, seq in known.items() if id != ended}


_EFFECTS: dict[str, Callable[[Dict, Event], None]] = {
    kinds.SESSION_CREATED: _created,
    kinds.STATUS_CHANGED: _status,
    kinds.HISTORY_REPLACED: _history_replaced,
    kinds.COMPACTION_TRIGGERED: _cut,
    kinds.LEAF_MOVED: _cut,
    kinds.PROJECTION_SNAPSHOTTED: _snapshotted,
    kinds.REGISTER_SET: _register,
    kinds.TURN_STARTED: _turn_started,
    kinds.TURN_COMPLETED: _turn_completed,
    kinds.CHILD_REQUESTED: _child_requested,
    **dict.fromkeys(ENDS, _child_ended),
}


# The turns of a session, as its log tells of them. Spec: 10 §C3.


class TurnInfo(NamedTuple):
    """A turn: events ``seq`` … ``last_seq``, those of others between them left out.

    ``status`` is ``in_progress`` while it has no end, else ``completed``, ``stopped``, ``failed``. ``steps``
    and ``messages`` are numbers, ``usage`` tokens by name, ``cost`` USD, times RFC 3339.
    """

    id: str
    seq: int
    last_seq: int
    agent_id: str
    key: str | None
    status: str
    stop_reason: str | None
    error: str | None
    steps: int
    messages: int
    usage: dict[str, Any] | None
    cost: float
    started_at: str
    ended_at: str | None


def turns_of(events: Iterable[Event], starts: Iterable[int]) -> list[TurnInfo]:
    """Return the turns that begin at ``starts``, of a log's events."""
    of_turn: defaultdict[int, list[Event]] = defaultdict(list)
    begun = {}
    wanted = set(starts)
    for event in events:
        if event.seq in wanted:
            begun[event.seq] = event
        elif event.turn is not None and event.turn.seq in begun:
            of_turn[event.turn.seq].append(event)
    return [_turn(begin, of_turn[seq]) for seq, begin in begun.items()]


def _turn(begin: Event, events: list[Event]) -> TurnInfo:
    end = next((event for event in events if event.type == TURN_COMPLETED), None)
    ended = {} if end is None else end.data
    return TurnInfo(
        id=begin.turn_name or begin.id,
        seq=begin.seq,
        last_seq=events[-1].seq if events else begin.seq,
        agent_id=begin.data.get("agent_id", ""),
        key=begin.data.get("key"),
        status=IN_PROGRESS if end is None else execution_after(ended),
        stop_reason=ended.get("turn_stop_reason"),
        error=ended.get("error"),
        steps=ended.get("steps", 0),
        messages=sum(event.type == MESSAGE_ADDED for event in events),
        usage=ended.get("usage"),
        cost=float(sum(event.cost for event in [begin, *events])),
        started_at=begin.timestamp,
        ended_at=None if end is None else end.timestamp,
    )
