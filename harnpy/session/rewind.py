"""Rewinding a conversation, redoing that, and pinning messages. Spec: 10 §C5."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.formats.tool_messages import calls_of, results_of
from harnpy.session import events as kinds
from harnpy.session.errors import InvalidArgument, RewindError
from harnpy.session.events import Payload
from harnpy.session.window_rewriting import key_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from harnpy.session.events import Event, Origin
    from harnpy.session.window import Window
    from harnpy.storage.contract import Stream

# Messages that stay in the window whatever is trimmed or compacted. Spec: 10 §C5.
#
# The register ``pins`` holds positions in the log. Pins are applied when a view is built, so one that is set
# while a compaction is being made holds. A `history_replaced` ends them.


REGISTER = "pins"


def are_pins(value: Any) -> bool:
    """Return whether the register may have that value: positions, or None for no pins."""
    return value is None or (isinstance(value, list) and all(type(pin) is int for pin in value))


def position(history: list[Event], origin: Origin, event_id: str) -> int | None:
    """Return the number of that message, by its id in ``origin`` or by the one it was first written under."""
    for entry in history:
        if entry.is_logged and event_id in (origin.own(entry).id, entry.first.id):
            return entry.seq
    return None


def pinned_entries(window: Window, pins: Collection[int]) -> list[Event]:
    """Return the pinned messages that a cut has taken out of the window, in log order: a call with its
    results, and a result with its call."""
    here = set(map(key_of, window.entries.items()))
    found = []
    for together in _rounds(window.history()):
        if any(entry.is_logged and entry.seq in pins for entry in together):
            found += [entry for entry in together if key_of(entry) not in here]
    return sorted(found, key=lambda entry: entry.seq)


def _rounds(entries: list[Event]) -> list[list[Event]]:
    """Return the entries in groups: an assistant's calls with the results behind them, all others alone."""
    found: list[list[Event]] = []
    calling = False
    for entry in entries:
        if calling and results_of(entry.body) is not None:
            found[-1].append(entry)
        else:
            found.append([entry])
            calling = bool(calls_of(entry.body))
    return found


# Taking back turns, and undoing that. Spec: 10 §C5.
#
# The log keeps all of it: one ``leaf_moved`` says where the conversation goes on from. What a view showed
# there is found by reading the log again; registers of the whole session, clients and lineage stay as they
# are.


REWIND = "rewind"
REDO = "redo"

#: Types of events after which a rewind can't be undone any more.
ENDS_REDO = frozenset(
    {
        kinds.MESSAGE_ADDED,
        kinds.CONTEXT_ADDED,
        kinds.BRANCH_SUMMARY,
        kinds.HISTORY_REPLACED,
        kinds.COMPACTION_TRIGGERED,
        kinds.TURN_STARTED,
    }
)


class LeafMoved(Payload):
    """Payload of ``leaf_moved``: the conversation goes on behind event number ``target``."""

    __slots__ = ("reason", "target")

    def __init__(self, target: int, reason: str | None = None) -> None:
        self.target = target
        self.reason = reason

    @classmethod
    def restored(cls, data: dict[str, Any]) -> LeafMoved:
        return cls(data.get("target_seq", 0), data.get("reason"))

    def data(self, event: Event) -> dict[str, Any]:
        target = {"target_event_id": event.owner.id_of(self.target)} if self.target else {}
        return {**target, **self._why()}

    def stored(self, event: Event) -> dict[str, Any]:
        target = {"target_seq": self.target} if self.target else {}
        return {**target, **self._why()}

    def _why(self) -> dict[str, Any]:
        return {} if self.reason is None else {"reason": self.reason}


class Rewound:
    """The rewinds that can be undone: the last event before each, and where the last move stands."""

    __slots__ = ("at", "leaves")

    def __init__(self, leaves: tuple[int, ...] = (), at: int = 0) -> None:
        self.leaves = leaves
        self.at = at

    def moved(self, event: Event, is_last: bool) -> Rewound:
        """Return what can be undone after another move; ``is_last``: nothing was added since this one."""
        leaves = self.leaves if is_last else ()
        if event.body.reason == REWIND:
            leaves = (*leaves, event.seq - 1)
        elif event.body.reason == REDO:
            leaves = leaves[:-1]
        else:
            leaves = ()
        return Rewound(leaves, event.seq)


def leaf_of(stream: Stream) -> int:
    """Return the number of the event that the conversation goes on behind; 0 for an empty log."""
    at = stream.version
    while at:
        event: Event = next(stream.read(at - 1, at))
        if event.type != kinds.LEAF_MOVED:
            return at
        at = event.body.target
    return 0


def active(events: list[Event], after: int) -> list[Event]:
    """Return those that the conversation goes on from, of all ``events`` behind number ``after``."""
    found: list[Event] = []
    at = after + len(events)
    while at > after:
        event = events[at - after - 1]
        if event.type == kinds.LEAF_MOVED:
            at = event.body.target
        else:
            found.append(event)
            at -= 1
    return found[::-1]


def standing(events: Iterable[Event]) -> list[Event]:
    """Return those of some events, which are in order, that no later move among them took back."""
    found: list[Event] = []
    leaf: int | None = None
    for event in reversed(list(events)):
        if leaf is not None and event.seq > leaf:
            continue
        if event.type == kinds.LEAF_MOVED:
            leaf = event.body.target
        else:
            found.append(event)
    return found[::-1]


def has_ended(turn: Event, later: Iterable[Event]) -> bool:
    """Return whether one of the ``later`` events ends the turn. It may be open although: its end was taken
    back."""
    ends = (event for event in later if event.type == kinds.TURN_COMPLETED)
    return any(end.turn is not None and end.turn.seq == turn.seq for end in ends)


def start_of(turns: list[int], count: int, id: str) -> int:
    """Return where the last ``count`` of the ``turns`` begin. Raises `RewindError` when there are fewer."""
    if type(count) is not int or count < 1:
        raise InvalidArgument("`turns` must be an int >= 1", id)
    if count > len(turns):
        has = "no turn" if not turns else "1 turn" if len(turns) == 1 else f"{len(turns)} turns"
        raise RewindError(f"session '{id}' has {has}, cannot take back {count}", id)
    return turns[-count]


def missing(entries: list[Event], there: list[Event]) -> list[dict[str, Any]]:
    """Return the messages of ``entries`` that aren't ``there``."""
    known = {entry.id for entry in there}
    return [entry.body for entry in entries if entry.id not in known]
