"""The turns of a session, as its log tells of them. Spec: 10 §C3."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.session.events import MESSAGE_ADDED, TURN_COMPLETED
from harnpy.session.statuses import IN_PROGRESS, execution_after

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.session.events import Event


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
